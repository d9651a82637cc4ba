"""A Spark session of a command of ours, its errors, and UTC in a session of a caller's."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import deedbook
from deedbook import Error
from deedbook.spark import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobFailedError", "clear", "in_utc", "session"]

_TIME_ZONE: Final = "spark.sql.session.timeZone"
# The last line of a traceback: an error, by its module if it has another name, and what it says.
# An error of the JVM follows a colon, on the line after the Python call.
_LAST_LINE = re.compile(
    r"^(?:: )?(?:[A-Za-z_]\w*\.)*"
    r"([A-Za-z_]\w*(?:Error|Exception|Interrupt)|(?<=\.)[A-Z]\w*(?=: ))"
    r"(?:: (?!Traceback \()(.+))?$",
    re.M,
)


class JobFailedError(RuntimeError):
    """Spark could not do its part: an executor died too often, a file could not be read."""


@contextmanager
def session(
    name: str, log: Path, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session, stopped at the end; what the JVM has to say goes into the file ``log``.

    Without ``master`` it is the one that spark-submit says, else the cores of this machine.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    if master is None or master.startswith("local"):
        # The Python and the interface of this machine: the right ones for local workers only.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    ours = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    ours[_TIME_ZONE] = "UTC"  # else days begin where this machine's do
    if os.name == "posix":  # halves what a small task costs
        ours["spark.python.unix.domain.socket.enabled"] = "true"
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    if not logging.root.handlers:
        # The bridge logs tracebacks when it is interrupted, to stderr where there is no handler.
        logging.root.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    with _stderr_to(log):
        spark = builder.getOrCreate()
        register(spark)
    try:
        spark.sparkContext.setLogLevel("WARN")
        # Spark finds it by itself, by way of a worker, and if that dies it never does.
        register(spark)
        yield spark
    finally:
        # After an interrupt at the terminal the JVM is gone already.
        with suppress(Exception):
            spark.stop()


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """Days, hours and the texts of times are of UTC meanwhile, whatever a caller's session says."""
    before = str(spark.conf.get(_TIME_ZONE))
    spark.conf.set(_TIME_ZONE, "UTC")
    try:
        yield
    finally:
        spark.conf.set(_TIME_ZONE, before)


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Give the processes started meanwhile, the JVM above all, ``path`` as standard error."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def clear(error: BaseException) -> BaseException:
    """An error of Spark as the one of Deedbook that caused it, without Spark's tracebacks.

    `JobFailedError` where Spark itself failed; errors of others stay what they are.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException | Py4JError):
        return error
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return JobFailedError("Spark does not start; it needs Java 17 or newer")
    found: list[tuple[str, str]] = _LAST_LINE.findall(text)
    for name, message in reversed(found):
        kind: Any = getattr(deedbook, name, None)
        if isinstance(kind, type) and issubclass(kind, Error):
            cause: Error = kind(message)
            return cause
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    caused = found[-1][1] or found[-1][0] if found else first
    return JobFailedError(caused.strip())
