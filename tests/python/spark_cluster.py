"""What the Spark tests share: a local session, commands in it, books by hand, a cluster's drivers.

Nothing here needs pyspark until it is called.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

DEED_FRAMING_BYTES = 24
HEADER_BYTES = 16


def encode_deed(jam: bytes, mug: int = 0) -> bytes:
    """A deed of the packed layout, made from the specification alone."""
    head = struct.pack("<QI", len(jam) + 4, mug) + jam
    return head + struct.pack("<IQ", zlib.crc32(head), len(jam) + 4)


def write_book(path: Path, jams: Sequence[bytes], mugs: Sequence[int] = (), first: int = 1) -> Path:
    """A book made from the specification alone, without Deedbook's own writer."""
    path.mkdir(parents=True)
    mugs = mugs or [0] * len(jams)
    deeds = b"".join(encode_deed(jam, mug) for jam, mug in zip(jams, mugs, strict=True))
    header = struct.pack("<IIQ", 0x424F4F4B, 1, first if jams else 0)
    (path / "book.log").write_bytes(header + deeds)
    (path / "meta.bin").write_bytes(bytes(256))
    return path


def deed_offsets(jams: Sequence[bytes]) -> list[int]:
    """The byte of each deed in the file of a packed book."""
    offsets, at = [], HEADER_BYTES
    for jam in jams:
        offsets.append(at)
        at += len(jam) + DEED_FRAMING_BYTES
    return offsets


def overwrite(file: Path, offset: int, data: bytes) -> None:
    """Write over bytes of a file."""
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def require_spark() -> None:
    """Skip the test where pyspark, pyarrow or Java is missing."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        pytest.skip("java is not installed")


@functools.cache
def local_session() -> Any:
    """The local session of two cores that all tests share; it ends with the process."""
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
    """Have a session say times in a zone, until the block ends."""
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
    """In place of a command's own session: that of the tests, which goes on."""
    assert not settings, f"{name}: the session has those of the tests"
    yield local_session()


def run_here(words: Sequence[str], patch: pytest.MonkeyPatch) -> int:
    """Run a command of ``deedbook`` in this process and in the tests' session; its exit code."""
    from deedbook.cli import main

    patch.setattr("deedbook.spark._session.session", shared_session)
    return main(words)


def kill_all(process: subprocess.Popen[Any]) -> None:
    """Kill a command that has a session of its own, and its JVM; wait until its workers have ended.

    These are a group of their own, and end when the JVM is gone: what comes next finds none of them
    at work. Where there is no /proc, nothing waits.
    """
    os.killpg(process.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    while _is_alive(process.pid):
        assert time.monotonic() < until, "a process of the command does not end"
        time.sleep(0.01)


def _is_alive(session: int) -> bool:
    """Whether a process of a session is left that has not ended."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, _, _, of = file.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in ("Z", "X"):
                return True
    return False


def run_driver(
    script: str,
    master: str,
    *arguments: str,
    timeout_s: float = 120,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a driver script in a process of its own; return what it prints.

    The script finds the master in ``sys.argv[1]`` and the arguments behind it.
    """
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
