"""A server of Spark Connect from the pip package, and its session next to the local session."""

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
from spark_session import require_spark


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextlib.contextmanager
def connect_session(directory: Path) -> Iterator[Any]:
    """Start a new server, and yield a session of a client; both end with the block."""
    require_spark()
    pytest.importorskip("grpc", reason="grpcio is not installed")
    pytest.importorskip("grpc_status", reason="grpcio-status is not installed")
    import pyspark

    home, port = Path(pyspark.__file__).parent, _free_port()
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
