"""Batch reads of books and WALs through Spark, against Python iteration and bytes on disk."""

import functools
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from deedbook import Book, CorruptError, Wal
from deedbook.spark import _worker
from deedbook.spark._read.reader import default_schema, make_reader
from log_bytes import DEED_FRAMING_BYTES, deed_offsets, overwrite, write_book
from logs import append_to
from spark_session import events, load, reader_of, rows_of, tuples

EVENTS = 2000
JAMS = [b"%d:" % number * (10 * (number % 40)) for number in range(EVENTS)]  # 1.9 MB, some empty


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A book of `EVENTS` events by Deedbook's writer; mugs with and without the high bit."""
    path = tmp_path_factory.mktemp("read") / "book"
    with Book.create(path, durability="none") as writer:
        writer.append_many(JAMS, [(number * 2654435761) % 2**32 for number in range(EVENTS)])
    return str(path)


def test_rows_equal_python_iteration_in_order(spark: Any, book: str) -> None:
    frame = load(spark, book, splitSize="64k", batchRows=100)
    assert frame.rdd.getNumPartitions() > 3
    with Book.open(book) as reader:
        expected = [
            (deed.event, deed.mug - 2**32 if deed.mug >= 2**31 else deed.mug, deed.jam)
            for deed in reader
        ]
    assert len(expected) == EVENTS and any(mug < 0 for _, mug, _ in expected)
    assert [tuple(row) for row in frame.collect()] == expected


def test_columns_and_schemas_project(spark: Any, book: str) -> None:
    by_option = load(spark, book, columns="jam, event", start=7, end=8)
    assert by_option.columns == ["jam", "event"]
    assert [tuple(row) for row in by_option.collect()] == [(JAMS[6], 7)]
    by_schema = load(spark, book, "EVENT bigint NOT NULL", start=7, end=9)
    assert by_schema.columns == ["EVENT"] and not by_schema.schema[0].nullable
    assert [tuple(row) for row in by_schema.collect()] == [(7,), (8,)]


def test_path_offset_and_length_name_the_bytes(spark: Any, book: str) -> None:
    rows = load(spark, book, columns="path,offset,length", splitSize="64k").collect()
    assert [row.offset for row in rows] == deed_offsets(JAMS)
    assert [row.length for row in rows] == [len(jam) + DEED_FRAMING_BYTES for jam in JAMS]
    assert {row.path for row in rows} == {f"{book}/book.log"}


@pytest.mark.parametrize(
    "options", [{"start": 10, "end": 10}, {"start": 10, "end": 5}, {"start": EVENTS + 1}, None]
)
def test_no_event_keeps_the_schema(
    spark: Any, book: str, tmp_path: Path, options: dict[str, Any] | None
) -> None:
    if options is None:
        Book.create(tmp_path / "empty").close()
    frame = load(spark, tmp_path / "empty") if options is None else load(spark, book, **options)
    assert frame.columns == ["event", "mug", "jam"]
    assert frame.collect() == []


def test_several_paths_globs_and_directories(spark: Any, tmp_path: Path) -> None:
    epochs = [
        write_book(tmp_path / f"0i{first - 1}", [b"x"] * 3, first=first) for first in (1, 4, 1000)
    ]
    one, two, three = map(str, epochs)
    first, second, third = [1, 2, 3], [4, 5, 6], [1000, 1001, 1002]
    assert events(load(spark, [three, one])) == third + first
    assert events(load(spark, [two])) == second
    assert events(load(spark, str(tmp_path / "0i*"))) == first + second + third
    assert events(load(spark, str(tmp_path / "0i[03]"))) == first + second
    assert events(load(spark, str(tmp_path / "0i*"), start=3, end=1001)) == [3, 4, 5, 6, 1000]
    # The directory would be a pier without the events 7 to 999.
    assert events(load(spark, str(tmp_path), end=7)) == first + second
    with pytest.raises(AnalysisException, match="events 7 to 999 are missing"):
        events(load(spark, str(tmp_path)))
    paths = load(spark, str(tmp_path / "0i*"), "path string").distinct().collect()
    assert {row.path for row in paths} == {f"{path}/book.log" for path in (one, two, three)}


