"""Ingesting: every line once, in order, also after repeats, bad lines and kills."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deedbook
from deedbook import Book, EventStore, InvalidArgumentError, LockedError, MissingError, Wal
from deedbook.spark.jobs import IngestReport, JobFailedError, import_events, ingest, migrate
from deedbook.spark.jobs._input import lines as lines_module
from deedbook.spark.jobs._input import stream as stream_module
from deedbook.spark.jobs._input.ingest import kind_of
from deedbook.spark.jobs._input.stream import Checkpoint, Destination
from line_files import put
from logs import append_to, payloads
from nostr_events import made
from spark_session import kill_when


def records(file: int, count: int) -> list[bytes]:
    return [json.dumps({"file": file, "n": n}).encode() for n in range(count)]


@contextlib.contextmanager
def killed(commit: bool) -> Iterator[None]:
    real = Destination.commit

    def die(*given: Any) -> None:
        if commit:
            real(*given)
        raise KeyError("killed")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(JobFailedError, match="killed"):
        patch.setattr(Destination, "commit", die)
        yield


def test_ingest_appends_lines_once_in_file_order(spark: Any, tmp_path: Path) -> None:
    source, log = tmp_path / "in", tmp_path / "events"
    expected = put(source / "a.jsonl", records(1, 300)) + put(source / "b.gz", records(2, 50))
    first = ingest(spark, source, log, format="book")
    assert (first.kind, first.rows, first.appended, first.last_batch) == ("lines", 350, 350, 0)
    assert payloads(log) == expected
    again = ingest(spark, source, log)
    assert (again.batches, again.appended) == (0, 0)
    expected += put(source / "0 before.jsonl", records(3, 20))
    later = ingest(spark, source, log)
    assert (later.batches, later.appended, later.last_batch) == (1, 20, 1)
    assert payloads(log) == expected


def test_on_batch_runs_after_its_batch_is_stored(spark: Any, tmp_path: Path) -> None:
    source, log = tmp_path / "in", tmp_path / "events"
    put(source / "a.jsonl", records(1, 30), changed_at=1)  # Spark takes the oldest file first
    put(source / "b.jsonl", records(2, 50), changed_at=2)
    put(source / "c.jsonl", [b"no JSON"])
    told: list[tuple[int, int]] = []

    def note(number: int, rows: int, seconds: float) -> None:
        assert seconds > 0 and len(payloads(log)) == (30, 80, 80)[number]
        told.append((number, rows))

    options: dict[str, Any] = {"batch_bytes": 1, "on_batch": note}
    with pytest.raises(InvalidArgumentError):
        ingest(spark, source, log, format="book", **options)
    assert told == [(0, 30), (1, 50)]
    assert ingest(spark, source, log, aside=tmp_path / "aside", **options).bad == 1
    assert told == [(0, 30), (1, 50), (2, 1)]


def test_run_killed_before_its_first_batch_restarts(spark: Any, tmp_path: Path) -> None:
    source, log, checkpoint = tmp_path / "in", tmp_path / "events", tmp_path / "checkpoint"
    expected = put(source / "a.jsonl", records(1, 30))
    left = checkpoint / "offsets" / ".0.5cb29ad1-7a3e-4b0f-9d55-0f3a4a0b6d11.tmp"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"v1")
    ingest(spark, source, log, format="book", checkpoint=checkpoint)
    assert payloads(log) == expected
    assert not left.exists()


def test_bad_line_ends_ingest_with_place_before_append(spark: Any, tmp_path: Path) -> None:
    source, log = tmp_path / "in", tmp_path / "events"
    good = put(source / "a.jsonl", records(1, 10))
    put(source / "b.jsonl", [b'{"b":1}', b"{", b'{"b":2}', b""])
    with pytest.raises(InvalidArgumentError, match=r"line 2 of .*/in/b\.jsonl is not JSON: expect"):
        ingest(spark, source, log, format="wal")
    assert payloads(log) == []
    report = ingest(spark, source, log, aside=tmp_path / "bad")
    assert (report.appended, report.bad) == (12, 2)
    assert payloads(log) == [*good, b'{"b":1}', b'{"b":2}']
    rows = spark.read.parquet(str(tmp_path / "bad")).orderBy("line").collect()
    assert [(row.line, row.byte, bytes(row.value)) for row in rows] == [(2, 8, b"{"), (4, 18, b"")]
    assert all(row.file == str(source / "b.jsonl") and row.reason for row in rows)


@pytest.mark.parametrize("name", ["a.jsonl", "a [1]{x}.jsonl", "b, 50%"])
def test_a_file_between_tables_is_read_again(spark: Any, tmp_path: Path, name: str) -> None:
    """The bad lines of the first run are such a table."""
    source, log = tmp_path / name, tmp_path / "events"
    good = put(source, [b'{"a":1}', b"{", b'{"a":2}'])
    put(tmp_path / "day=1" / "c.jsonl", [b'{"c":1}'])
    first = ingest(spark, source, log, format="book", aside=tmp_path / "events.jobs.bad")
    assert (first.appended, first.bad) == (2, 1)
    again = ingest(spark, source, log, aside=tmp_path / "events.jobs.bad")
    assert (again.batches, again.appended, payloads(log)) == (0, 0, [good[0], good[2]])


def test_unchecked_ingest_accepts_lines_that_are_not_json(spark: Any, tmp_path: Path) -> None:
    lines = put(tmp_path / "in" / "a[1] {x}.log", [b"\xff\x00", b"", b"two\r"])
    ingest(spark, tmp_path / "in" / "a[1] {x}.log", tmp_path / "log", format="wal", check="none")
    assert payloads(tmp_path / "log") == lines


def test_parquet_columns_become_records(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(100).selectExpr("id", "cast(concat('r', id) as binary) as body")
    rows.coalesce(1).write.parquet(str(tmp_path / "table"))
    with pytest.raises(InvalidArgumentError, match="no column jam or payload or value among id, b"):
        ingest(spark, tmp_path / "table", tmp_path / "log", format="book")
    report = ingest(spark, tmp_path / "table", tmp_path / "log", format="book", column="body")
    assert (report.kind, report.appended) == ("parquet", 100)
    assert payloads(tmp_path / "log") == [b"r%d" % n for n in range(100)]


def test_parquet_rows_arrive_in_name_and_row_order(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    expected = []
    for name, count in (("a 1%2B+.parquet", 10), ("a!2.parquet", 4000), ("b.parquet", 300)):
        rows = [b"%s %d" % (name.encode(), n) for n in range(count)]
        pq.write_table(pa.table({"payload": rows}), tmp_path / "table" / name)
        expected += rows
    report = ingest(spark, tmp_path / "table", tmp_path / "log", format="book")
    assert (report.batches, report.appended) == (1, len(expected))
    assert payloads(tmp_path / "log") == expected


def test_records_of_other_logs_become_records(spark: Any, tmp_path: Path) -> None:
    lines = records(1, 40)
    append_to("ledger", tmp_path / "spool", lines)
    first = ingest(spark, tmp_path / "spool", tmp_path / "log", format="book")
    assert (first.kind, first.appended) == ("log", 40)
    append_to("book", tmp_path / "log", [b"more"], mugs=[7])
    report = ingest(spark, tmp_path / "log", tmp_path / "copy", format="book")
    assert report.appended == 41
    assert payloads(tmp_path / "copy") == [*lines, b"more"]
    with Book.open(tmp_path / "copy") as copy:
        assert copy[41].mug == 7


def test_single_file_log_is_not_read_as_lines(spark: Any, tmp_path: Path) -> None:
    lines = records(1, 40)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, part in (("a.wal", lines[:20]), ("b.wal", lines[20:])):
        append_to("wal", logs / name, part, single_file=True)
    append_to("ledger", tmp_path / "spool", [lines[0]])
    assert {kind_of(str(path)) for path in (logs, logs / "a.wal", logs / "?.wal")} == {"log"}
    assert kind_of(str(tmp_path / "spool" / "0-events")) == "log"
    report = ingest(spark, logs / "?.wal", tmp_path / "log", format="book")
    assert (report.kind, report.appended) == ("log", 40) and payloads(tmp_path / "log") == lines
    migrated = migrate(spark, logs / "a.wal", tmp_path / "copy", format="book", layout="slots")
    assert migrated.records == 20 and payloads(tmp_path / "copy") == lines[:20]


def test_ingest_consumer_blocks_truncation_and_loss_needs_consent(
    spark: Any, tmp_path: Path
) -> None:
    source, log = tmp_path / "app.wal", tmp_path / "log"
    lines = records(1, 150)
    append_to("wal", source, lines[:100], segment_bytes=1000)
    ingest(spark, source, log, format="book", consumer="notes")
    with Wal.open(source, "a") as wal:
        wal.append_many(lines[100:])
        wal.sync()
        lsns = [record.lsn for record in wal]
        with pytest.raises(InvalidArgumentError, match='consumer "notes" needs lsn'):
            wal.truncate_before(lsns[120])
        wal.remove_consumer("notes")
        wal.truncate_before(lsns[120])
    with pytest.raises(deedbook.LostRecordsError, match="was dropped"):
        ingest(spark, source, log, consumer="notes")
    assert payloads(log) == lines[:100]
    report = ingest(spark, source, log, consumer="notes", fail_on_data_loss=False)
    assert report.appended == 30
    assert payloads(log) == lines[:100] + lines[120:]


@pytest.mark.parametrize("name", ["_x.jsonl", ".x.jsonl", "x.jsonl._COPYING_"])
def test_file_names_hidden_from_spark_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"{}\n")
    hidden = [tmp_path / f"{name[:2]}*"] if name[0] in "_." else []
    for source in (file, *hidden):
        with pytest.raises(InvalidArgumentError, match=rf"{name}: Spark reads no file whose name"):
            lines_module.stream_of(str(source))
    # Globs skip hidden files, because a producer renames its complete files.
    assert lines_module.stream_of(str(tmp_path / "*"))["path"] == f"file://{tmp_path}/*"
    put(tmp_path / "_in" / "a.jsonl", records(1, 3))
    for source in (tmp_path / "_in", tmp_path / "_i*", tmp_path / "_in" / "*.jsonl"):
        assert lines_module.stream_of(str(source))["path"] == f"file://{source}"


def test_what_cannot_be_ingested_is_refused(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.jsonl", records(1, 3))
    with pytest.raises(MissingError, match="no glob that matches"):
        ingest(spark, tmp_path / "none*", tmp_path / "log", format="book")
    for option in ({"consumer": "notes"}, {"fail_on_data_loss": False}):
        with pytest.raises(InvalidArgumentError, match=r"are for logs, .*/in holds lines"):
            ingest(spark, tmp_path / "in", tmp_path / "log", format="book", **option)
    with pytest.raises(InvalidArgumentError, match="import parses them and puts the events into"):
        ingest(spark, tmp_path / "in", tmp_path / "log", format="nostr")
    with pytest.raises(InvalidArgumentError, match="to create one, say its format: book, wal"):
        ingest(spark, tmp_path / "in", tmp_path / "log")
    Wal.create(tmp_path / "log").close()
    with pytest.raises(InvalidArgumentError, match="holds a write-ahead log, not a book"):
        ingest(spark, tmp_path / "in", tmp_path / "log", format="book")


def test_a_dry_run_appends_nothing(spark: Any, tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.jsonl", records(1, 3))
    log = tmp_path / "log"
    report = ingest(spark, tmp_path / "in", log, format="book", dry_run=True)
    given = (str(tmp_path / "in"), "lines", str(log), "book", report.checkpoint)
    nothing = {"batches": 0, "rows": 0, "bad": 0, "appended": 0, "last_batch": None}
    assert report == IngestReport(*given, **nothing, seconds=0.0)
    assert not log.exists() and not Path(report.checkpoint).exists()


def test_the_age_of_a_file_does_not_matter(spark: Any, tmp_path: Path) -> None:
    """Spark ignores new files a week older than the newest file, without a message.

    Spark also forgets such files after a read. A touch then makes Spark read them again.
    """
    source, log, old = tmp_path / "in", tmp_path / "events", time.time() - 30 * 86400
    expected = put(source / "1.jsonl", records(1, 3), old)
    expected += put(source / "2.jsonl", records(2, 4))
    ingest(spark, source, log, format="book")
    os.utime(source / "1.jsonl")
    assert ingest(spark, source, log).rows == 0
    expected += put(source / "3.jsonl", records(3, 5), old)
    assert ingest(spark, source, log).rows == 5
    assert payloads(log) == expected


def test_ingest_syncs_the_checkpoint_before_the_log(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier, a power cut lost Spark's plan of a batch, and the next batch counted as a repeat."""
    source, log = tmp_path / "in", tmp_path / "events"
    seen: list[tuple[int, bool, int]] = []

    def sync(checkpoint: str, batch: int) -> None:
        planned = (Path(checkpoint) / "offsets" / str(batch)).exists()
        seen.append((batch, planned, len(payloads(log)) if log.exists() else 0))

    monkeypatch.setattr(stream_module, "sync_checkpoint", sync)
    put(source / "1.jsonl", records(1, 3))
    ingest(spark, source, log, format="book")
    put(source / "2.jsonl", records(2, 4))
    ingest(spark, source, log)
    assert seen == [(0, True, 0), (1, True, 3)]


