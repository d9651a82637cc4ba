"""``import``: files of Nostr events, a JSON line each, checked by executors, into a store."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.types import StructField, StructType

from deedbook import InvalidArgumentError
from deedbook.jobs import parse_events
from deedbook.spark._options.paths import local_path
from deedbook.spark._write.sinks import SINKS
from deedbook.spark._write.writer import BatchWriter, Message
from deedbook.spark.jobs._engine.run import Tell, runs_on
from deedbook.spark.jobs._input.aside import Aside
from deedbook.spark.jobs._input.ingest import BATCH_BYTES, Counted, OnBatch, kind_of
from deedbook.spark.jobs._input.lines import lines
from deedbook.spark.jobs._input.stream import Destination, run_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EventImportReport", "import_events"]

_CHECKS = ("id", "signature")
_AGAIN = "remove the checkpoint: all lines are read again, and no event is stored twice"
"""The way out if checkpoint and store do not belong together."""
_SCHEMA = StructType([StructField(one.name, one.types[0]) for one in SINKS["nostr"].columns])
"""The staged columns of an event."""


@dataclass(frozen=True)
class EventImportReport:
    """The result of this run of `import_events`, or with ``dry_run`` the counts."""

    source: str
    """The source of the lines."""
    store: str
    """The target event store."""
    check: str
    """The checks of each event in addition to the form."""
    checkpoint: str
    """The directory with the progress of the import."""
    aside: str
    """The directory of the bad lines, in a folder for each query and batch."""
    batches: int
    """Batches committed in this run."""
    lines: int
    """Lines read, empty ones included."""
    events: int
    """Good lines among all lines."""
    stored: int
    """Events stored by the commits of this run, also older versions of replaceable events."""
    bad: int
    """Lines without an event, or with a wrong or too large event; put aside."""
    seconds: float
    """The duration of the run."""

    @property
    def passed_over(self) -> int:
        """Good events not stored, as a single count of a commit.

        The store had these events already, or the kind is ephemeral, or the author deleted the
        event, or the event has expired. With ``dry_run``, all.
        """
        return self.events - self.stored

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "passed_over": self.passed_over}


@runs_on("spark")
def import_events(
    spark: SparkSession,
    source: str | os.PathLike[str],
    store: str | os.PathLike[str],
    *,
    check: Literal["id", "signature"] = "signature",
    aside: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batch_bytes: int = BATCH_BYTES,
    dry_run: bool = False,
    progress: Tell | None = None,
    on_batch: OnBatch | None = None,
) -> EventImportReport:
    """Store the events of JSON lines in an event store, created if missing.

    ``source`` is a directory of files, a file or a glob; the names of gzip and zstd files end with
    ``.gz`` and ``.zst``. The executors parse and ``check``: the id must be the hash of the content,
    and with ``signature`` the signature must be the author's. Bad lines are the same lines as for
    `EventStore.import_json`, with the same reasons. They go as a Parquet table with file, line,
    reason and the line itself into ``aside``, by default next to the checkpoint, and the rest goes
    on. The driver commits batch by batch, each of files of about ``batch_bytes``, by the rules of
    `EventStore.append`: events that are ephemeral, deleted by the author or expired are not stored.

    An event is stored once, after any repeat. After a kill, begin the run again: it goes on at the
    same place. ``checkpoint``, by default in ``STORE.jobs``, has the list of read files, and the
    store has the number of the last batch. Without the checkpoint the job checks all lines again,
    and stores nothing twice.

    ``on_batch`` is called with the number, the lines and the seconds of each stored batch.

    With ``dry_run`` the job checks all lines of the source, also the lines of earlier runs, and
    writes nothing.

    Raises `InvalidArgumentError` for a source without lines, `MissingError` for a missing source,
    `ContiguityError` for a store that lacks batches of the checkpoint and a checkpoint of an
    earlier time than the store, `LockedError` if another process imports with this checkpoint,
    `JobFailedError`, and the errors of `EventStore.open`.
    """
    if check not in _CHECKS:
        raise InvalidArgumentError(
            f"check {check!r}, must be one of {', '.join(_CHECKS)}: a transaction takes no event "
            "without its true id"
        )
    given = str(local_path(os.fspath(source)))
    kind = kind_of(given)
    if kind != "lines":
        what = "Parquet files" if kind == "parquet" else "a log"
        raise InvalidArgumentError(f"{given} holds {what}, not files of lines: see ingest")
    to = Destination.of("import", given, store, "nostr", checkpoint)
    ended_with = None
    if not dry_run:
        known = _of_query(to, to.checkpoint.query)
        ended_with = known.committed
        known.checkpoint.check(ended_with, _AGAIN)
    own_aside = f"{to.checkpoint.path}.bad"
    aside_at = own_aside if aside is None else str(local_path(os.fspath(aside), "aside"))
    counted = Counted(spark)
    found: list[_Done] = []
    stored: list[int] = []
    of_batch: list[int] = []

    def report(batch: int, seconds: float) -> None:
        if on_batch is not None and not dry_run:
            on_batch(batch, of_batch[-1], seconds)

    def write(frame: DataFrame, query: str, batch: int) -> None:
        if dry_run:
            found.extend(_run(frame, _Task(check, None, None), counted))
            return
        bad = Aside(aside_at, to.checkpoint, query, batch, "no event")
        if batch == ended_with:  # by a run before; files may be gone since
            found.extend(again := _run(frame, _Task(check, None, None), counted))
            of_batch.append(sum(one.lines for one in again))
            stored.append(0)
            bad.finish()
            return
        to.checkpoint.require_files(batch)
        bad.begin()
        done: list[_Done] = []

        def stage(writer: BatchWriter) -> list[Message | None]:
            done.extend(_run(frame, _Task(check, bad, writer), counted))
            return [one.message for one in done]

        committed = _of_query(to, query).commit(_SCHEMA, query, batch, stage)
        found.extend(done)
        of_batch.append(sum(one.lines for one in done))
        stored.append(committed.records)
        bad.finish()

    with ExitStack() as stack:
        own = to.checkpoint
        if dry_run:
            own = replace(own, path=Path(stack.enter_context(TemporaryDirectory())))
        else:
            stack.enter_context(own.alone("import"))
        rows = lines(spark, given, batch_bytes, counted.bytes)
        ended = run_stream(spark, "import", rows, own, write, counted.look, progress, report)
    return EventImportReport(
        given,
        str(to.log),
        check,
        str(to.checkpoint.path),
        aside_at,
        ended.batches,
        sum(one.lines for one in found),
        sum(one.events for one in found),
        sum(stored),
        sum(one.bad for one in found),
        round(ended.seconds, 3),
    )


def _of_query(to: Destination, query: str | None) -> Destination:
    """The store for a query: each checkpoint is an application of its own.

    The job then notices a store that lacks batches. After the loss of a checkpoint, the store
    accepts a new checkpoint.
    """
    if query is None:
        return to
    return replace(to, checkpoint=replace(to.checkpoint, app=f"{to.checkpoint.app}-{query}"))


@dataclass(frozen=True)
class _Done:
    """The result of a task for the driver. A failed attempt returns nothing."""

    message: Message | None
    lines: int
    events: int
    bad: int


def _run(frame: DataFrame, task: _Task, counted: Counted) -> list[_Done]:
    """Run a task for each partition of lines."""
    totals = counted.totals

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        done = pickle.dumps(task.run(batches, totals))
        yield pa.RecordBatch.from_arrays([pa.array([done], pa.binary())], names=["done"])

    rows = frame.mapInArrow(run, "done binary").collect()
    return [pickle.loads(row.done) for row in rows]


class _Task:
    """Parses and checks lines, puts bad ones aside and stages the events. Pickled to every task.

    Without a writer it only counts.
    """

    def __init__(self, check: Any, aside: Aside | None, writer: BatchWriter | None) -> None:
        self._check = check
        self._aside = aside
        self._writer = writer

    def run(self, batches: Iterator[pa.RecordBatch], shared: tuple[Any, Any]) -> _Done:
        """In a task. ``shared`` are accumulators of lines and bad lines."""
        lines, bad = (_Count(one) for one in shared)
        events = _Count()
        staged = self._events(batches, lines, bad, events)
        if self._writer is None:
            for _ in staged:
                pass
            message = None
        else:
            message = self._writer.write(staged)
        return _Done(message, lines.value, events.value, bad.value)

    def _events(
        self, batches: Iterator[pa.RecordBatch], lines: _Count, bad: _Count, events: _Count
    ) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        for batch in self._parsed(batches, lines, bad):
            # An empty line has no columns, too.
            good = batch.filter(pc.is_valid(batch["id"])).select(_SCHEMA.names)
            events.add(good.num_rows)
            yield good

    def _parsed(
        self, batches: Iterator[pa.RecordBatch], lines: _Count, bad: _Count
    ) -> Iterator[pa.RecordBatch]:
        if self._aside is not None:
            yield from self._aside.good(batches, self._parse, (lines, bad))
            return
        for batch in batches:
            parsed, errors = self._parse(batch)
            lines.add(batch.num_rows)
            bad.add(sum(error is not None for error in errors))
            yield parsed

    def _parse(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[str | None]]:
        import pyarrow as pa

        parsed = pa.record_batch(parse_events(batch, check=self._check))
        errors: list[Any] = parsed["error"].to_pylist()
        return parsed, errors


class _Count:
    """A number of this attempt, and a sum of all attempts to show progress."""

    def __init__(self, shared: Any = None) -> None:
        self.value = 0
        self._shared = shared

    def add(self, more: int) -> None:
        self.value += more
        if self._shared is not None:
            self._shared.add(more)
