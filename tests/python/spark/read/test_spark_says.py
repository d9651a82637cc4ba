"""Spark's tables, filters, workers and errors, from a user's view."""

import functools
import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from deedbook import CorruptError
from deedbook.spark import _worker
from log_bytes import deed_offsets, overwrite, write_book
from spark_session import load, reader_of, rows_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_book(tmp_path_factory.mktemp("says") / "book", [b"jam %d" % n for n in range(100)])


def test_create_table_error_names_a_working_alternative(spark: Any, book: Path) -> None:
    """Earlier the error was "unknown option owner": Spark replaces the user's options."""
    spark.sql("DROP TABLE IF EXISTS deeds_table")
    for clause in (f"OPTIONS (path '{book}', start '7')", f"LOCATION '{book}'"):
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"CREATE TABLE deeds_table USING deedbook {clause}").collect()
        message = str(caught.value)
        assert "CREATE TABLE ... USING deedbook cannot work" in message
        assert "CREATE TEMPORARY VIEW name USING deedbook OPTIONS (path '...')" in message


def test_table_with_columns_is_refused_on_read(spark: Any, book: Path) -> None:
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


def test_the_source_leaves_filters_to_spark(book: Path) -> None:
    """Spark returns wrong rows if a source accepts filters, and two queries share a frame."""
    assert "pushFilters" not in vars(type(reader_of(book)))


def test_worker_freezes_imports_once_and_driver_never(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("by a task"))
    monkeypatch.setattr(_worker, "_freeze", functools.cache(_worker._freeze.__wrapped__))
    assert len(rows_of(reader_of(book))) == 100 and frozen == []
    monkeypatch.setattr(_worker, "TaskContext", SimpleNamespace(get=object))
    for _ in range(2):
        assert len(rows_of(reader_of(book))) == 100 and frozen == ["by a task"]


def test_errors_have_public_names(spark: Any, tmp_path: Path) -> None:
    assert CorruptError.__module__ == "deedbook"
    jams = [b"x" * 100] * 3
    path = write_book(tmp_path / "book", jams)
    overwrite(path / "book.log", deed_offsets(jams)[1] + 12, b"P")
    with pytest.raises(PySparkException) as caught:
        load(spark, path).collect()
    assert "deedbook.CorruptError: " in str(caught.value)
    assert "deedbook._errors" not in str(caught.value)
