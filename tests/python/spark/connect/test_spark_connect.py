"""Source, sink and streams over Spark Connect; the jobs say that they do not run there."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.kills.processes import kill_all
from deedbook import UnsupportedError
from logs import append_to, make_logs, payloads
from spark_session import finish, load, require_spark, tuples, write

RECORDS = [b"record %d" % number for number in range(300)]


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require_spark()
    pytest.importorskip("grpc", reason="grpcio is not installed")
    pytest.importorskip("grpc_status", reason="grpcio-status is not installed")
    import pyspark

    home, directory = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("connect")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = int(listening.getsockname()[1])
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.warehouse.dir": directory / "warehouse",
        "spark.driver.memory": "768m",
    }
    command = [home / "bin" / "spark-submit", "--master", "local[2]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["spark-internal"]
    environment = {"SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    with (
        open(directory / "server.log", "w") as log,
        subprocess.Popen(
            list(map(str, command)),
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            cwd=directory,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as server,
    ):
        try:
            until = time.monotonic() + 60
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                said = (directory / "server.log").read_text()
                assert server.poll() is None and time.monotonic() < until, said[-4000:]
                time.sleep(0.1)
            # pyspark.sql's builder refuses a client next to the local session, so use the class.
            from pyspark.sql.connect.session import SparkSession

            session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
            try:
                yield session
            finally:
                session.stop()
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(20)
            kill_all(server.pid)


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


def test_each_job_is_refused_by_its_name(connected: Any, tmp_path: Path) -> None:
    from deedbook.spark import jobs

    names = ["compact", "export", "import_events", "ingest", "migrate", "migrate_pier"]
    for name in [*names, "verify"]:
        with pytest.raises(UnsupportedError, match=f"the job '{name}' needs the driver"):
            getattr(jobs, name)(connected, tmp_path / "a", tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
