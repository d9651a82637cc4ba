"""What Spark makes of tables, filters, workers and errors, and what users see of that."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from log_bytes import deed_offsets, overwrite, write_book
from spark_session import load

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader

from deedbook import CorruptError
from deedbook.spark._reader import default_schema, make_reader

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_book(tmp_path_factory.mktemp("says") / "book", [b"jam %d" % n for n in range(100)])


def test_create_table_says_why_it_cannot_work_and_what_does(spark: Any, book: Path) -> None:
    """The error was "unknown option owner": Spark drops the user's options and adds its own."""
    spark.sql("DROP TABLE IF EXISTS deeds_table")
    for clause in (f"OPTIONS (path '{book}', start '7')", f"LOCATION '{book}'"):
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"CREATE TABLE deeds_table USING deedbook {clause}").collect()
        message = str(caught.value)
        assert "CREATE TABLE ... USING deedbook cannot work" in message
        assert "CREATE TEMPORARY VIEW name USING deedbook OPTIONS (path '...')" in message


def test_a_table_with_columns_says_so_when_it_is_read(spark: Any, book: Path) -> None:
    """Spark creates such a table without asking the source, and reads it without the path."""
    spark.sql("DROP TABLE IF EXISTS deeds_table")
    spark.sql(f"CREATE TABLE deeds_table (event bigint) USING deedbook OPTIONS (path '{book}')")
    try:
        with pytest.raises(PySparkException, match="use CREATE TEMPORARY VIEW"):
            spark.table("deeds_table").count()
    finally:
        spark.sql("DROP TABLE deeds_table")


def test_options_that_spark_adds_are_not_unknown(spark: Any, book: Path) -> None:
    added = {"checkpointLocation": "/nowhere", "queryName": "deeds"}
    assert load(spark, book, columns="event", **added).count() == 100


@pytest.fixture
def pushing(spark: Any) -> Iterator[None]:
    """Have Spark push filters to sources."""
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    yield
    spark.conf.set(setting, before)


def test_two_filters_on_one_frame_of_deedbook_are_right(
    spark: Any, book: Path, pushing: None
) -> None:
    frame = load(spark, book, columns="event")
    assert frame.where("event < 8").union(frame.where("event < 4")).count() == 10
    assert frame.where("event < 8").union(frame).count() == 107


def probe_source() -> type[DataSource]:
    """Reads a book, and gives each worker's process and how many objects it has frozen."""

    class Reader(DataSourceReader):
        def __init__(self, options: dict[str, str]) -> None:
            self.reader = make_reader(options, default_schema(options))

        def partitions(self) -> Any:
            return self.reader.partitions()

        def read(self, partition: Any) -> Iterator[tuple[int, int]]:
            for _ in self.reader.read(partition):
                pass
            yield os.getpid(), gc.get_freeze_count()

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "probe"

        def schema(self) -> str:
            return "process bigint, frozen bigint"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader(dict(self.options))

    return Source


def test_a_worker_freezes_what_it_imported_once_and_the_driver_never(
    spark: Any, tmp_path: Path
) -> None:
    write_book(tmp_path / "book", [bytes(1000)] * 2000)
    spark.dataSource.register(probe_source())
    frame = spark.read.format("probe").options(splitSize="64k").load(str(tmp_path / "book"))
    rows = frame.collect()
    assert len(rows) > 10
    frozen = {}
    for row in rows:
        assert row.frozen > 10_000, "the modules of pyspark and pyarrow are among them"
        # Once per worker: a few are freed since, but what later tasks made is not among them.
        assert abs(frozen.setdefault(row.process, row.frozen) - row.frozen) < 1000
    assert os.getpid() not in frozen
    script = """
import gc, sys
from deedbook.spark._reader import default_schema, make_reader
options = {"path": sys.argv[1]}
reader = make_reader(options, default_schema(options))
assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 2000
print(gc.get_freeze_count())
"""
    driver = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "book")], capture_output=True, check=True
    )
    assert driver.stdout.strip() == b"0"


def test_errors_have_public_names(spark: Any, tmp_path: Path) -> None:
    """Spark's errors named ``deedbook._errors``, from which nobody imports."""
    assert CorruptError.__module__ == "deedbook"
    jams = [b"x" * 100] * 3
    path = write_book(tmp_path / "book", jams)
    overwrite(path / "book.log", deed_offsets(jams)[1] + 12, b"P")
    with pytest.raises(PySparkException) as caught:
        load(spark, path).collect()
    assert "deedbook.CorruptError: " in str(caught.value)
    assert "deedbook._errors" not in str(caught.value)