@pytest.mark.parametrize("kind", ["lines", "parquet", "events"])
def test_repeated_batch_fails_if_a_file_is_missing(spark: Any, tmp_path: Path, kind: str) -> None:
    source, target, expected = tmp_path / "in", tmp_path / "target", []
    suffix = "parquet" if kind == "parquet" else "jsonl"
    for name in ("a b%", "b", "c"):
        one = json.dumps(made(name) if kind == "events" else name).encode()
        expected.append(one)
        if kind == "parquet":
            source.mkdir(exist_ok=True)
            pq.write_table(pa.table({"jam": pa.array([one])}), source / f"{name}.parquet")
        else:
            put(source / f"{name}.jsonl", [one, b"{}"] if kind == "events" else [one])

    def run() -> Any:
        if kind == "events":
            return import_events(spark, source, target, check="id")
        return ingest(spark, source, target, format="book")

    def held() -> list[bytes]:
        if not target.exists():
            return []
        if kind != "events":
            return payloads(target)
        with EventStore.open(target) as store:
            return [one for one in expected if store.get(json.loads(one)["id"])]

    with killed(commit=False):  # the first batch is planned, then the job dies
        run()
    away = next(source.glob("a*")).rename(tmp_path / "away")
    with pytest.raises(MissingError, match=r"batch 0 of .* reads this file.*/a b%"):
        run()
    assert held() == []
    away.rename(source / f"a b%.{suffix}")
    with killed(commit=True):
        run()
    assert held() == expected
    for file in source.iterdir():  # files of the target's batches may go
        file.unlink()
    report = run()
    assert (report.batches, held()) == (1, expected)
    if kind == "events":
        assert (report.stored, spark.read.parquet(report.aside).count()) == (0, 3)
    else:
        assert report.appended == 0


