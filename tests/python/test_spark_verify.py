"""A distributed check has the answer of the core, whatever happened to the log."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_cluster import local_session

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import deedbook
from deedbook import (
    Book,
    ContiguityError,
    Event,
    EventStore,
    InvalidArgumentError,
    Ledger,
    MissingError,
    Wal,
)
from deedbook.formats import Outcome, find
from deedbook.pipeline._signing import public_key, sign
from deedbook.spark.jobs import _checks, verify
from deedbook.spark.jobs import _verify as job

pytestmark = pytest.mark.spark

PAYLOADS = [b"payload %06d " % number * 20 for number in range(4000)]  # 1.1 MB
PART_BYTES = 100_000
DAMAGED = 600_000
"""A byte in the middle of the logs."""


def write_book(path: Path) -> Path:
    with Book.open(path, "x") as book:
        book.append_many(PAYLOADS)
    return path / "book.log"


def write_single(path: Path) -> Path:
    with Wal.open(path, "x", single_file=True) as wal:
        wal.append_many(PAYLOADS)
    return path


def write_segments(path: Path) -> Path:
    """The segment in which the damage is is of 200,000 bytes."""
    with Wal.open(path, "x", segment_bytes=200_000) as wal:
        wal.append_many(PAYLOADS)
    return path / f"{DAMAGED // 200_000:020d}.wal"


WRITERS = {"book": write_book, "single": write_single, "segments": write_segments}


def flip(file: Path, size: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(DAMAGED % size)
        byte = stream.read(1)[0]
        stream.seek(DAMAGED % size)
        stream.write(bytes([byte ^ 0x10]))


def append_half(file: Path, size: int) -> None:
    last = sorted(file.parent.glob("*.wal"))[-1] if file.suffix == ".wal" else file
    with last.open("ab") as stream:
        stream.write(PAYLOADS[0][:40])


def cut_end(file: Path, size: int) -> None:
    last = sorted(file.parent.glob("*.wal"))[-1] if file.suffix == ".wal" else file
    with last.open("r+b") as stream:
        stream.truncate(stream.seek(0, 2) - 1000)


def forget(file: Path, size: int) -> None:
    """Without a mark nothing says what was acknowledged."""
    flip(file, size)
    at = file.parent if file.parent.name == "log" else file
    beside = at / ".deedbook" if at.is_dir() else at.parent / ".deedbook"
    shutil.rmtree(beside)


CHANGES: dict[str, Callable[[Path, int], None]] = {
    "healthy": lambda file, size: None,
    "damaged in the middle": flip,
    "a torn end": append_half,
    "a lost end": cut_end,
    "no mark": forget,
}


def alone(path: Path, **options: Any) -> Outcome:
    """What ``deedbook verify`` finds."""
    found = find(path)
    assert found is not None
    return found.format.verify(str(path), lambda done, total: None, **options)


def shared(
    path: Path, check: _checks.Level = "id", before: Callable[[], object] = lambda: None
) -> tuple[Outcome, int, int]:
    """The outcome of a shared check without Spark, its parts, and the rounds that it took.

    ``before`` is called when the log is cut, before the parts are checked.
    """
    logs = job._logs_at(str(path))
    job._cut(logs, PART_BYTES, 2)
    (log,) = logs
    before()
    rounds: list[int] = []

    def spread(checks: Sequence[_checks.Check]) -> Iterator[_checks.Found]:
        rounds.append(len(checks))
        return _checks.run(checks, lambda done: None)

    first = [_checks.first_round(n, target, check) for n, target in enumerate(log.targets)]
    found = log.verified(job._reports(log.targets, first, check, spread))
    if found.error is not None:
        raise found.error
    return found.outcome, rounds[0], sum(1 for count in rounds if count)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_log_has_one_answer_alone_and_shared(tmp_path: Path, name: str, change: str) -> None:
    path = tmp_path / "log"
    file = WRITERS[name](path)
    CHANGES[change](file, 200_000 if name == "segments" else 1 << 40)
    expected = alone(path)
    assert expected.ok == (change == "healthy")
    outcome, parts, rounds = shared(path)
    assert outcome == expected
    if change != "no mark":
        assert parts > 8
        # Only damage in a part that is not the last asks for a second look.
        assert rounds == (2 if change == "damaged in the middle" else 1)


def test_a_log_that_changes_while_it_is_checked_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_book(path)

    def append() -> None:
        with Book.open(path, "a") as book:
            book.append_many(PAYLOADS[:500])

    outcome, _, rounds = shared(path, before=append)
    assert (outcome, rounds) == (alone(path), 1)
    assert outcome.facts["records"] == 4500

    def replace() -> None:
        shutil.rmtree(path)
        with Book.open(path, "x") as book:
            book.append_many(PAYLOADS[7:3500])

    outcome, _, rounds = shared(path, before=replace)
    assert (outcome, rounds) == (alone(path), 2)
    assert outcome.facts["records"] == 3493
    with pytest.raises(deedbook.Error) as gone:
        shared(path, before=lambda: shutil.rmtree(path))
    assert isinstance(gone.value, MissingError)


def test_a_truncated_log_is_read_from_its_new_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_segments(path)

    def drop() -> None:
        with Wal.open(path, "a") as wal:
            wal.truncate_before([record.lsn for record in wal][1500])

    outcome, _, _ = shared(path, before=drop)
    assert outcome == alone(path) and outcome.facts["records"] < 4000


def test_the_files_of_a_ledger_are_checked_apart(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    for base in ("events", "other"):
        with Ledger.open(path, base=base, batch_bytes=20_000) as ledger:
            for payload in PAYLOADS[:300]:
                ledger.append(payload)
    expected = alone(path)
    outcome, parts, _ = shared(path)
    assert outcome == expected and outcome.ok and parts > 8
    file = sorted(path.glob("*-other"))[2]
    data = bytearray(file.read_bytes())
    data[5000] ^= 1
    file.write_bytes(data)
    expected = alone(path)
    assert shared(path)[0] == expected and not expected.ok
    # A file that was sent meanwhile is none of the ledger's any more.
    outcome, parts, _ = shared(path, before=lambda: sorted(path.glob("*-events"))[0].unlink())
    assert outcome == alone(path) and len(outcome.facts["files"]) == parts - 1


SECRET = 3
AUTHOR = public_key(SECRET)


def note(number: int, kind: int = 1, *tag: str) -> Event:
    fields = {
        "pubkey": AUTHOR,
        "created_at": number,
        "kind": kind,
        "tags": [[*(tag or ("n", "note"))]],
    }
    content = f"note {number} " * 40
    listed = [0, fields["pubkey"], number, kind, fields["tags"], content]
    packed = json.dumps(listed, separators=(",", ":")).encode()
    id_ = hashlib.sha256(packed).hexdigest()
    # A request to delete counts with a true signature only.
    known = {"id": id_, "content": content, "sig": sign(id_, SECRET) if kind == 5 else "00" * 64}
    return Event.from_json(json.dumps({**fields, **known}))


@pytest.mark.parametrize("check", ["none", "id", "signature"])
def test_a_store_has_one_answer_alone_and_shared(tmp_path: Path, check: _checks.Level) -> None:
    path = tmp_path / "store"
    with EventStore.open(path, "x") as store:
        store.append_many([note(number) for number in range(900)])
    expected = alone(path, check=check)
    assert expected.ok == (check != "signature")
    outcome, parts, rounds = shared(path, check)
    assert (outcome, rounds) == (expected, 1) and parts > 5
    wrong = [note(n).to_json().replace("note", "other") for n in range(1000, 1020)]
    lines = tmp_path / "lines"
    lines.write_text("\n".join([note(n).to_json() for n in range(1020, 1500)] + wrong))
    with EventStore.open(path, "a") as store:
        assert store.import_json(lines, check="none").stored == 500
    writer = EventStore.open(path, "a")  # before a check notes the damage
    segment = next((path / "data" / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[3 * 4096 : 9 * 4096] = bytes(6 * 4096)
    segment.write_bytes(data)
    expected = alone(path, check=check)
    assert expected.facts["faults"] > (0 if check == "none" else 20)
    outcome, parts, rounds = shared(path, check)
    assert (outcome, rounds) == (expected, 1) and parts > 5

    def append() -> None:
        with writer:
            writer.append_many([note(number) for number in range(2000, 2010)])

    # The answer is of the time when the store was cut.
    outcome, _, rounds = shared(path, check, append)
    assert (outcome, rounds) == (expected, 1) and alone(path, check=check) != expected


def test_an_event_that_is_stored_twice_is_a_fault_shared_as_well(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with EventStore.open(path, "x") as store:
        store.append_many([note(number) for number in range(300)])
    segment = next((path / "data" / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[280 * 4096 : 281 * 4096] = data[4096 : 2 * 4096]
    segment.write_bytes(data)
    expected = alone(path)
    assert "stored twice" in expected.facts["first_faults"][0]["reason"]
    outcome, parts, rounds = shared(path)
    assert (outcome, rounds) == (expected, 2) and parts > 5


def test_a_store_that_is_compacted_while_it_is_checked_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with EventStore.open(path, "x") as store:
        notes = [note(number) for number in range(900)]
        store.append_many(notes + [note(901 + n, 5, "e", notes[n].id) for n in range(30)])

    def compact() -> None:
        with EventStore.open(path, "a") as store:
            assert store.compact(0.0).deleted == 30

    outcome, parts, rounds = shared(path, before=compact)
    assert (outcome, rounds) == (alone(path), 2) and parts > 5
    assert outcome.facts["live"] == 900


def test_a_loss_that_a_repair_noted_is_said(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with EventStore.open(path, "x") as store:
        store.append_many([note(number) for number in range(300)])
    segment = next((path / "data" / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    data[9 * 4096 : 10 * 4096] = bytes(4096)
    segment.write_bytes(data)
    assert EventStore.repair(path, accept_loss=True).mended
    outcome, parts, rounds = shared(path)
    assert (outcome, rounds) == (alone(path), 1) and parts > 5
    assert outcome.facts["is_loss"]


def test_pages_that_a_store_lost_while_it_is_checked_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with EventStore.open(path, "x") as store:
        store.append_many([note(number) for number in range(900)])
    segment = next((path / "data" / "segments").iterdir())

    def lose() -> None:
        with segment.open("r+b") as stream:
            stream.truncate(500 * 4096)

    outcome, _, rounds = shared(path, before=lose)
    assert (outcome, rounds) == (alone(path), 2)
    assert outcome.facts["live"] == 499


@pytest.mark.parametrize(
    ("total_mib", "cores", "tasks"),
    [(10, 8, 1), (200, 2, 8), (4096, 2, 8), (11 * 512, 2, 12), (100_000, 8, 200)],
)
def test_all_cores_get_as_many_tasks(total_mib: int, cores: int, tasks: int) -> None:
    total, most = total_mib << 20, 512 << 20
    size = job._task_bytes(total, most, cores)
    assert size <= most and -(-total // size) == tasks


# -- with Spark


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_session()


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of each format, three of which are not as they should be."""
    logs = tmp_path_factory.mktemp("logs")
    write_book(logs / "book")
    flip(write_book(logs / "damaged"), 1 << 40)
    cut_end(write_segments(logs / "lost"), 0)
    with Ledger.open(logs / "spool") as ledger:
        ledger.append(PAYLOADS[0])
    with EventStore.open(logs / "store", "x") as store:
        store.append_many([note(number) for number in range(300)])
    (logs / "none").mkdir()
    epochs = logs / "pier" / ".urb" / "log"
    epochs.mkdir(parents=True)
    for number in range(30):
        with Book.open(epochs / f"0i{number}", "x", epoch=number) as book:
            book.append(b"one")
    return logs


