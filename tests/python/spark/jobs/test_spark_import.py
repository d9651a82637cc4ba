"""Importing events through Spark stores the same as `EventStore.import_json`, also on repeats."""

import contextlib
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deedbook import Book, Event, EventStore, InvalidArgumentError, MissingError
from deedbook.spark.jobs import EventImportReport, import_events
from deedbook.spark.jobs._input import aside as _aside
from deedbook.spark.jobs._input.aside import Aside
from deedbook.spark.jobs._input.stream import Checkpoint
from line_files import put
from nostr_events import EVENTS, LINES, REAL, made
from spark_session import kill_when


def line_of(content: str, **fields: Any) -> bytes:
    return json.dumps(made(content, **fields)).encode()


def notes(first: int, stop: int) -> list[bytes]:
    return [line_of(f"note {number}", created_at=number) for number in range(first, stop)]


def ruled() -> list[bytes]:
    deleted = made("regretted")
    return [
        line_of("profile 1", kind=0, created_at=10),
        line_of("profile 3", kind=0, created_at=30),
        line_of("profile 2", kind=0, created_at=20),
        line_of("page", kind=30_023, tags=[["d", "slug"]], created_at=10),
        line_of("newer page", kind=30_023, tags=[["d", "slug"]], created_at=20),
        line_of("typing", kind=20_001),
        line_of("over", tags=[["expiration", "1000"]]),
        line_of("not over", tags=[["expiration", "99999999999"]]),
        json.dumps(deleted).encode(),
        line_of("", kind=5, tags=[["e", deleted["id"]]], created_at=1_800_000_000),
        json.dumps(deleted).encode(),
    ]


def wrong() -> list[bytes]:
    """Lines that are no event, with an empty line in between, and invalid events."""
    forged = {**EVENTS[0], "sig": EVENTS[1]["sig"]}
    changed = {**EVENTS[1], "content": "changed"}
    lines = [b"{}", b"", b"\xff\xfe", b" \r", LINES[0][:-1]]
    return lines + [json.dumps(event).encode() for event in (forged, changed)]


def stored(store: Path) -> list[tuple[Any, bool, bool]]:
    with EventStore.open(store) as opened:
        events = opened.iter(include="all")
        return [(event.to_json(), event.deleted, event.replaced) for event in events]


def imported(path: Path, lines: list[bytes], **options: Any) -> Any:
    with EventStore.open(path, "a") as store:
        return store.import_json(io.BytesIO(b"\n".join(lines)), **options)


def set_aside(spark: Any, directory: str) -> list[tuple[str, int, str, bytes]]:
    rows = spark.read.parquet(directory).collect()
    return sorted((row.file, row.line, row.reason, bytes(row.value)) for row in rows)


@pytest.mark.parametrize(("check", "suffix"), [("id", ".gz"), ("signature", ".zst")])
def test_spark_import_stores_the_same_as_import_json(
    spark: Any, tmp_path: Path, check: Any, suffix: str
) -> None:
    source, store, other = tmp_path / "in", tmp_path / "store", tmp_path / "other"
    first = put(source / "a.jsonl", wrong()[:4] + ruled() + REAL)
    second = put(source / f"b.jsonl{suffix}", REAL[:20] + wrong() + ruled()[:3] + notes(0, 9))
    expected = imported(other, first + second, check=check)
    report = import_events(spark, source, store, check=check)
    assert stored(store) == stored(other) != []
    assert (report.lines, report.bad) == (expected.lines, expected.bad)
    assert report.stored == expected.stored
    assert report.passed_over == sum(
        (expected.duplicates, expected.deleted, expected.expired, expected.ephemeral)
    )
    # A check of signatures rejects unsigned events, and so hides the effect of the rules.
    assert check == "signature" or min(expected.deleted, expected.expired, expected.ephemeral) > 0
    lines = first + second
    aside = [(one.line, one.reason, lines[one.line - 1]) for one in expected.bad_lines]
    found = [
        (line + (len(first) if file.endswith(suffix) else 0), reason, value)
        for file, line, reason, value in set_aside(spark, report.aside)
    ]
    assert [(line, reason) for line, reason, _ in found] == [one[:2] for one in aside]
    assert [value for *_, value in found] == [value for *_, value in aside]


