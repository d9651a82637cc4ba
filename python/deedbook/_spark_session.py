"""A Spark session of a command, its errors, and UTC in a caller's session."""

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
# The last line of a traceback: an error, perhaps with its module, and the message. An error of the
# JVM follows a colon, on the line after the Python call. Sail calls the error of an earlier task an
# external error.
_LAST_LINE = re.compile(
    r"^(?:: |(?:RuntimeError: )?External error: )?(?:[A-Za-z_]\w*\.)*"
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
    """A session, stopped at the end; the output of the JVM goes into the file ``log``.

    Without ``master``, the master of spark-submit, or the cores of this machine.
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
        # An interrupted bridge logs tracebacks, without a handler to stderr.
        logging.root.addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"pyspark\.")
    with _stderr_to(log):
        spark = builder.getOrCreate()
        register(spark)
    try:
        spark.sparkContext.setLogLevel("WARN")
        # Spark finds the format through a worker. If the worker dies, Spark never finds the format.
        register(spark)
        yield spark
    finally:
        # After an interrupt at the terminal the JVM is gone already.
        with suppress(Exception):
            spark.stop()


@contextmanager
def in_utc(spark: SparkSession) -> Iterator[None]:
    """While entered, days, hours and the texts of times are in UTC, for any caller's session."""
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
    """The error of Deedbook that caused an error of Spark, without Spark's tracebacks.

    `JobFailedError` if Spark itself failed; other errors stay unchanged.
    """
    from pyspark.errors import PySparkException

    kinds: tuple[type[Exception], ...] = (PySparkException,)
    with suppress(ImportError):  # a client of Spark Connect has no bridge to a JVM
        from py4j.protocol import Py4JError

        kinds += (Py4JError,)
    if not isinstance(error, kinds):
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