def test_bad_lines_of_a_repeated_batch_are_reported(spark: Any, tmp_path: Path) -> None:
    source, log, aside = tmp_path / "in", tmp_path / "events", tmp_path / "bad"
    put(source / "1.jsonl", [b"1", b"{", b"2", b"["])
    with killed(commit=True):
        ingest(spark, source, log, format="book", aside=aside)
    report = ingest(spark, source, log, aside=aside)
    assert (report.rows, report.bad, report.appended) == (4, 2, 0)


def test_a_batch_of_another_log_is_no_repeat(spark: Any, tmp_path: Path) -> None:
    source, one, other = tmp_path / "in", tmp_path / "one", tmp_path / "other"
    checkpoint = tmp_path / "checkpoint"
    expected = put(source / "1.jsonl", records(1, 3))
    ingest(spark, source, one, format="book")
    with killed(commit=False):
        ingest(spark, source, other, format="book", checkpoint=checkpoint)
    with pytest.raises(InvalidArgumentError, match="query"):
        ingest(spark, source, one, checkpoint=checkpoint)
    assert payloads(one) == expected
    ingest(spark, source, other, format="book", checkpoint=checkpoint)
    assert payloads(other) == expected


@pytest.mark.parametrize("job", ["ingest", "import"])
def test_a_second_process_with_the_checkpoint_is_refused(
    spark: Any, tmp_path: Path, job: str
) -> None:
    pytest.importorskip("fcntl", reason="needs POSIX")
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    put(source / "1.jsonl", records(1, 3))
    with Checkpoint("log", "app", checkpoint).alone(job):
        wanted = rf"runs {job} with the checkpoint .*/checkpoint already"
        with pytest.raises(LockedError, match=wanted):
            if job == "ingest":
                ingest(spark, source, tmp_path / "log", format="book", checkpoint=checkpoint)
            else:
                import_events(spark, source, tmp_path / "log", checkpoint=checkpoint)


