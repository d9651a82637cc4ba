"""What a small Spark task costs: with and without freezing, through TCP and Unix sockets.

``python benches/python/spark_tasks.py [--tasks 100] [--rounds 5]`` prints a table of medians: wall
seconds of a query of so many tasks of one block each, and the CPU seconds that Spark's Python
workers and its JVM spend meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK_BYTES = 64 << 10
EVENT_BYTES = 200


def cpu_seconds(root: int) -> dict[str, float]:
    """CPU of the Python workers and of the JVMs below a process, reaped children included."""
    parents, spent, names = {}, {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        values = fields.split()
        parents[int(entry.name)] = int(values[1])
        spent[int(entry.name)] = sum(map(int, values[11:15])) / os.sysconf("SC_CLK_TCK")
        names[int(entry.name)] = name
    total = {"python": 0.0, "jvm": 0.0}
    for process in parents:
        above = process
        while above in parents and above != root:
            above = parents[above]
        if above == root and process != root:
            total["jvm" if names[process] == "java" else "python"] += spent[process]
    return total


def plain_source() -> Any:
    """Deedbook's source without what it does once per worker."""
    from pyspark_deedbook import DefaultSource

    class Plain(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return "plain"

        def reader(self, schema: Any) -> Any:
            from pyspark.sql.datasource import DataSourceReader

            inner = super().reader(schema)

            class Reader(DataSourceReader):
                def partitions(self) -> Any:
                    return inner.partitions()

                def read(self, partition: Any) -> Iterator[Any]:
                    import deedbook.spark._rows as module

                    module.settle = lambda: None
                    return inner.read(partition)

            return Reader()

    return Plain


def measure(path: str, tasks: int, rounds: int, unix: bool) -> None:
    """Print one row per kind of source, in a session of its own."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.unix.domain.socket.enabled", str(unix).lower())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(plain_source())
    for kind in ("plain", "deedbook"):
        frame = spark.read.format(kind).options(splitSize=BLOCK_BYTES, columns="event").load(path)
        assert abs(frame.rdd.getNumPartitions() - tasks) <= 2
        frame.count()  # the workers start
        rows = []
        for _ in range(rounds):
            before, begun = cpu_seconds(os.getpid()), time.perf_counter()
            frame.count()
            wall, after = time.perf_counter() - begun, cpu_seconds(os.getpid())
            rows.append((wall, *(after[name] - before[name] for name in ("python", "jvm"))))
        wall, python, jvm = (statistics.median(column) for column in zip(*rows, strict=True))
        socket, frozen = ("Unix" if unix else "TCP"), ("yes" if kind == "deedbook" else "no")
        print(f"{socket:6}  {frozen:6}  {wall:7.2f}  {python:10.2f}  {jvm:7.2f}", flush=True)
    spark.stop()


def main() -> None:
    """Write a book, and measure both sockets in a process each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=2, metavar=("BOOK", "SOCKET"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        path, socket = options.measure
        measure(path, options.tasks, options.rounds, socket == "unix")
        return
    from deedbook import Book

    print("socket  frozen  wall s  Python CPU s  JVM CPU s")
    with tempfile.TemporaryDirectory() as directory:
        with Book.create(f"{directory}/book", durability="none") as book:
            per_block = -(-BLOCK_BYTES // (EVENT_BYTES + 24))
            book.append_many(bytes(EVENT_BYTES) for _ in range(options.tasks * per_block))
        for socket in ("tcp", "unix"):
            command = [sys.executable, __file__, "--measure", f"{directory}/book", socket]
            command += ["--tasks", str(options.tasks), "--rounds", str(options.rounds)]
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
            subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