def test_errors_reach_the_user(spark: Any, book: str, tmp_path: Path) -> None:
    """test_spark_units.py has the error of each option and schema."""
    with pytest.raises(AnalysisException, match=r"unknown option splitsizes .did you mean split"):
        load(spark, book, splitSizes="1m").collect()
    with pytest.raises(AnalysisException, match="schema: column event is bigint, not int"):
        load(spark, book, "event int").collect()
    with pytest.raises(AnalysisException, match=f"no such file or directory: .*{tmp_path}/none"):
        load(spark, tmp_path / "none")


@pytest.mark.parametrize("ddl", [None, "jam binary NOT NULL, path string, event bigint"])
@pytest.mark.parametrize("rows", [1, 7, 100_000])
def test_every_batch_has_the_schema_exactly(book: str, rows: int, ddl: str | None) -> None:
    from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

    options = {"path": book, "batchRows": str(rows), "splitSize": "64k", "end": "300"}
    schema = default_schema(options)
    if ddl:
        schema = StructType(
            [
                StructField("jam", BinaryType(), nullable=False),
                StructField("path", StringType()),
                StructField("event", LongType()),
            ]
        )
    reader = make_reader(options, schema)
    arrow = to_arrow_schema(schema, timezone="UTC")
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert all(batch.schema.equals(arrow, check_metadata=True) for batch in batches)
    assert all(0 < batch.num_rows <= rows for batch in batches)
    assert sum(batch.num_rows for batch in batches) == 299
    for batch in batches:
        batch.validate(full=True)


@pytest.mark.parametrize(
    ("rows", "size", "batches"), [("100", "1m", 3), ("15", "1m", 30), ("100", "300", 30)]
)
def test_small_logs_share_batches(tmp_path: Path, rows: str, size: str, batches: int) -> None:
    # Each batch costs the JVM more than these rows do.
    for number in range(30):
        write_book(tmp_path / f"book{number}", [b"%d" % number] * 10)
    reader = reader_of(tmp_path, batchRows=rows, batchBytes=size)
    (part,) = reader.partitions()
    found = list(reader.read(part))
    assert len(found) == batches and all(batch.num_rows <= int(rows) for batch in found)
    jams = [jam for batch in found for jam in batch.column("jam").to_pylist()]
    assert jams == [b"%d" % number for number in range(30) for _ in range(10)]


def test_frames_and_views_are_snapshots_of_first_query(spark: Any, tmp_path: Path) -> None:
    with Book.create(tmp_path / "book") as writer:
        writer.append_many([b"a", b"b"])
        make = f"CREATE OR REPLACE TEMPORARY VIEW now USING deedbook OPTIONS (path '{writer.path}')"
        spark.sql(make)
        frame = load(spark, tmp_path / "book")
        for _ in range(2):
            assert events(frame) == [1, 2] and events(spark.table("now")) == [1, 2]
            writer.append(b"c")
        spark.sql(make)
        assert events(load(spark, tmp_path / "book")) == events(spark.table("now")) == [1, 2, 3, 4]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wal") / "log"
    records = [b"%d:" % i * (i % 25) for i in range(12_000)]
    append_to("wal", path, records, segment_bytes=128 << 10)
    return path


def rows_of_wal(path: Path) -> list[tuple[int, bytes]]:
    with Wal.open(path) as wal:
        return [(record.lsn, record.payload) for record in wal]


