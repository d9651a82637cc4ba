"""Exporting: a table gets each record once, also after repeats, replaced tables and kills."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from log_bytes import flip
from logs import append_to
from nostr_events import events
from spark_session import forget_end, in_time_zone, kill_when

pytest.importorskip("deltalake", reason="deltalake is not installed")

import deltalake
import pyarrow.parquet as pq
from pyspark.sql.types import LongType, StructField, StructType

from deedbook import (
    Book,
    ContiguityError,
    CorruptError,
    EventStore,
    InvalidArgumentError,
    LockedError,
)
from deedbook._system.lock import alone
from deedbook.spark import jobs
from deedbook.spark.jobs import _tables, export

KINDS = ("delta",) if os.environ.get("DEEDBOOK_ENGINE") == "sail" else ("parquet", "delta")
KIND: Any = KINDS[0]


@pytest.fixture
def far_east(spark: Any) -> Iterator[None]:
    with in_time_zone(spark, "Pacific/Kiritimati"):
        yield


def append(log: Path, start: int, count: int) -> None:
    with Book.open(log, "a") if log.exists() else Book.create(log) as book:
        book.append_many([b"event %d" % n for n in range(start, start + count)])


def rows_of(kind: str, table: Path) -> list[dict[str, Any]]:
    if kind == "delta":
        found = deltalake.DeltaTable(table).to_pyarrow_table()
    else:
        found = pq.read_table(table)
    return sorted(found.to_pylist(), key=lambda row: row["event"])


def rows_with(*columns: str) -> Any:
    """The only part of rows that a table uses without staging."""
    return SimpleNamespace(schema=StructType([StructField(name, LongType()) for name in columns]))


def table_at(home: Path, partition_by: Sequence[str] = ()) -> Any:
    return _tables.DeltaTable(home / "table", partition_by, "export-x", home / "work")


def test_the_same_export_at_once_is_refused(spark: Any, tmp_path: Path) -> None:
    append(tmp_path / "log", 0, 10)
    assert export(spark, tmp_path / "log", tmp_path / "table", kind=KIND).rows == 10
    (lock,) = (tmp_path / "table.jobs").glob("*.work/lock")
    with alone(lock, "exports"), pytest.raises(LockedError, match=r"exports .* already") as raised:
        export(spark, tmp_path / "log", tmp_path / "table", kind=KIND)
    assert raised.value.holder == os.getpid()
    assert export(spark, tmp_path / "log", tmp_path / "table", kind=KIND).rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_in_the_table_once(spark: Any, tmp_path: Path, kind: Any) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    append(log, 1, 300)
    options = {"kind": kind, "partition_by": ["tens=event div 100"]}
    first = export(spark, log, table, **options)
    assert (first.rows, first.last_batch) == (300, 0)
    assert first.columns == ("event", "mug", "jam", "tens")
    again = export(spark, log, table, **options)
    assert (again.rows, again.batches, again.last_batch) == (0, 0, 0)
    append(log, 301, 50)
    later = export(spark, log, table, **options)
    assert (later.rows, later.last_batch) == (50, 1)
    # As if a driver died after the table had the batch, and before the checkpoint had it.
    forget_end(Path(first.checkpoint), 1)
    assert export(spark, log, table, **options).batches == 1
    rows = rows_of(kind, table)
    assert [row["event"] for row in rows] == list(range(1, 351))
    assert all(row["jam"] == b"event %d" % row["event"] for row in rows)
    folders = sorted(path.name for path in table.iterdir() if path.name[0] != "_")
    assert folders == ["tens=0", "tens=1", "tens=2", "tens=3"]


@pytest.mark.parametrize("step", ["_move", "_added"])
def test_a_batch_is_added_once_despite_driver_deaths(
    spark: Any, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies before a file has its name, and before the commit."""
    log, table = tmp_path / "log", tmp_path / "table"
    append(log, 1, 20)

    def die(*_: Any) -> None:
        raise RuntimeError("died here")

    with monkeypatch.context() as patch:
        patch.setattr(_tables.DeltaTable, step, die)
        with pytest.raises(Exception, match="died here"):
            export(spark, log, table, kind="delta", partition_by=["half=event > 10"])
    export(spark, log, table, kind="delta", partition_by=["half=event > 10"])
    assert [row["event"] for row in rows_of("delta", table)] == list(range(1, 21))