def test_nothing_is_stored_twice_whatever_is_repeated(spark: Any, tmp_path: Path) -> None:
    source, store = tmp_path / "in", tmp_path / "store"
    put(source / "a.jsonl", [*notes(0, 300), b"{}"])
    first = import_events(spark, source, store, check="id")
    assert (first.batches, first.lines, first.stored, first.bad) == (1, 301, 300, 1)
    there = stored(store)
    again = import_events(spark, source, store, check="id")
    assert (again.batches, again.lines, again.stored) == (0, 0, 0)
    # Without the checkpoint, the list of read files is gone, and all files are read again.
    shutil.rmtree(first.checkpoint)
    again = import_events(spark, source, store, check="id")
    assert (again.lines, again.stored, again.passed_over, again.bad) == (301, 0, 300, 1)
    assert stored(store) == there
    # The repeat replaced the bad line in the folder.
    assert len(set_aside(spark, again.aside)) == 1
    put(source / "b.jsonl", notes(290, 320))
    more = import_events(spark, source, store, check="id")
    assert (more.lines, more.stored, more.passed_over) == (30, 20, 10)
    assert len(stored(store)) == 320
    with EventStore.open(store) as opened:
        assert opened.transactions.staged() == []


def test_a_dry_run_checks_all_and_writes_nothing(spark: Any, tmp_path: Path) -> None:
    source, store = tmp_path / "in", tmp_path / "store"
    put(source / "a.jsonl", [*REAL, *notes(0, 7), b"{}", b""])
    for check, good in (("id", len(REAL) + 7), ("signature", len(REAL))):
        before = sorted(tmp_path.rglob("*"))
        report = import_events(spark, source, store, check=check, dry_run=True)  # type: ignore[arg-type]
        assert sorted(tmp_path.rglob("*")) == before
        assert (report.lines, report.events) == (len(REAL) + 9, good)
        assert (report.bad, report.stored) == (len(REAL) + 8 - good, 0)


def test_what_cannot_be_imported_is_refused(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.jsonl", notes(0, 3))
    with pytest.raises(
        InvalidArgumentError, match="check 'none', must be one of id, signature: a tr"
    ):
        import_events(spark, tmp_path / "in", tmp_path / "store", check="none")  # type: ignore[arg-type]
    with pytest.raises(MissingError, match="no glob that matches"):
        import_events(spark, tmp_path / "none*", tmp_path / "store")
    Book.create(tmp_path / "book").close()
    with pytest.raises(InvalidArgumentError, match="holds a log, not files of lines: see ingest"):
        import_events(spark, tmp_path / "book", tmp_path / "store")
    with pytest.raises(InvalidArgumentError, match="holds a book, not a"):
        import_events(spark, tmp_path / "in", tmp_path / "book")
    assert not (tmp_path / "store").exists()


@pytest.mark.full
def test_killed_import_stores_every_event_once(tmp_path: Path, run_spark: Any) -> None:
    source, store = tmp_path / "in", tmp_path / "store"
    expected: list[bytes] = []
    for number in range(6):
        lines = notes(1000 * number, 1000 * number + 1500)
        expected += put(source / f"{number}.jsonl", lines, 1_700_000_000 + number)
    put(source / "7.jsonl", [b"{"], 1_700_000_009)
    command = ["spark", "import", source, store, "--check", "id", "--batch-size", "40k"]
    command += ["--master", "local[2]", "--json"]

    def count() -> int:
        with contextlib.suppress(MissingError):
            return len(stored(store))
        return 0

    # In the second batch: the first batch is not repeated, and a look reads the whole store.
    kill_when(lambda: count() >= 2500, command, look_every_s=0.2)
    assert 2500 <= count() < 6500
    ran = run_spark(*command)
    assert (ran.code, ran.err) == (1, "")
    result = json.loads(ran.out)
    assert not result["ok"] and result["bad"] == 1 and result["lines"] < len(expected)
    assert stored(store) == [
        (Event.from_json(line).to_json(), False, False) for line in dict.fromkeys(expected)
    ]
    with EventStore.open(store) as opened:
        assert EventStore.verify(opened.path).ok and opened.transactions.staged() == []
    ran = run_spark(*command[:-1])
    assert (ran.code, ran.out) == (0, "")
    assert f"stored 0 events in {store}" in ran.err


def test_a_report_is_plain() -> None:
    report = EventImportReport("in", "store", "id", "at", "bad", 2, 10, 8, 5, 1, 0.5)
    assert report.to_dict()["passed_over"] == report.passed_over == 3
    assert json.loads(json.dumps(report.to_dict()))["lines"] == 10


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"{number}.jsonl" for number in range(2)]
    for file in made:
        file.write_text("{\n")
    return made


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    task = SimpleNamespace(partitionId=lambda: 3, taskAttemptId=lambda: 7)
    monkeypatch.setattr(_aside, "TaskContext", SimpleNamespace(get=lambda: task))
    return Checkpoint.of("import", str(tmp_path), tmp_path / "store", None)