def test_every_record_is_read_once_whatever_the_segments(spark: Any, log: Path) -> None:
    frame = load(spark, log, splitSize="64k", batchRows=100, batchBytes="4k", verify="none")
    assert frame.dtypes == [("lsn", "bigint"), ("payload", "binary")]
    with Wal.open(log) as wal:
        segments, finer = len(wal.segment_paths), len(wal.splits(64 << 10))
    assert segments > 4 and frame.rdd.getNumPartitions() == finer > 4
    assert tuples(frame) == rows_of_wal(log)  # in the order of the log
    assert load(spark, log, log="wal", columns="length").agg({"length": "sum"}).head()[0] == (
        rows_of_wal(log)[-1][0] + 8 + len(rows_of_wal(log)[-1][1])
    )


def test_a_start_that_was_dropped_is_an_error(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Wal.create(path, segment_bytes=4096) as wal:
        lsns = [wal.append(b"%d" % i) for i in range(1000)]
        wal.sync()
        wal.truncate_before(lsns[600])
        end = wal.end
    with pytest.raises(Exception, match=f"lsn {lsns[10]} was dropped, .* begins at {lsns[600]}"):
        load(spark, path, start=lsns[10]).count()
    assert load(spark, path, start=lsns[600]).count() == 400
    assert load(spark, path, start=lsns[600], end=lsns[601]).head().payload == b"600"
    assert load(spark, path, start=end).count() == 0
    with pytest.raises(Exception, match=f"lsn {end + 5000}, the log ends at byte {end}"):
        load(spark, path, start=end + 5000).count()


@pytest.fixture(scope="module")
def noted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_book(
        tmp_path_factory.mktemp("says") / "noted", [b"jam %d" % n for n in range(100)]
    )


def test_create_table_error_names_a_working_alternative(spark: Any, noted: Path) -> None:
    """Earlier the error was "unknown option owner": Spark replaces the user's options."""
    spark.sql("DROP TABLE IF EXISTS deeds_table")
    for clause in (f"OPTIONS (path '{noted}', start '7')", f"LOCATION '{noted}'"):
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"CREATE TABLE deeds_table USING deedbook {clause}").collect()
        message = str(caught.value)
        assert "CREATE TABLE ... USING deedbook cannot work" in message
        assert "CREATE TEMPORARY VIEW name USING deedbook OPTIONS (path '...')" in message


def test_table_with_columns_is_refused_on_read(spark: Any, noted: Path) -> None:
    """Spark creates such a table without asking the source, and reads it without the path."""
    spark.sql("DROP TABLE IF EXISTS deeds_table")
    spark.sql(f"CREATE TABLE deeds_table (event bigint) USING deedbook OPTIONS (path '{noted}')")
    try:
        with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW"):
            spark.table("deeds_table").count()
    finally:
        spark.sql("DROP TABLE deeds_table")


def test_options_that_spark_adds_are_not_unknown(spark: Any, noted: Path) -> None:
    added = {"checkpointLocation": "/nowhere", "queryName": "deeds"}
    assert load(spark, noted, columns="event", **added).count() == 100


def test_the_source_leaves_filters_to_spark(noted: Path) -> None:
    """Spark returns wrong rows if a source accepts filters, and two queries share a frame."""
    assert "pushFilters" not in vars(type(reader_of(noted)))


def test_worker_freezes_imports_once_and_driver_never(
    noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("by a task"))
    monkeypatch.setattr(_worker, "_freeze", functools.cache(_worker._freeze.__wrapped__))
    assert len(rows_of(reader_of(noted))) == 100 and frozen == []
    monkeypatch.setattr(_worker, "TaskContext", SimpleNamespace(get=object))
    for _ in range(2):
        assert len(rows_of(reader_of(noted))) == 100 and frozen == ["by a task"]


def test_errors_have_public_names(spark: Any, tmp_path: Path) -> None:
    assert CorruptError.__module__ == "deedbook"
    jams = [b"x" * 100] * 3
    path = write_book(tmp_path / "noted", jams)
    overwrite(path / "book.log", deed_offsets(jams)[1] + 12, b"P")
    with pytest.raises(PySparkException) as caught:
        load(spark, path).collect()
    assert "deedbook.CorruptError: " in str(caught.value)
    assert "deedbook._errors" not in str(caught.value)