def test_files_are_on_stable_storage_before_they_count(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the files, then the folders that name them, then the commit."""
    made = table_at(tmp_path, ["half"])
    steps: list[str] = []

    def note(name: str, step: Any) -> None:
        def noted(path: Path, *rest: Any) -> None:
            step(path, *rest)
            steps.append(f"{name} {path.relative_to(tmp_path).parts[0]}")

        monkeypatch.setattr(_tables, name, noted)

    for name in ("sync_file", "sync_folders"):
        note(name, getattr(_tables, name))
    made.add(spark.range(1).selectExpr("id as event", "id > 5 as half"), "one", 0)
    assert steps == ["sync_file work", "sync_folders work", "sync_folders table"]


@pytest.mark.parametrize("kind", KINDS)
def test_export_without_checkpoint_adds_nothing_twice(
    spark: Any, tmp_path: Path, kind: Any
) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    append(log, 1, 5)
    first = export(spark, log, table, kind=kind)
    Path(first.checkpoint).rename(tmp_path / "kept")
    said = {"delta": "batches 0 to 0 .* a second time", "parquet": "no checkpoint of this source"}
    with pytest.raises(InvalidArgumentError, match=said[kind]):
        export(spark, log, table, kind=kind)
    assert len(rows_of(kind, table)) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_table_lacking_batches_of_its_checkpoint_is_refused(
    spark: Any, tmp_path: Path, kind: Any
) -> None:
    """A user deletes the table, or restores an older copy, and keeps the checkpoint."""
    log, table, older = tmp_path / "log", tmp_path / "table", tmp_path / "older"
    append(log, 1, 5)
    export(spark, log, table, kind=kind)
    shutil.copytree(table, older)
    append(log, 6, 5)
    assert export(spark, log, table, kind=kind).last_batch == 1
    shutil.rmtree(table)
    for more in (0, 5):  # with and without new records
        append(log, 11, more)
        for had, missing in ((None, "has none .* 0 to 1"), (older, "has them up to 0.* 1 to 1")):
            if had is not None:
                shutil.copytree(had, table)
            with pytest.raises(ContiguityError, match=missing):
                export(spark, log, table, kind=kind)
            shutil.rmtree(table, ignore_errors=True)


OTHERS = {
    "columns": ("event day", "day", "has columns event bigint, mug bigint, day bigint, part"),
    "no partition": ("event mug day", "", "by day; this run has .* day bigint, no partition"),
    "partitions": ("event mug day", "mug day", "by day; this run has .* partitioned by mug, day:"),
    "case": ("event mug DAY", "DAY", "day bigint, .* has .* DAY bigint, partitioned by DAY"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_export_refuses_different_columns_or_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    columns, partition_by, said = OTHERS[other]
    monkeypatch.setattr(_tables.DeltaTable, "_stage", lambda *_: [])
    path = tmp_path / "table"
    table_at(tmp_path, ["day"]).add(rows_with("event", "mug", "day"), "one", 0)
    for app, query, batch in (("export-x", "one", 1), ("export-y", "two", 0)):
        wrong = _tables.DeltaTable(path, partition_by.split(), app, tmp_path / app)
        rows = rows_with(*columns.split())
        with pytest.raises(InvalidArgumentError, match=said):
            wrong.check(rows.schema)
        with pytest.raises(InvalidArgumentError, match=said):
            wrong.add(rows, query, batch)
        same = _tables.DeltaTable(path, ["day"], app, tmp_path / app)
        same.add(rows_with("day", "mug", "event"), query, batch)
        assert same.committed() == batch


def test_table_refuses_batches_out_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tables.DeltaTable, "_stage", lambda *_: [])
    made, rows = table_at(tmp_path), rows_with("event")
    with pytest.raises(ContiguityError, match="has none of export-x, so batches 0 to 1 are"):
        made.add(rows, "one", 2)
    assert made.committed() is None
    made.add(rows, "one", 0)
    with pytest.raises(ContiguityError, match="up to 0, so batches 1 to 1 are missing"):
        made.add(rows, "one", 2)
    for batch in (1, 2, 2):  # the last one as Spark's repeat
        made.add(rows, "one", batch)
    with pytest.raises(ContiguityError, match=r"batch 1 of query one is older .* up to 2: the"):
        made.add(rows, "one", 1)
    with pytest.raises(InvalidArgumentError, match=r"are of query .*, not other"):
        made.add(rows, "other", 3)
    assert made.committed() == 2


def test_typed_columns_of_events_are_partitioned_by_day(
    spark: Any, tmp_path: Path, far_east: None
) -> None:
    append_to("nostr", tmp_path / "notes", events(0, 40))
    columns = ["day=date(created_at)", "hour=date_trunc('hour', created_at)"]
    columns.append("odd=concat('a b:', kind)")
    report = export(
        spark, tmp_path / "notes", tmp_path / "table", kind="delta", partition_by=columns
    )
    assert report.rows == 40
    table = deltalake.DeltaTable(tmp_path / "table")
    found = table.to_pyarrow_table()
    assert found.num_rows == 40
    with EventStore.open(tmp_path / "notes") as store:
        expected = {event.id: event for event in store}
    for row in found.to_pylist():
        event = expected[row["id"].hex()]
        assert int(row["created_at"].timestamp()) == event.created_at
        assert row["day"] == row["created_at"].date()
        assert row["hour"] == row["created_at"].replace(minute=0, second=0)
        assert (row["odd"], row["tags"]) == (f"a b:{event.kind}", event.tags)
    actions = table.get_add_actions(flatten=True)
    names = actions.schema.names if hasattr(actions.schema, "names") else []
    assert {"min.kind", "max.created_at", "null_count.kind"} <= set(names)


def test_what_cannot_be_exported_is_refused(spark: Any, tmp_path: Path) -> None:
    append(tmp_path / "log", 1, 5)
    for given, said in {
        "nothing": "no such column among event, mug, jam",
        "x=nothing + 1": r"partition by x=nothing \+ 1: .*nothing",
        "=1": "a column, or NAME=EXPRESSION",
    }.items():
        with pytest.raises(InvalidArgumentError, match=said):
            export(spark, tmp_path / "log", tmp_path / "table", kind=KIND, partition_by=[given])
    report = export(
        spark, tmp_path / "log", tmp_path / "table", kind=KIND, columns=["event"], dry_run=True
    )
    assert (report.columns, report.rows, report.last_batch) == (("event",), 0, None)
    assert not (tmp_path / "table").exists()
    export(spark, tmp_path / "log", tmp_path / "table", kind=KIND)
    with pytest.raises(InvalidArgumentError, match="this run has columns event bigint, no par"):
        export(
            spark, tmp_path / "log", tmp_path / "table", kind=KIND, columns=["event"], dry_run=True
        )


def test_a_damaged_log_ends_an_export(spark: Any, tmp_path: Path) -> None:
    append(tmp_path / "log", 1, 100)
    flip(tmp_path / "log" / "book.log", 1000)
    with pytest.raises(CorruptError, match=r"book\.log: byte 9\d\d: deed 32: "):
        export(spark, tmp_path / "log", tmp_path / "table", kind=KIND)
    assert not list(tmp_path.glob("table/*.parquet"))


def test_a_delta_table_below_a_percent_is_refused(tmp_path: Path) -> None:
    """delta-rs decodes the path, and would look at another directory."""
    (tmp_path / "a%20b").mkdir()
    with pytest.raises(InvalidArgumentError, match=f"would look at {tmp_path}/a b/table"):
        table_at(tmp_path / "a%20b")
    assert not list((tmp_path / "a%20b").iterdir())


def test_urls_of_other_stores_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    append(tmp_path / "log", 1, 5)
    (tmp_path / "lines").write_text("{}")
    spark: Any = None  # a refusal needs no session
    log, lines, url = tmp_path / "log", tmp_path / "lines", "s3://bucket/x"
    for begin in (
        lambda: export(spark, log, url),
        lambda: export(spark, log, tmp_path / "table", checkpoint=url),
        lambda: jobs.compact(spark, [log], url),
        lambda: jobs.compact(spark, [url], tmp_path / "few"),
        lambda: jobs.ingest(spark, lines, url, format="book"),
        lambda: jobs.ingest(spark, lines, tmp_path / "to", format="book", checkpoint=url),
        lambda: jobs.import_events(spark, lines, url),
        lambda: jobs.import_events(spark, lines, tmp_path / "to", aside=url),
        lambda: jobs.migrate(spark, log, url, format="wal"),
        lambda: jobs.is_lmdb_pier(url),
    ):
        with pytest.raises(InvalidArgumentError, match="'s3://bucket/x' is not allowed; allowed"):
            begin()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["lines", "log"]


def test_a_directory_of_parquet_files_has_one_source(spark: Any, tmp_path: Path) -> None:
    append(tmp_path / "log", 1, 300)
    report = export(spark, tmp_path / "log", tmp_path / "table", batch_bytes=800)
    assert report.rows == 300 and report.batches == (report.last_batch or 0) + 1 > 10
    assert (tmp_path / "table" / "_spark_metadata" / "9.compact").exists()
    assert export(spark, tmp_path / "log", tmp_path / "table").batches == 0
    assert spark.read.parquet(str(tmp_path / "table")).distinct().count() == 300
    append(tmp_path / "other", 1, 5)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.parquet").write_bytes(b"")
    for table in (tmp_path / "table", tmp_path / "mine"):
        with pytest.raises(InvalidArgumentError, match="no checkpoint of this source"):
            export(spark, tmp_path / "other", table)
    assert len(rows_of("parquet", tmp_path / "table")) == 300


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_export_goes_on_where_it_was(
    spark: Any, tmp_path: Path, run_spark: Any, kind: str
) -> None:
    log, table = tmp_path / "log", tmp_path / "table"
    append_to("wal", log, [b"%08d" % n + bytes(1000) for n in range(4000)])
    command = ["spark", "export", log, table, "--format", kind, "--batch-size", "500k"]
    command += ["--master", "local[2]", "--json"]

    def batches() -> int:
        return len([*table.glob("_delta_log/*.json"), *table.glob("_spark_metadata/[0-9]*")])

    kill_when(lambda: batches() >= 4, command)
    assert batches() < 8
    ran = run_spark(*command)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["last_batch"] >= 7
    if kind == "delta":
        found = deltalake.DeltaTable(table).to_pyarrow_table().to_pylist()
    else:  # other readers also see what the kill left
        found = spark.read.parquet(str(table)).collect()
    numbers = sorted(int(row["payload"][:8]) for row in found)
    assert numbers == list(range(4000))
