"""A Spark session of a command of ours."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deedbook.spark import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]


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
