"""A standalone cluster of Spark on this machine: a master, and nodes of one core each."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from chaos.kills.processes import await_end, is_executor, is_python_worker, kill_all, session
from deedbook._system.regular import create_new

SETTINGS: Final = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.speculation": "true",
    # As eager as possible: many tasks get a second attempt, and both attempts end.
    "spark.speculation.interval": "20ms",
    "spark.speculation.minTaskRuntime": "10ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.task.duration.threshold": "100ms",
    "spark.speculation.efficiency.enabled": "false",
}
"""Spark settings of a driver on the cluster: the size of a node, and speculation."""

_DEFAULTS: Final = "spark-defaults.conf"
_HOST: Final = "127.0.0.1"
_NODE_MEMORY: Final = "600m"
_START_SECONDS: Final = 60.0
_DEPLOY: Final = "org.apache.spark.deploy"


class Cluster:
    """A running cluster. A node is a Worker of Spark with its executor."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = _free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._nodes: list[subprocess.Popen[bytes]] = []
        self.environment: Final = {"SPARK_CONF_DIR": str(directory / "conf")}
        """Variables of drivers: the place of Spark's secret. Whoever has the secret runs code as
        this user. So the secret is in a file of this user, not in an argument."""
        self.master = f"spark://{_HOST}:{self._port}"

    def start(self, nodes: int) -> None:
        """Start the master and the nodes. Raises OSError if the master does not listen."""
        conf = self._directory / "conf"
        conf.mkdir(0o700)
        with create_new(conf / _DEFAULTS) as file:
            secret = secrets.token_hex(32)
            file.write(f"spark.authenticate true\nspark.authenticate.secret {secret}\n".encode())
        self._master = self._started("master.Master", _HOST, "--port", str(self._port))
        _await_port(self._port, self._master)
        self._nodes = [self._node(number) for number in range(nodes)]

    def stop(self) -> None:
        for process in [*self._nodes, *([self._master] if self._master else [])]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # also without /proc
            kill_all(process.pid)
            process.wait()
        self._nodes, self._master = [], None

    def executors(self) -> list[tuple[int, int]]:
        return [(pid, node) for node in self.pids for pid in session(node) if is_executor(pid)]

    def python_workers(self) -> list[tuple[int, int]]:
        return [(pid, node) for node in self.pids for pid in session(node) if is_python_worker(pid)]

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self._nodes]

    def kill_node(self, number: int) -> None:
        """SIGKILL a node: Worker, executor and Python workers; then start another node."""
        kill_all(self._nodes[number].pid)
        self._nodes[number].wait()
        self._nodes[number] = self._node(number)

    def await_idle(self, timeout_seconds: float) -> bool:
        return not await_end([pid for pid, _ in self.executors()], timeout_seconds)

    def _node(self, number: int) -> subprocess.Popen[bytes]:
        size = ["--cores", "1", "--memory", _NODE_MEMORY]
        work = ["--work-dir", str(self._directory / f"{number}")]
        # Separate hosts, because Spark makes no second attempt on the host of the first.
        host = f"127.0.0.{number + 1}" if sys.platform.startswith("linux") else _HOST
        return self._started("worker.Worker", host, self.master, *size, *work)

    def _started(self, name: str, host: str, *arguments: str) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        environment = {
            **os.environ,
            **self.environment,
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self._directory),
        }
        ends = ["--host", host, "--webui-port", "0"]
        with (self._directory / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{name}", *arguments, *ends],
                env=environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@contextmanager
def standalone_cluster(directory: Path, nodes: int = 2) -> Iterator[Cluster]:
    """A cluster on loopback with its files in a directory, killed at the end."""
    cluster = Cluster(directory)
    try:
        cluster.start(nodes)
        yield cluster
    finally:
        cluster.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.2)
