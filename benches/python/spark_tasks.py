"""The cost of a small task: with and without freezing, through TCP and Unix sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_measure import PAYLOAD_BYTES, Row, Sizes, book, cost, deedbook, medians, session

BLOCK_BYTES = 64 << 10
BLOCKS = 132
"""The blocks become about a hundred tasks: a part ends at the first border after its size."""


def plain_source() -> Any:
    """Deedbook's source without its work once per worker."""
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
                    import deedbook.spark._read.rows as module

                    module.settle = lambda: None
                    return inner.read(partition)

            return Reader()

    return Plain


def nothing_source() -> Any:
    """A source with as many tasks as an option names; each task yields one row."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def __init__(self, tasks: int) -> None:
            self.tasks = tasks

        def partitions(self) -> Any:
            return [InputPartition(number) for number in range(self.tasks)]

        def read(self, partition: Any) -> Iterator[Any]:
            yield (0,)

    class Nothing(DataSource):
        @classmethod
        def name(cls) -> str:
            return "nothing"

        def schema(self) -> str:
            return "event bigint"

        def reader(self, schema: Any) -> Any:
            return Reader(int(self.options["tasks"]))

    return Nothing


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about tasks."""
    per_block = -(-BLOCK_BYTES // (PAYLOAD_BYTES + 24))
    path = book(place / "book", BLOCKS * per_block)
    rows = []
    for socket, unix in (("Unix sockets", "true"), ("TCP", "false")):
        spark = session(spark_python_unix_domain_socket_enabled=unix)
        for source in (plain_source(), nothing_source()):
            spark.dataSource.register(source)
        options = {"splitSize": BLOCK_BYTES, "columns": "event"}
        ours = deedbook(spark, path, **options)
        tasks = ours.rdd.getNumPartitions()
        assert 90 <= tasks <= 110, tasks
        plain = spark.read.format("plain").options(**options).load(path)
        nothing = spark.read.format("nothing").option("tasks", tasks).load()
        found = medians(
            {
                "Deedbook": ours.count,
                "Deedbook, not frozen": plain.count,
                "a source that does nothing": nothing.count,
            },
            sizes.rounds,
        )
        spark.stop()
        what = f"{tasks} tasks, {socket}"
        by = "Python's CPU"
        rows.append(cost(what, "Deedbook", "a source that does nothing", found, by, 0.4))
        rows.append(cost(what, "Deedbook", "Deedbook, not frozen", found, by, 0.4))
        rows[-1].asked = None
    return rows
