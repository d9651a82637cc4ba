"""Sail, an engine without a JVM, reads the rows of a log, writes rows, and has the same errors."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, Wal
from log_bytes import flip
from logs import append_to, make_logs
from object_store import BUCKET, serving
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


@pytest.fixture(params=["file", "s3"])
def root(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    pytest.importorskip("obstore", reason="obstore is not installed")
    if request.param == "file":
        yield (tmp_path / "store").as_uri()
        return
    (tmp_path / "s3").mkdir()
    with serving(tmp_path / "s3") as gate:
        for name, value in gate.environment.items():
            monkeypatch.setenv(name, value)
        yield f"s3://{BUCKET}/logs"


def test_sail_reads_archives_as_logs(sail: Any, tmp_path: Path, root: str) -> None:
    from deedbook import archive

    for name in ("a", "b"):
        with Wal.create(tmp_path / name, segment_bytes=16384) as wal:
            wal.append_many(bytes([number]) * 900 for number in range(100))
        archive.upload(tmp_path / name, f"{root}/{name}", catalog=root)
    with Wal.open(tmp_path / "a", "a") as wal:
        live = [tuple(record) for record in wal]
        assert wal.retain(max_bytes=0).records > 50
    bounds = archive.open(f"{root}/a").bounds
    assert bounds is not None
    expected = [record for record in live if record[0] < bounds[1]]

    def rows(source: str, **options: Any) -> list[tuple[Any, ...]]:
        found = load(sail, source, splitSize="16k", **options).collect()
        return sorted((row.lsn, bytes(row.payload)) for row in found)

    assert rows(f"{root}/a") == expected
    assert rows(root) == sorted(expected * 2)
    assert rows(f"{root}/a", start=live[9][0], end=live[80][0]) == live[9:80]
    assert rows(f"{root}/a", liveLog=tmp_path / "a") == live
    objects = tmp_path / "s3" / "objects" / BUCKET / "logs" if root.startswith("s3") else None
    folder = (objects or tmp_path / "store") / "b" / "pieces"
    flip(min(folder.iterdir()), 2000)
    with pytest.raises(Exception, match=f"{root}/b: byte .* checksum"):
        rows(root)


def numbered(sail: Any, rows: int) -> Any:
    return sail.range(0, rows, 1, 1).selectExpr("cast(cast(id as string) as binary) AS payload")


@pytest.mark.parametrize("log", ["book", "wal", "ledger"])
def test_sail_writes_partitions_in_their_order(sail: Any, log: str, tmp_path: Path) -> None:
    """Sail deals the rows out to the partitions in turn."""
    for _ in range(2):
        write(numbered(sail, 1000).repartition(4), tmp_path / "log", log=log)
    with deedbook.open(tmp_path / "log") as written:
        rows = [int(payload) for payload in written.payloads()]
    assert rows == sorted(range(1000), key=lambda row: (row % 4, row)) * 2
    assert not list((tmp_path / "log").glob(".deedbook/staged/*"))


def test_sail_appends_a_transaction_once(sail: Any, tmp_path: Path) -> None:
    options = {"log": "book", "txnAppId": "etl"}
    for version in (1, 1, 2):
        write(numbered(sail, 10).repartition(2), tmp_path / "log", txnVersion=version, **options)
    with Book.open(tmp_path / "log") as book:
        assert len(book) == 20


def test_a_failed_write_on_sail_appends_nothing(sail: Any, tmp_path: Path) -> None:
    Book.create(tmp_path / "book").close()
    bad = numbered(sail, 100).selectExpr("IF(payload = X'3939', NULL, payload) AS payload")
    with pytest.raises(Exception, match="null"):
        write(bad.repartition(2), tmp_path / "book")
    with Book.open(tmp_path / "book") as book:
        assert len(book) == 0
    assert not list((tmp_path / "book" / ".deedbook" / "staged").glob("*"))


def test_sail_writes_all_rows_or_none(sail: Any, tmp_path: Path) -> None:
    """Sail 0.7 takes the partitions of some DataFrames for one, and then stops the write itself."""
    for at, rows in enumerate((1, 9, 100_000)):
        some = sail.range(0, rows).selectExpr("cast(cast(id as string) as binary) AS payload")
        for name, frame in (("one", some), ("two", some.union(some))):
            path = tmp_path / f"{name}{at}"
            Book.create(path).close()
            try:
                write(frame, path)
                expected = frame.count()
            except Exception as error:
                assert "Invalid partition id" in str(error)
                expected = 0
            with Book.open(path) as book:
                assert len(book) == expected
