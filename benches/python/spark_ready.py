"""A source of ready-made batches, at once or as a stream: the most that Python sources can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_measure import BATCH_ROWS, CORES, PAYLOAD_BYTES

MIB = 1 << 20
BATCH_OF_ARROW = 16 * MIB // (PAYLOAD_BYTES + 24)
"""As many rows in an Arrow batch as ours have: 16 MiB."""


def ready_source() -> Any:
    """The source ``ready``: one batch, again and again. Options: ``rows``, ``tasks``, ``size``.

    All is in one function, so that workers get it by value.
    """
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
    )
    from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

    def batches(rows: int, size: int) -> Iterator[Any]:
        import pyarrow as pa

        values = (
            pa.scalar(0, pa.int64()),
            pa.scalar(0, pa.int32()),
            pa.scalar(bytes(PAYLOAD_BYTES), pa.binary()),
        )
        arrays = [pa.repeat(value, size) for value in values]
        batch = pa.RecordBatch.from_arrays(arrays, names=["event", "mug", "jam"])
        while rows > 0:
            yield batch.slice(0, min(rows, size))
            rows -= size

    class Reader(DataSourceReader):
        def __init__(self, options: Any) -> None:
            self.rows, self.tasks, self.size = (
                int(options[name]) for name in ("rows", "tasks", "size")
            )

        def partitions(self) -> Any:
            return [InputPartition(self.rows // self.tasks) for _ in range(self.tasks)]

        def read(self, partition: Any) -> Iterator[Any]:
            return batches(partition.value, self.size)

    class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
        def __init__(self, options: Any) -> None:
            self.rows, self.size = int(options["rows"]), int(options["size"])

        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def getDefaultReadLimit(self) -> Any:
            return ReadMaxRows(BATCH_ROWS)

        def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
            return {"row": min(self.rows, start["row"] + limit.max_rows)}

        def reportLatestOffset(self) -> dict[str, int]:
            return {"row": self.rows}

        def prepareForTriggerAvailableNow(self) -> None:
            pass

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> Any:
            return [InputPartition((end["row"] - start["row"]) // CORES) for _ in range(CORES)]

        def read(self, partition: Any) -> Iterator[Any]:
            return batches(partition.value, self.size)

        def commit(self, end: dict[str, int]) -> None:
            pass

    class Ready(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ready"

        def schema(self) -> str:
            return "event bigint, mug int, jam binary"

        def reader(self, schema: Any) -> Any:
            return Reader(self.options)

        def streamReader(self, schema: Any) -> Any:
            return StreamReader(self.options)

    return Ready
