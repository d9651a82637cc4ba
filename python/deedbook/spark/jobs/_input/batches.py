"""The batches of logs on Sail, which has no streams.

The job plans each batch with the reader of streams, and keeps the plan in a checkpoint of Spark's
form. So either engine goes on where the other ended.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deedbook import CorruptError, UnsupportedError
from deedbook._system.durable import store_json, store_text, sync_folder
from deedbook._system.regular import parse_json, read_small
from deedbook.spark._read.reader import default_schema
from deedbook.spark._read.stream import make_stream_reader
from deedbook.spark.jobs._engine.run import Tell, watch
from deedbook.spark.jobs._engine.tasks import rows_of
from deedbook.spark.jobs._input.stream import Checkpoint, Ended

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Batches"]

_VERSION: Final = "v1"


class Batches:
    """The logs at a path, for a job that reads them in batches.

    Raises `InvalidArgumentError` for bad options, and `MissingError` without a log.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._schema = default_schema(options)
        self._reader = make_stream_reader(options, self._schema)

    def none(self) -> DataFrame:
        """No rows, with the columns of the logs."""
        return self._spark.createDataFrame([], self._schema)

    def run(
        self,
        name: str,
        checkpoint: Checkpoint,
        write: Callable[[DataFrame, str, int], None],
        look: Callable[[], tuple[int, int | None, str]] | None = None,
        progress: Tell | None = None,
    ) -> Ended:
        """As `run_stream`: ``write`` gets each batch up to the ends that the logs have now."""
        begun = time.monotonic()
        batches: list[int] = []
        stopped: list[bool] = []

        def work() -> None:
            checkpoint.prepare()
            if checkpoint.query is None:
                store_json(checkpoint.path / "metadata", {"id": str(uuid.uuid4())})
                sync_folder(checkpoint.path.parent)
            self._reader.prepareForTriggerAvailableNow()
            while not stopped and (planned := self._plan(checkpoint)) is not None:
                batch, start, end = planned
                query = checkpoint.query
                assert query is not None, "it is in the metadata"
                write(self._between(start, end), query, batch)
                done = {"nextBatchWatermarkMs": 0}
                _store(checkpoint.path / "commits" / str(batch), done)
                self._reader.commit(end)
                batches.append(batch)

        watch(self._spark, name, work, look, progress, lambda: stopped.append(True))
        return Ended(len(batches), time.monotonic() - begun)

    def _plan(self, checkpoint: Checkpoint) -> tuple[int, dict[str, Any], dict[str, Any]] | None:
        """The next batch with its offsets, stored; None if nothing is unread."""
        ended, begun = checkpoint.ended, checkpoint.begun
        batch = 0 if ended is None else ended + 1
        start = _offset(checkpoint, batch - 1) if batch else self._reader.initialOffset()
        if begun is not None and begun >= batch:  # a killed run may have written it
            return batch, start, _offset(checkpoint, batch)
        end = self._reader.latestOffset(start, self._reader.getDefaultReadLimit())
        if end == start:
            return None
        planned = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        _store(checkpoint.path / "offsets" / str(batch), planned, end)
        return batch, start, end

    def _between(self, start: dict[str, Any], end: dict[str, Any]) -> DataFrame:
        """The rows between two offsets, a task for each part."""
        reader = self._reader

        def read(parts: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
            for part in parts:
                yield from reader.read(pickle.loads(part))

        return rows_of(self._spark, reader.partitions(start, end), read, self._schema)


def _offset(checkpoint: Checkpoint, batch: int) -> dict[str, Any]:
    """The end of a batch. Raises `CorruptError`, and `UnsupportedError` for another form."""
    file = checkpoint.path / "offsets" / str(batch)
    data = read_small(file)
    version, *lines = data.splitlines() or [b""]
    if version != _VERSION.encode() or len(lines) != 2:
        raise UnsupportedError(
            f"{file}: version {version.decode(errors='replace')!r} with {len(lines)} lines, must be"
            f" {_VERSION!r} with 2"
        )
    try:
        found: dict[str, Any] = parse_json(lines[1])
    except ValueError as error:
        damage = CorruptError(f"{file}: {error}")
        damage.path = str(file)
        raise damage from None
    return found


def _store(file: Path, *lines: Mapping[str, Any]) -> None:
    store_text(file, "\n".join([_VERSION, *map(json.dumps, lines)]))