def test_logs_of_all_formats_are_checked_by_tasks(spark: Any, logs: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    found = verify(
        spark,
        logs,
        str(logs / "[bp]*"),
        logs / "none",
        part_bytes=PART_BYTES,
        progress=lambda done, total, note: seen.append((done, total)),
    )
    names = ["book", "damaged", "lost", "spool", "store"]
    assert [Path(one.path).name for one in found] == [
        *names,
        "book",
        *(f"0i{number}" for number in range(30)),
        "none",
    ]
    for one in found[:-1]:
        assert one.error is None and one.outcome == alone(Path(one.path)), one
    assert [one.ok for one in found[:5]] == [True, False, False, True, True]
    assert all(one.parts > 8 for one in found[:3])
    assert isinstance(found[-1].error, MissingError) and not found[-1].ok
    totals = {total for _, total in seen}
    assert len(totals) == 1 and all(0 <= done <= (total or 0) for done, total in seen)


def test_a_pier_without_an_epoch_is_not_well(spark: Any, tmp_path: Path) -> None:
    """Each epoch that is left is intact, and the answer was that all is well."""
    epochs = tmp_path / "pier" / ".urb" / "log"
    epochs.mkdir(parents=True)
    for number in (0, 1, 3):
        with Book.open(epochs / f"0i{number}", "x", epoch=number) as book:
            book.append(b"one")
    write_book(tmp_path / "other")
    for dry_run in (True, False):
        *each, pier, other = verify(spark, tmp_path / "pier", tmp_path / "other", dry_run=dry_run)
        assert [one.ok for one in each] == [True] * 3 and other.ok
        assert not pier.ok and Path(pier.path) == tmp_path / "pier"
        assert isinstance(pier.error, ContiguityError) and "event 3 is missing" in str(pier.error)


def test_a_directory_with_one_that_cannot_be_looked_at_is_checked_all_the_same(
    tmp_path: Path,
) -> None:
    """One that held both a book and a WAL was the only result: no other log was checked."""
    write_book(tmp_path / "book")
    write_segments(tmp_path / "wal")
    mixed = tmp_path / "mixed"
    write_book(mixed)
    (mixed / f"{0:020d}.wal").touch()
    for given in (tmp_path, tmp_path / "*"):
        found = {Path(log.path).name: log for log in job._logs_at(str(given))}
        job._cut(list(found.values()), PART_BYTES, 2)
        assert {name: log.format for name, log in found.items()} == {
            "book": "book",
            "wal": "wal",
            "mixed": None,
        }
        assert found["book"].targets and found["wal"].targets and not found["mixed"].targets
        refused = found["mixed"].verified([])
        assert not refused.ok and isinstance(refused.error, InvalidArgumentError)
        assert "mixed holds both a book (book.log) and a write-ahead log" in str(refused.error)


def test_a_dry_run_says_what_would_be_read(spark: Any, logs: Path) -> None:
    found = verify(spark, logs / "damaged", logs / "absent", part_bytes=PART_BYTES, dry_run=True)
    (book, absent) = found
    assert book.ok and book.bytes == (logs / "damaged" / "book.log").stat().st_size - 16
    assert book.outcome.facts == {"parts": book.parts, "bytes": book.bytes} and book.parts > 8
    assert isinstance(absent.error, MissingError)


def test_wrong_arguments_are_refused(spark: Any, logs: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no path"):
        verify(spark)
    with pytest.raises(InvalidArgumentError, match="part_bytes 0, must be at least 1"):
        verify(spark, logs, part_bytes=0)
    with pytest.raises(InvalidArgumentError, match='check "all", must be one of'):
        verify(spark, logs, check="all")  # type: ignore[arg-type]


def test_the_command_prints_what_verify_prints(logs: Path) -> None:
    """In a process of its own: with one JSON object for each log, in the order of the paths."""
    paths = [str(logs / name) for name in ("book", "damaged", "lost", "spool", "store", "gone")]
    deedbook_command = [sys.executable, "-m", "deedbook"]
    local = subprocess.run(
        [*deedbook_command, "verify", "--json", *paths], capture_output=True, text=True, check=False
    )
    command = [*deedbook_command, "spark", "verify", "--json", "--part-size", "100k"]
    spread = subprocess.run(
        [*command, "--master", "local[2]", *paths],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert [json.loads(line) for line in spread.stdout.splitlines()][:-1] == [
        json.loads(line) for line in local.stdout.splitlines()
    ][:-1]
    assert spread.returncode == local.returncode == 2, spread.stderr
    # What Spark and its JVM have to say is in a file.
    said = spread.stderr.splitlines()
    assert said and all(line.startswith("deedbook: ") for line in said), spread.stderr
    gone = json.loads(spread.stdout.splitlines()[-1])
    assert not gone["ok"] and gone["error"]["kind"] == "missing"
