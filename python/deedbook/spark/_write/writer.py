"""Writing: tasks stage records, the driver commits them once."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from deedbook import Error, InvalidArgumentError, LockedError, MissingError, UnsupportedError
from deedbook import _jobs as jobs
from deedbook._system.regular import parse_json, read_small
from deedbook.jobs import Committed, StagedPart
from deedbook.spark._options.options import ReadOptions, parse
from deedbook.spark._options.paths import input_paths, local_path
from deedbook.spark._options.schema import as_struct
from deedbook.spark._worker import settle
from deedbook.spark._write.checkpoint import sync_checkpoint
from deedbook.spark._write.sinks import CREATED, SINKS, Sink, bind_columns, check_layout
from deedbook.spark._write.staging import stage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchWriter", "Message", "make_own_writer", "make_stream_writer", "make_writer"]

_log = logging.getLogger("deedbook")

_PAUSE_SECONDS = 0.05


@dataclass
class Message(WriterCommitMessage):
    """The message of a task to the driver: the staged records, and the query of a stream."""

    job: str
    parts: list[StagedPart] = field(default_factory=list)
    query: str | None = None


def make_writer(
    options: Mapping[str, str], schema: StructType | pa.Schema, overwrite: bool
) -> BatchWriter:
    """The writer of ``df.write``. Runs all checks that are possible before tasks run."""
    if overwrite:
        raise InvalidArgumentError(
            "mode overwrite: a log is only appended to; use mode append, or write to a new path"
        )
    if not isinstance(schema, StructType) and "checkpointlocation" in map(str.lower, options):
        raise UnsupportedError(  # Sail passes a stream's batches as plain writes
            "option checkpointLocation: Sail gives a stream's batches no numbers, so the log would"
            " get a repeated batch twice; run the stream on Spark"
        )
    target = _target(options, as_struct(schema))
    if (target.options.txn_app_id is None) != (target.options.txn_version is None):
        raise InvalidArgumentError("options txnAppId and txnVersion go together")
    if target.options.txn_query is not None and target.options.txn_app_id is None:
        raise InvalidArgumentError("option txnQuery goes together with txnAppId and txnVersion")
    return BatchWriter(target, jobs.named(target.owner, uuid.uuid4().hex[:12]))


def make_own_writer(options: Mapping[str, str], schema: StructType) -> BatchWriter:
    """The writer of a job with its own tasks and a commit in this process."""
    return BatchWriter(_target(options, schema), jobs.named(jobs.owner(), uuid.uuid4().hex[:12]))


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> StreamWriter:
    """The writer of a batch of ``df.writeStream``."""
    if overwrite:
        raise InvalidArgumentError(
            "output mode complete: a log is only appended to; use output mode append, or write each"
            " batch with foreachBatch"
        )
    target = _target(options, schema)
    if target.options.txn_version is not None:
        raise InvalidArgumentError("option txnVersion: of a stream it is the number of the batch")
    if target.options.txn_query is not None:
        raise InvalidArgumentError("option txnQuery: of a stream it is its own id")
    return StreamWriter(target, options.get("checkpointlocation"))


@dataclass(frozen=True)
class Target:
    """The log to write to. Pickled to every task."""

    format: str
    path: str
    options: ReadOptions
    columns: Mapping[str, int]
    owner: str

    @property
    def sink(self) -> Sink:
        """The sink of the log's format."""
        return SINKS[self.format]

    def stage(self, batches: Iterator[pa.RecordBatch], job: str) -> list[StagedPart]:
        """In a task: stage the task's records."""
        settle()
        log = self.sink.open(Path(self.path), "r", self.options)
        with log:
            return stage(log.transactions, batches, job, self.sink, self.columns)

    def commit(
        self,
        job: str,
        messages: Sequence[Message | None],
        app: str | None,
        version: int | None,
        query: str | None,
    ) -> Committed:
        """On the driver: append the tasks' staged records, and remove dead stages."""
        parts = [part for message in messages if message is not None for part in message.parts]
        with self._locked() as log:
            done: Committed = log.transactions.publish(
                job, parts, app=app, version=version, query=query
            )
            if done.repeated:
                _log.warning(
                    "%s: %s %s is there already; not appended again", self.path, app, version
                )
            try:
                jobs.vacuum(log.transactions)
            except Error as error:  # the records are there
                _log.warning("%s: staged files were not removed: %s", self.path, error)
        return done

    def _locked(self) -> Any:
        """The log, open for writing, once no other process holds the lock."""
        begun = time.monotonic()
        while True:
            try:
                return self.sink.open(Path(self.path), "a", self.options)
            except LockedError as error:
                waited = time.monotonic() - begun
                if waited >= self.options.lock_timeout:
                    raise LockedError(
                        f"{error}; waited {waited:.0f} s, as option lockTimeout says"
                    ) from error
            time.sleep(_PAUSE_SECONDS)

    def discard(self, job: str) -> None:
        """On the driver: remove the stages of an aborted job, unless the commit has begun."""
        try:
            with self.sink.open(Path(self.path), "r", self.options) as log:
                if not log.transactions.discard(job):
                    _log.warning(
                        "%s: the commit of job %s had begun: the next writer ends it",
                        self.path,
                        job,
                    )
        except Error as error:  # Spark shows the job's own error
            _log.warning("%s: staged files of job %s are left: %s", self.path, job, error)


class BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame."""

    def __init__(self, target: Target, job: str) -> None:
        self._target = target
        self._job = job
        self.committed: Committed | None = None
        """The result of the commit, in the calling process."""

    def write(  # type: ignore[override]
        self, iterator: Iterator[pa.RecordBatch]
    ) -> Message:
        """In a task: stage the task's records."""
        return Message(self._job, self._target.stage(iterator, self._job))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: append the staged records."""
        options = self._target.options
        given = _messages(messages)
        self.committed = self._target.commit(
            self._job, given, options.txn_app_id, options.txn_version, options.txn_query
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """On the driver: remove the staged records. Spark also calls this after a failed commit."""
        self._target.discard(self._job)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes a batch of a stream. Spark makes a writer for the tasks, and another to commit."""

    def __init__(self, target: Target, checkpoint: str | None) -> None:
        self._target = target
        self._checkpoint = checkpoint

    def write(  # type: ignore[override]
        self, iterator: Iterator[pa.RecordBatch]
    ) -> Message:
        """In a task: stage the task's records."""
        context = TaskContext.get()
        assert context is not None, "called in tasks only"
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        assert query is not None and batch is not None, "set by Spark for the tasks of a stream"
        job = self._job(query, int(batch))
        return Message(job, self._target.stage(iterator, job), query)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: append the records, unless the log has this batch of this query."""
        given = _messages(messages)
        query = self._query(given)
        if query is None:
            raise InvalidArgumentError(
                f"batch {batchId} has no rows, and its query's id is not in the checkpoint"
                f" {self._checkpoint} either"
            )
        if self._checkpoint is not None:
            sync_checkpoint(self._checkpoint, batchId)
        job = next((one.job for one in given), self._job(query, batchId))
        app = self._target.options.txn_app_id or query
        self._target.commit(job, given, app, batchId, query)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver: remove the staged records. Spark also calls this after a failed commit."""
        given = _messages(messages)
        query = self._query(given)
        if query is not None:
            self._target.discard(next((one.job for one in given), self._job(query, batchId)))

    def _job(self, query: str, batch: int) -> str:
        return jobs.named(self._target.owner, query, str(batch))

    def _query(self, messages: Sequence[Message]) -> str | None:
        """The id of the query, from a message or from the checkpoint."""
        for message in messages:
            if message.query is not None:
                return message.query
        if self._checkpoint is not None:
            with suppress(OSError, ValueError, KeyError, TypeError, InvalidArgumentError):
                metadata = local_path(self._checkpoint) / "metadata"
                return str(parse_json(read_small(metadata))["id"])
        return None


def _messages(messages: Sequence[WriterCommitMessage | None]) -> list[Message]:
    return [message for message in messages if isinstance(message, Message)]


def _target(options: Mapping[str, str], schema: StructType) -> Target:
    """The log at the path, created if missing."""
    parsed = parse(options, scope="write")
    paths = input_paths(options)
    if len(paths) > 1:
        raise InvalidArgumentError(f"option path: one log is written to, not {', '.join(paths)}")
    path = local_path(paths[0], "option path")
    name = _format_at(path, parsed)
    sink = SINKS[name]
    columns = bind_columns(sink, schema)
    try:
        with sink.open(path, "r", parsed) as log:
            check_layout(log, path)
    except MissingError:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(LockedError):  # another process is creating it
            sink.open(path, "a", parsed).close()
    return Target(name, str(path), parsed, columns, jobs.owner("java"))


def _format_at(path: Path, options: ReadOptions) -> str:
    from deedbook._formats import detect

    found = detect(path) if path.exists() else None
    if options.log is not None:
        if found is not None and options.log == SINKS[found].called:
            return found
        if found is not None:
            raise InvalidArgumentError(
                f"option log: {options.log} is to be written, at {path} lies a {found}"
            )
        return options.log
    if found is None:
        raise InvalidArgumentError(
            f"no log at {path}; option log says which to create: {', '.join(CREATED)}"
        )
    return found
