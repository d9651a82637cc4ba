"""A job that writes a stream, batch by batch, until nothing is left; resumable."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deedbook import ContiguityError, CorruptError, InvalidArgumentError, MissingError
from deedbook._formats import by_name, find, missing
from deedbook._spark_session import in_utc
from deedbook._system.lock import alone
from deedbook._system.regular import names_in, parse_json, read_small
from deedbook.jobs import Committed, CommittedTransaction
from deedbook.spark._options.options import parse
from deedbook.spark._options.paths import local_path
from deedbook.spark._write.checkpoint import files_of_batch, sync_checkpoint
from deedbook.spark._write.sinks import CREATED, SINKS
from deedbook.spark._write.writer import BatchWriter, Message, make_own_writer
from deedbook.spark.jobs._engine.run import Tell, watch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

__all__ = [
    "Checkpoint",
    "Destination",
    "Ended",
    "newest",
    "options_of_logs",
    "run_sink",
    "run_stream",
]

_QUERY: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}")


@dataclass(frozen=True)
class Checkpoint:
    """The directory with a job's position in a source for a target.

    The target notes the last batch of the source, so no batch is written twice.
    """

    target: str
    app: str
    """The name of job and source in the target's note of the last batch."""
    path: Path

    @classmethod
    def of(
        cls, job: str, source: str, target: Path, given: str | os.PathLike[str] | None
    ) -> Checkpoint:
        """By default in ``TARGET.jobs``."""
        digest = hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        base = re.sub(r"[^A-Za-z0-9.-]", "-", os.path.basename(source.rstrip("/*")))[-40:]
        app = f"{job}-{base}-{digest}"
        own = target.parent / f"{target.name}.jobs" / app
        return cls(str(target), app, local_path(os.fspath(given), "checkpoint") if given else own)

    @property
    def query(self) -> str | None:
        """The id of the checkpoint's query; None before the first run.

        Raises `CorruptError` for an id of another form than Spark's, because folders have the id as
        name.
        """
        file = self.path / "metadata"
        try:
            found = str(parse_json(read_small(file))["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not _QUERY.fullmatch(found):
            error = CorruptError(f"{file}: {found!r} is no id of a query")
            error.path = str(file)
            raise error
        return found

    @property
    def ended(self) -> int | None:
        """The last batch that Spark noted as done, after the target's commit; else None."""
        return newest(self.path / "commits")

    @property
    def begun(self) -> int | None:
        """The last batch that Spark planned, before any write to the target; else None."""
        return newest(self.path / "offsets")

    def alone(self, job: str) -> AbstractContextManager[None]:
        """While entered, no other process runs a job with the checkpoint.

        Two processes would repeat the same batch, and remove each other's bad lines.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        return alone(lock, f"runs {job} with the checkpoint {self.path}")

    def prepare(self) -> None:
        """Make the directory, and remove the files of a run killed before the first batch.

        Spark (4.3.0) writes the positions of batch 0 to a temporary file first, and forever refuses
        a checkpoint with this file and no batch (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY).
        """
        offsets = self.path / "offsets"
        self.path.mkdir(parents=True, exist_ok=True)
        names = names_in(offsets)
        if not any(name.isdecimal() for name in names):
            for name in names:
                if name.startswith("."):
                    (offsets / name).unlink()

    def require_files(self, batch: int) -> None:
        """Raise `MissingError` if a file of a planned batch is missing.

        Spark would leave out the file forever, because a planned file counts as read.
        """
        for file in sorted(files_of_batch(self.path, batch)):
            if not os.path.exists(file):
                raise missing(
                    f"batch {batch} of the checkpoint {self.path} reads this file, and it is not"
                    " there: put it back under this name",
                    file,
                )

    def check(self, committed: int | None, again: str | None = None) -> None:
        """Refuse to go on with a checkpoint and a target that do not belong together.

        Without the checkpoint, all records would be written twice. With an older copy of the
        checkpoint, new records would count as a repeat. Without the target, or with an older copy
        of the target, the missing records would stay missing. ``again`` names a further way for
        this target.
        """
        if committed is not None and self.query is None:
            raise InvalidArgumentError(
                f"{self.target} has batches 0 to {committed} of this source, and no checkpoint is"
                f" at {self.path}: everything would be written a second time; restore the last"
                " state of the checkpoint or say where it is"
            )
        begun = -1 if self.begun is None else self.begun
        if committed is not None and begun < committed:
            has = "no batch" if begun < 0 else f"only batches 0 to {begun}"
            raise ContiguityError(
                f"{self.target} has batches 0 to {committed} of this source, and the checkpoint"
                f" {self.path} knows {has}: it is of an earlier time, and what it reads next would"
                " be taken for a repeat; restore the last state of the checkpoint, or the target of"
                f" that time, too{'' if again is None else f', or {again}'}"
            )
        ended = self.ended
        first = 0 if committed is None else committed + 1
        if ended is not None and first <= ended:
            instead = again or (
                "remove the checkpoint and what is left of the target, to begin with the first"
                " record"
            )
            has = "none of this source" if committed is None else f"them up to {committed}"
            raise ContiguityError(
                f"the checkpoint {self.path} has batches 0 to {ended} as done, {self.target} has"
                f" {has}: batches {first} to {ended} are missing there; restore it, or {instead}"
            )


def newest(folder: Path) -> int | None:
    """The last batch that has a note in a folder, N or N.compact; None without a note."""
    try:
        numbers = [name.partition(".")[0] for name in os.listdir(folder)]
    except OSError:
        return None
    return max((int(number) for number in numbers if number.isdecimal()), default=None)


@dataclass(frozen=True)
class Destination:
    """The target log of a job."""

    log: Path
    format: str
    checkpoint: Checkpoint

    @classmethod
    def of(
        cls,
        job: str,
        source: str,
        log: str | os.PathLike[str],
        format: str | None,
        checkpoint: str | os.PathLike[str] | None,
    ) -> Destination:
        """Raises `InvalidArgumentError` for an unknown format, or if the log has another format."""
        path = local_path(os.fspath(log))
        asked = None if format is None else by_name(format)
        found = find(path) if path.exists() else None
        if found is not None:
            name, title = found.format.name, found.format.title
            if asked is not None and asked.name not in (name, SINKS[name].called):
                raise InvalidArgumentError(f"{path} holds a {title}, not a {asked.title}")
        elif asked is not None and asked.name in CREATED:
            name = asked.name
        else:
            raise InvalidArgumentError(
                f"no log at {path}: to create one, say its format: {', '.join(CREATED)}"
            )
        return cls(path, name, Checkpoint.of(job, source, path, checkpoint))

    @property
    def committed(self) -> int | None:
        """The last batch of the source in the log; None without a batch."""
        last = self.last
        return None if last is None else last.version

    @property
    def last(self) -> CommittedTransaction | None:
        """The last batch of the source in the log, with the batch's query."""
        try:
            with SINKS[self.format].open(self.log, "r", parse({}, None)) as log:
                done = log.transactions.committed()
        except MissingError:
            return None
        return next((one for one in done if one.app == self.checkpoint.app), None)

    def append(self, rows: DataFrame, query: str, batch: int) -> int:
        """Append a batch, as `commit`; returns how many records the log got, 0 for a repeat.

        Not by ``rows.write``, because Spark would commit in another process and return no result.
        """

        def stage(writer: BatchWriter) -> list[Message | None]:
            def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                import pyarrow as pa

                message = pickle.dumps(writer.write(batches))
                yield pa.RecordBatch.from_arrays(
                    [pa.array([message], pa.binary())], names=["message"]
                )

            found = rows.mapInArrow(run, "message binary").collect()
            return [pickle.loads(row.message) for row in found]

        return self.commit(rows.schema, query, batch, stage).records

    def commit(
        self,
        schema: StructType,
        query: str,
        batch: int,
        stage: Callable[[BatchWriter], list[Message | None]],
    ) -> Committed:
        """Append the records of the tasks that ``stage`` runs. A repeat appends nothing."""
        options = {
            "path": str(self.log),
            "log": SINKS[self.format].called,
            "txnAppId": self.checkpoint.app,
            "txnVersion": str(batch),
            "txnQuery": query,
        }
        writer = make_own_writer(options, schema)
        try:
            writer.commit([*stage(writer)])
        except BaseException:
            writer.abort([])
            raise
        assert writer.committed is not None, "set by a commit"
        return writer.committed


@dataclass(frozen=True)
class Ended:
    """The result of a stream that read all records."""

    batches: int
    seconds: float


def options_of_logs(
    batch_bytes: int, consumer: str | None, fail_on_data_loss: bool
) -> dict[str, Any]:
    """The options of a stream of logs for a job."""
    options: dict[str, Any] = {
        "maxBytesPerTrigger": batch_bytes,
        "failOnDataLoss": str(fail_on_data_loss).lower(),
    }
    return options | ({} if consumer is None else {"consumer": consumer})


def run_stream(
    spark: SparkSession,
    name: str,
    rows: DataFrame,
    checkpoint: Checkpoint,
    write: Callable[[DataFrame, str, int], None],
    look: Callable[[], tuple[int, int | None, str]] | None = None,
    progress: Tell | None = None,
    ended: Callable[[int, float], None] | None = None,
) -> Ended:
    """Give each batch of the source to ``write``, with the query's id and the batch's number.

    A batch that a killed run began comes again, with the same number. ``ended`` gets the number and
    the seconds of each written batch. Raises as `watch`.
    """
    begun = time.monotonic()
    batches: list[int] = []

    def write_batch(frame: DataFrame, batch: int) -> None:
        query = checkpoint.query
        assert query is not None, "Spark writes it before the first batch"
        began = time.monotonic()
        sync_checkpoint(str(checkpoint.path), batch)
        write(frame, query, batch)
        batches.append(batch)
        if ended is not None:
            ended(batch, time.monotonic() - began)

    _run(spark, name, rows.writeStream.foreachBatch(write_batch), checkpoint, look, progress)
    return Ended(len(batches), time.monotonic() - begun)


def run_sink(
    spark: SparkSession,
    name: str,
    rows: DataFrame,
    checkpoint: Checkpoint,
    table: Path,
    partition_by: Sequence[str],
    look: Callable[[], tuple[int, int | None, str]] | None = None,
    progress: Tell | None = None,
) -> Ended:
    """Let Spark's file sink add the batches to a table of Parquet files. Raises as `watch`."""
    begun, before = time.monotonic(), checkpoint.ended
    writer = rows.writeStream.format("parquet").partitionBy(*partition_by)
    _run(spark, name, writer.option("path", f"file://{table}"), checkpoint, look, progress)
    added = -1 if checkpoint.ended is None else checkpoint.ended
    return Ended(added - (-1 if before is None else before), time.monotonic() - begun)


def _run(
    spark: SparkSession,
    name: str,
    writer: DataStreamWriter,
    checkpoint: Checkpoint,
    look: Callable[[], tuple[int, int | None, str]] | None,
    progress: Tell | None,
) -> None:
    checkpoint.prepare()
    running: list[StreamingQuery] = []

    def work() -> None:
        at = f"file://{checkpoint.path}"
        with in_utc(spark):  # the names of folders say times, and no time zone
            query = writer.option("checkpointLocation", at).trigger(availableNow=True).start()
        running.append(query)
        query.awaitTermination()

    def stop() -> None:
        for query in running:
            query.stop()

    watch(spark, name, work, look, progress, stop)