@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda line: b"\n" not in line), max_size=30),
    ends_with_newline=st.booleans(),
    part=st.integers(1, 40),
)
def test_parts_of_a_file_have_each_line_once(
    lines: list[bytes], ends_with_newline: bool, part: int, tmp_path_factory: Any
) -> None:
    data = b"\n".join(lines) + (b"\n" if ends_with_newline and lines else b"")
    file = tmp_path_factory.mktemp("parts") / "file"
    file.write_bytes(data)
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    found: list[tuple[int, bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "PART_BYTES", part)
        for start in range(0, len(data), part):
            for batch in lines_module._read_part(str(file), start):
                found += zip(batch["byte"].to_pylist(), batch["value"].to_pylist(), strict=True)
    assert [value for _, value in found] == expected
    assert all(data[byte : byte + len(value)] == value for byte, value in found)
    numbered = lines_module.Numbered()
    assert [numbered.line(str(file), byte) for byte, _ in found] == [*range(1, len(found) + 1)]
    numbered.close()


def test_line_numbers_trust_the_files_suffix(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"(\xb5/\xfd\n\0\n")
    numbered = lines_module.Numbered()
    assert [numbered.line(str(file), byte) for byte in (0, 5)] == [1, 2]
    numbered.close()


def test_a_killed_job_goes_on_where_it_was(tmp_path: Path, run_spark: Any) -> None:
    source, log = tmp_path / "in", tmp_path / "events"
    expected: list[bytes] = []
    for number in range(6):
        expected += put(source / f"{number}.jsonl", records(number, 2000), 1_700_000_000 + number)
    command = ["spark", "ingest", source, log, "--format", "wal", "--batch-size", "40k"]
    command += ["--master", "local[2]", "--json"]

    def count() -> int:
        with contextlib.suppress(MissingError):  # the job is creating the log
            return len(payloads(log))
        return 0

    kill_when(lambda: count() >= 2000, command)
    assert count() % 2000 == 0 and count() < len(expected)
    ran = run_spark(*command)
    assert (ran.code, ran.err) == (0, "")
    result = json.loads(ran.out)
    assert result["ok"] and result["last_batch"] == 5
    assert payloads(log) == expected
