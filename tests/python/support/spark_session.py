"""Spark in tests: a local session, reads and writes and commands in it, drivers of a cluster."""

import atexit
import contextlib
import functools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest


def load(spark: Any, path: object, schema: str | None = None, **options: Any) -> Any:
    frame = spark.read.format("deedbook").options(**options)
    paths = [str(one) for one in path] if isinstance(path, list) else str(path)
    return (frame.schema(schema) if schema else frame).load(paths)


def tuples(frame: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in frame.collect()
    ]


def events(frame: Any) -> list[int]:
    return [row.event for row in frame.select("event").collect()]


def reader_of(path: object, **options: Any) -> Any:
    from deedbook.spark._read.reader import default_schema, make_reader

    given = {"path": str(path), **{name: str(value) for name, value in options.items()}}
    return make_reader(given, default_schema(given))


def rows_of(reader: Any, parts: Any = None) -> list[dict[str, Any]]:
    """The rows of these parts, or of all, read as executors do: pickled, each part separately."""
    parts = reader.partitions() if parts is None else parts
    there = pickle.loads(pickle.dumps(reader))
    given = [pickle.loads(pickle.dumps(part)) for part in parts]
    return [row for part in given for batch in there.read(part) for row in batch.to_pylist()]


def write(frame: Any, at: Path, mode: str = "append", **options: Any) -> None:
    frame.write.format("deedbook").mode(mode).options(**options).save(str(at))


def finish(writer: Any, checkpoint: Path, at: Path | None = None, **trigger: Any) -> Any:
    """Run a stream until all present input is read; raises its error, or returns the query."""
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(**(trigger or {"availableNow": True}))
    query = writer.start() if at is None else writer.start(str(at))
    try:
        query.awaitTermination(120)
        if query.exception() is not None:
            raise query.exception()
        assert not query.isActive, "the query does not end"
    finally:
        query.stop()
    return query


def forget_end(checkpoint: Path, batch: int) -> None:
    """As if Spark had died before noting a batch as done; Spark then repeats the batch."""
    (checkpoint / "commits" / str(batch)).unlink()
    (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def require_spark() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        pytest.skip("java is not installed")


@functools.cache
def local_session() -> Any:
    require_spark()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("deedbook-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir()) / "deedbook-warehouse"))
        .config("spark.python.worker.faulthandler.enabled", "true")
        .config("spark.python.unix.domain.socket.enabled", str(os.name == "posix").lower())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    atexit.register(session.stop)
    return session


@contextlib.contextmanager
def in_time_zone(spark: Any, zone: str) -> Iterator[None]:
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, zone)
    try:
        yield
    finally:
        spark.conf.set(name, before)


@contextlib.contextmanager
def shared_session(
    name: str, log: Path, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Replaces a command's session with the session of the tests, and leaves it running."""
    assert not settings, f"{name}: the session has those of the tests"
    yield local_session()


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run_here(words: Sequence[str], patch: pytest.MonkeyPatch) -> int:
    from deedbook._cli import main

    patch.setattr("deedbook._spark_session.session", shared_session)
    return main(words)


def kill_when(
    happened: Callable[[], bool], words: Sequence[object], look_every_s: float = 0.02
) -> None:
    """Start a command of ``deedbook``; after ``happened`` kill driver, JVM and workers."""
    from chaos.kills.processes import kill_all

    command = [sys.executable, "-m", "deedbook", *map(str, words)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as process:
        until = time.monotonic() + 120
        while not happened():
            assert process.poll() is None and time.monotonic() < until
            time.sleep(look_every_s)
        os.killpg(process.pid, signal.SIGKILL)
        kill_all(process.pid)  # the workers have another process group


def run_driver(
    script: str,
    master: str,
    *arguments: str,
    timeout_s: float = 120,
    environment: Mapping[str, str] | None = None,
) -> str:
    result = subprocess.run(
        [sys.executable, "-c", script, master, *arguments],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert result.returncode == 0, f"the driver failed\n{result.stdout}\n{result.stderr[-8000:]}"
    return result.stdout
