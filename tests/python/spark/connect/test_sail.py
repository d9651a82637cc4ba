"""Reading on Sail, an engine without a JVM: the rows that the log has, and the same errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, EventStore, Wal
from log_bytes import flip
from logs import append_to, make_logs
from spark_session import load, write

server = pytest.importorskip(
    "pysail.spark", reason="pysail is not installed: scripts/spark.sh has it"
)

RECORDS = [b"record %d" % number for number in range(300)]


@pytest.fixture(scope="module")
def sail() -> Iterator[Any]:
    from pyspark.sql.connect.session import SparkSession

    running = server.SparkConnectServer(port=0)
    running.start(background=True)
    try:
        _, port = running.listening_address
        session = SparkSession.builder.remote(f"sc://localhost:{port}").create()
        yield session
        session.stop()
    finally:
        running.stop()


def test_each_format_is_found_and_read(sail: Any, tmp_path: Path) -> None:
    make_logs(tmp_path, RECORDS)
    for name in ("book", "pier"):
        rows = load(sail, tmp_path / name).orderBy("event").collect()
        assert [(row.event, bytes(row.jam)) for row in rows] == list(enumerate(RECORDS, 1)), name
    with Wal.open(tmp_path / "wal") as wal:
        rows = load(sail, tmp_path / "wal").orderBy("lsn").collect()
        assert [(row.lsn, bytes(row.payload)) for row in rows] == [tuple(one) for one in wal]
    rows = load(sail, tmp_path / "ledger").orderBy("file", "record").collect()
    assert [bytes(row.payload) for row in rows] == RECORDS
    with EventStore.open(tmp_path / "nostr") as store:
        rows = load(sail, tmp_path / "nostr").collect()
        found = {bytes(row.id).hex(): (row.content, row.created_at.timestamp()) for row in rows}
        assert found == {one.id: (one.content, one.created_at) for one in store}


def test_sail_reads_same_rows_with_splits_and_sql(sail: Any, tmp_path: Path) -> None:
    append_to("book", tmp_path / "book", [b"x" * 100] * 5000)
    frame = load(sail, tmp_path / "book", "event bigint", start=10, end=4000, splitSize="64k")
    assert sorted(row.event for row in frame.collect()) == list(range(10, 4000))
    sail.sql(f"CREATE TEMPORARY VIEW deeds USING deedbook OPTIONS (path '{tmp_path}/book')")
    (found,) = sail.sql("SELECT count(*), max(event) FROM deeds WHERE event > 100").collect()
    assert tuple(found) == (4900, 5000)


def test_errors_name_the_place_as_on_spark(sail: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="MissingError"):
        load(sail, tmp_path / "nothing").collect()
    append_to("book", tmp_path / "book", RECORDS)
    with pytest.raises(Exception, match="unknown option startt"):
        load(sail, tmp_path / "book", startt=1).collect()
    flip(tmp_path / "book" / "book.log", 2000)
    with pytest.raises(Exception, match=r"book\.log: byte 1986"):
        load(sail, tmp_path / "book").collect()
    rows = load(sail, tmp_path / "book", mode="PERMISSIVE").collect()
    assert [row.event for row in rows if row._corrupt_record is not None] == [61]
    assert len(rows) == 300


def test_sail_write_is_refused_and_appends_nothing(sail: Any, tmp_path: Path) -> None:
    Book.create(tmp_path / "book").close()
    with pytest.raises(Exception, match="does not tell a task its partition"):
        write(sail.createDataFrame([(b"one",)], "jam binary"), tmp_path / "book")
    with Book.open(tmp_path / "book") as book:
        assert len(book) == 0
