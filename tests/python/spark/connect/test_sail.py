"""Sail, an engine without a JVM: its own session, order of partitions and limits.

With ``DEEDBOOK_ENGINE=sail`` most tests next to these also run on Sail: ../conftest.py.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import deedbook
from deedbook import Book, EventStore, UnsupportedError, Wal
from log_bytes import flip
from logs import append_to, make_logs
from object_store import BUCKET, serving
from spark_session import forget_end, load, local_session, write

pytest.importorskip("pysail", reason="pysail is not installed: scripts/spark.sh has it")

import deltalake
import pyarrow.parquet as pq

from deedbook.spark import jobs

RECORDS = [b"record %d" % number for number in range(300)]


@pytest.fixture(scope="module")
def sail() -> Iterator[Any]:
    with jobs.sail_session() as session:
        yield session


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


def test_many_batches_wait_for_no_lock_of_python(sail: Any, tmp_path: Path) -> None:
    """Sail holds the GIL while a batch waits, so freeing a batch must not need the GIL."""
    append_to("book", tmp_path / "log", [b"x" * 100] * 200_000)
    rows = load(sail, tmp_path / "log", columns="event,jam,path", splitSize="4m", batchRows=50)
    found = rows.selectExpr("count(path)", "sum(length(jam))", "max(event)").collect()
    assert tuple(found[0]) == (200_000, 20_000_000, 200_000)


def test_a_stream_on_sail_is_refused(sail: Any, tmp_path: Path) -> None:
    """Sail hands a sink the batches of a stream as writes without a number."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines").write_text("a\nb\n")
    lines = sail.readStream.format("text").load((tmp_path / "in").as_uri())
    rows = lines.selectExpr("cast(value AS binary) AS payload")
    writer = rows.writeStream.format("deedbook").options(log="book", path=str(tmp_path / "log"))
    with pytest.raises(Exception, match="run the stream on Spark"):
        writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("first", ["spark", "sail"])
def test_an_export_goes_on_with_the_other_engine(sail: Any, tmp_path: Path, first: str) -> None:
    """Also a batch that the first engine planned, and did not write."""
    engines = {"spark": local_session(), "sail": sail}
    one, other = engines.pop(first), *engines.values()
    for count, session in enumerate((one, other, one)):
        append_to("book", tmp_path / "log", [b"%d" % count] * 1000)
        report = jobs.export(
            session, tmp_path / "log", tmp_path / "table", kind="delta", batch_bytes=16 << 10
        )
        assert report.rows == 1000 and report.batches > 1
        if session is one:
            forget_end(Path(report.checkpoint), report.last_batch or 0)
    assert jobs.export(other, tmp_path / "log", tmp_path / "table", kind="delta").batches == 1
    rows = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().sort_by("event")
    assert rows["event"].to_pylist() == list(range(1, 3001))


def test_partitions_have_any_name_and_value(sail: Any, tmp_path: Path) -> None:
    home = tmp_path / "a b"
    home.mkdir()
    append_to("book", home / "log", RECORDS)
    part = "p=CASE event % 4 WHEN 1 THEN 'a/b %' WHEN 2 THEN 'x=' WHEN 3 THEN 'ü' END"
    report = jobs.export(sail, home / "log", home / "table", kind="delta", partition_by=[part])
    assert report.rows == 300
    found = {file.parent.name: pq.read_metadata(file).num_rows for file in home.rglob("*.parquet")}
    assert {unquote(name): rows for name, rows in found.items()} == {
        "p=__HIVE_DEFAULT_PARTITION__": 75,
        "p=a/b %": 75,
        "p=x=": 75,
        "p=ü": 75,
    }


def test_commands_on_sail_answer_as_without(sail: Any, tmp_path: Path) -> None:
    make_logs(tmp_path, RECORDS)
    flip(tmp_path / "wal" / f"{0:020}.wal", 2000)

    def ran(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deedbook", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)

    paths = [tmp_path / name for name in ("book", "wal", "ledger", "nostr")]
    alone = ran("verify", "--json", *paths)
    shared = ran("spark", "verify", "--engine", "sail", "--json", *paths)
    assert (shared.stdout, shared.returncode) == (alone.stdout, alone.returncode) != ("", 0)
    assert shared.stderr == ""
    refused = ran("spark", "verify", "--engine", "sail", "--master", "local[2]", paths[0])
    assert refused.returncode == 2 and "is for Spark; Sail runs here" in refused.stderr
    with pytest.raises(UnsupportedError, match="Sail has none: choose Delta"):
        jobs.export(sail, paths[0], tmp_path / "table")
    with pytest.raises(UnsupportedError, match="the job 'ingest' needs Spark, not Sail"):
        jobs.ingest(sail, paths[0], tmp_path / "copy", format="book")


def test_an_interrupted_export_ends_at_once(tmp_path: Path) -> None:
    """Tasks of Sail are threads of the command, and some still run when it ends."""
    append_to("book", tmp_path / "log", [b"x" * 100] * 200_000)
    command = [sys.executable, "-m", "deedbook", "spark", "export", "--engine", "sail"]
    command += ["--format", "delta"]
    command += ["--batch-size", "1m", str(tmp_path / "log"), str(tmp_path / "table")]

    def files() -> int:
        return sum(1 for _ in tmp_path.rglob("part-*.parquet"))

    for _ in range(4):
        before = files()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while files() == before and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=20)[1]
        assert process.returncode == 130 and said.endswith("deedbook: interrupted\n"), said
    assert subprocess.run(command, check=False, timeout=200).returncode == 0
    rows = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table()["event"].to_pylist()
    assert sorted(rows) == list(range(1, 200_001))