def put_aside(
    at: Path, own: Checkpoint, query: str, files: list[Path], batch: int = 0, value: bytes = b"{"
) -> None:
    """The work of a batch with files of one bad line each."""
    aside = Aside(str(at), own, query, batch, "no event")
    aside.begin()
    names = [str(file) for file in files]
    lines = pa.RecordBatch.from_pydict(
        {"file": names, "byte": [0] * len(names), "value": [value] * len(names)}
    )
    counted = (SimpleNamespace(add=int), SimpleNamespace(add=int))
    for good in aside.good(iter([lines]), lambda batch: (batch, ["no"] * len(names)), counted):
        assert good.num_rows == 0
    aside.finish()


def lines(at: Path) -> list[tuple[str, str, int]]:
    rows = pq.read_table(at).to_pylist()
    return sorted((row["query"], Path(row["file"]).name, row["line"]) for row in rows)


def test_lines_of_a_lost_checkpoint_are_there_once(
    tmp_path: Path, own: Checkpoint, files: list[Path]
) -> None:
    """Another query then reads all files again; earlier, its folder repeated the same lines."""
    at = tmp_path / "bad"
    for number, file in enumerate(files):
        put_aside(at, own, "a", [file], number)
    assert lines(at) == [("a", "0.jsonl", 1), ("a", "1.jsonl", 1)]
    put_aside(at, own, "b", files)
    assert lines(at) == [("b", "0.jsonl", 1), ("b", "1.jsonl", 1)]
    assert [folder.name for folder in at.iterdir()] == ["query=b"]
    put_aside(at, own, "b", files[:1], 1)  # the query keeps its own lines
    assert len(lines(at)) == 3


def test_lines_of_files_that_are_gone_stay(
    tmp_path: Path, own: Checkpoint, files: list[Path]
) -> None:
    """No job can read these lines again: only the folder of bad lines has them."""
    at = tmp_path / "bad"
    put_aside(at, own, "a", files)
    files[0].unlink()
    put_aside(at, own, "b", files[1:])
    assert lines(at) == [("a", "0.jsonl", 1), ("b", "1.jsonl", 1)]
    put_aside(at, own, "c", files[1:])
    assert lines(at) == [("a", "0.jsonl", 1), ("c", "1.jsonl", 1)]
    # A new file has the same name: the old line exists nowhere else.
    put_aside(at, own, "d", files[1:], value=b"[")
    assert lines(at) == [("a", "0.jsonl", 1), ("c", "1.jsonl", 1), ("d", "1.jsonl", 1)]


def test_lines_of_other_jobs_stay(tmp_path: Path, own: Checkpoint, files: list[Path]) -> None:
    """Other jobs, other targets and other programs may share the directory."""
    at = tmp_path / "bad"
    others = [
        replace(own, app="import-other"),
        replace(own, target=str(tmp_path / "other")),
        replace(own, path=tmp_path / "kept"),
    ]
    for number, other in enumerate(others):
        put_aside(at, other, f"other{number}", files[:1])
    foreign = at / "query=foreign" / "batch=0" / "part-0.parquet"
    foreign.parent.mkdir(parents=True)
    pq.write_table(pa.table({"file": [str(files[0])], "line": [9]}), foreign)
    before = lines(at)
    assert len(before) == 4
    put_aside(at, own, "b", files[:1])
    assert lines(at) == [("b", "0.jsonl", 1), *before]


def test_aside_keeps_no_lines_in_memory_unless_needed(
    tmp_path: Path, own: Checkpoint, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = tmp_path / "bad"
    put_aside(at, own, "a", files)

    def held(_: Path) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_aside, "_lines_in", held)
        assert Aside(str(at), own, "a", 0, "no event").finish() == 2
        with pytest.raises(MemoryError):
            put_aside(at, own, "b", files)
    assert Aside(None, own, "a", 0, "no event").finish() == 0
