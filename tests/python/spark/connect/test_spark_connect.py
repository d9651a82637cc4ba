"""Source, sink and streams over Spark Connect; the jobs say that they do not run there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deedbook import UnsupportedError
from log_bytes import flip
from logs import append_to, make_logs, payloads
from spark_session import finish, load, tuples, write

pytestmark = pytest.mark.spark

RECORDS = [b"record %d" % number for number in range(300)]


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from connect_server import connect_session

    with connect_session(tmp_path_factory.mktemp("connect")) as session:
        yield session


@pytest.mark.full
def test_connect_reads_the_rows_of_a_local_session(
    connected: Any, spark: Any, tmp_path: Path
) -> None:
    make_logs(tmp_path, RECORDS)
    for name in ("book", "wal", "pier", "nostr"):
        there, here = (tuples(load(one, tmp_path / name)) for one in (connected, spark))
        assert len(there) == (30 if name == "nostr" else 300)
        assert there == here, name


def test_options_a_schema_and_sql_reach_the_source(connected: Any, tmp_path: Path) -> None:
    append_to("book", tmp_path / "book", RECORDS)
    frame = load(connected, tmp_path / "book", "event bigint", start=10, end=20)
    assert [row.event for row in frame.collect()] == list(range(10, 20))
    connected.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW deeds USING deedbook OPTIONS (path '{tmp_path}/book')"
    )
    (found,) = connected.sql("SELECT count(*), max(event) FROM deeds").collect()
    assert tuple(found) == (300, 300)


def test_a_write_with_a_number_is_appended_once(connected: Any, tmp_path: Path) -> None:
    rows = connected.createDataFrame([(record,) for record in RECORDS], "payload binary")
    for name in ("wal", "book"):
        for _ in range(2):
            write(rows.coalesce(1), tmp_path / name, log=name, txnAppId="load", txnVersion=1)
        assert payloads(tmp_path / name) == RECORDS
    with pytest.raises(Exception, match="only appended to"):
        write(rows, tmp_path / "wal", mode="overwrite")
    assert payloads(tmp_path / "wal") == RECORDS


@pytest.mark.full
def test_restarted_connect_stream_copies_records_once(connected: Any, tmp_path: Path) -> None:
    for first in (0, 200):
        append_to("wal", tmp_path / "from", RECORDS[first : first + 200])
        reader = connected.readStream.format("deedbook").option("columns", "payload")
        stream = reader.option("maxRowsPerTrigger", 70).load(str(tmp_path / "from"))
        writer = stream.writeStream.format("deedbook").option("log", "wal")
        finish(writer, tmp_path / "checkpoint", tmp_path / "to")
    assert payloads(tmp_path / "to") == RECORDS


@pytest.mark.full
def test_connect_reports_damage_as_error_or_row(connected: Any, tmp_path: Path) -> None:
    append_to("book", tmp_path / "book", RECORDS)
    flip(tmp_path / "book" / "book.log", 2000)
    with pytest.raises(Exception, match=r"book\.log.*byte"):
        load(connected, tmp_path / "book").collect()
    found = load(connected, tmp_path / "book", mode="PERMISSIVE", columns="event").collect()
    bad = [row for row in found if row._corrupt_record is not None]
    assert len(bad) == 1 and len(found) >= 299


def test_each_job_is_refused_by_its_name(connected: Any, tmp_path: Path) -> None:
    from deedbook.spark import jobs

    names = ["compact", "export", "import_events", "ingest", "migrate", "migrate_pier"]
    for name in [*names, "stats", "verify"]:
        with pytest.raises(UnsupportedError, match=f"the job '{name}' needs the driver"):
            getattr(jobs, name)(connected, tmp_path / "a", tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
