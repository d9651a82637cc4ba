"""Streams of Spark: a query that runs repeatedly, and its reader without a query."""

from pathlib import Path
from typing import Any

import pytest

from logs import append_to
from spark_session import finish

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from deedbook.spark._read.reader import default_schema
from deedbook.spark._read.stream import DeedbookStreamReader, make_stream_reader

ALL = ReadAllAvailable()


class Query:
    def __init__(self, spark: Any, path: Path | str, checkpoint: Path, **options: Any) -> None:
        self._spark, self._path = spark, str(path)
        self._checkpoint, self._options = checkpoint, options
        self.batches: list[list[Any]] = []
        self.progress: list[Any] = []

    def run(self, **trigger: Any) -> list[Any]:
        before = len(self.batches)
        frame = self._spark.readStream.format("deedbook").options(**self._options)
        writer = frame.load(self._path).writeStream.foreachBatch(
            lambda batch, _: self.batches.append(batch.collect())
        )
        self.progress = finish(writer, self._checkpoint, **trigger).recentProgress
        return [row for batch in self.batches[before:] for row in batch]


def payloads(start: int, stop: int) -> list[bytes]:
    return [b"%d:" % number * (number % 30 + 1) for number in range(start, stop)]


def append(log: Path, start: int, stop: int, **options: Any) -> None:
    append_to("wal", log, payloads(start, stop), **options)


def reader(path: Path | str, **options: str) -> DeedbookStreamReader:
    given = {"path": str(path), **options}
    return make_stream_reader(given, default_schema(given))


def read(stream: DeedbookStreamReader, start: Any, stop: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for partition in stream.partitions(start, stop):
        for batch in stream.read(partition):
            rows += [tuple(row.values()) for row in batch.to_pylist()]
    return rows


def begin(stream: DeedbookStreamReader, limit: Any = ALL) -> tuple[Any, Any]:
    start = stream.initialOffset()
    return start, stream.latestOffset(start, limit)


def all_after(stream: DeedbookStreamReader, place: Any, limit: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    while (stop := stream.latestOffset(place, limit)) != place:
        rows += read(stream, place, stop)
        place = stop
    return rows
