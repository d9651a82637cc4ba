"""``import``: files of Nostr events, a JSON line each, checked by the executors, into a store."""

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
from deedbook.spark._paths import local_path
from deedbook.spark._sinks import SINKS
from deedbook.spark._writer import BatchWriter, Message
from deedbook.spark.jobs._aside import Aside
from deedbook.spark.jobs._ingest import BATCH_BYTES, Counted, OnBatch, kind_of
from deedbook.spark.jobs._lines import lines
from deedbook.spark.jobs._run import Tell, beside_the_driver
from deedbook.spark.jobs._stream import Destination, run_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EventImportReport", "import_events"]

_CHECKS = ("id", "signature")
_AGAIN = "remove the checkpoint: all lines are read again, and no event is stored twice"
"""What is possible, too, where checkpoint and store do not belong together."""
_SCHEMA = StructType([StructField(one.name, one.types[0]) for one in SINKS["nostr"].columns])
"""What is staged of an event."""


@dataclass(frozen=True)
class EventImportReport:
    """What `import_events` did in this run, or with ``dry_run`` found."""

    source: str
    """The lines that were read."""
    store: str
    """The event store that got them."""
    check: str
    """What was checked of each event besides its form."""
    checkpoint: str
    """Where it is noted how far the import came."""
    aside: str
    """Where the bad lines are, in a folder for each query and batch."""
    batches: int
    """Batches that were committed in this run."""
    lines: int
    """Lines read, empty ones included."""
    events: int
    """Good ones among them."""
    stored: int
    """Events that the commits of this run stored, also those of which a newer version counts."""
    bad: int
    """Lines that are no event, or a wrong or too large one; put aside."""
    seconds: float
    """How long it took."""

    @property
    def passed_over(self) -> int:
        """Good events that were not stored, which a commit counts together.

        They were there already, their kind is ephemeral, their author deleted them, or their time
        is over. With ``dry_run``, all.
        """
        return self.events - self.stored

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "passed_over": self.passed_over}


@beside_the_driver
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
    """Store the events of JSON lines in an event store, which is made if it is missing.

    ``source`` is a directory of files, a file or a glob; gzip and zstd are known by ``.gz`` and
    ``.zst``. The executors parse and ``check``: that an id is the hash of the content, and with
    ``signature`` also that the signature is the author's. A line is bad where
    `EventStore.import_json` says so, for the same reason; bad ones go as a Parquet table with file,
    line, reason and the line itself into ``aside``, by default beside the checkpoint, and the rest
    goes on. The driver commits batch by batch, each of files of about ``batch_bytes``, by the rules
    of `EventStore.append`: what is ephemeral, deleted by its author or over is not stored.

    An event is stored once, whatever is repeated. A run that was killed goes on where it was, once
    it is begun again: ``checkpoint``, by default in ``STORE.jobs``, knows which files were read,
    and the store which batches of it it has. Without the checkpoint all lines are checked again,
    and nothing is stored twice.

    ``on_batch`` is called with the number, the lines and the seconds of each batch that the store
    has.

    With ``dry_run`` all lines of the source are checked, also those of a run before, and nothing is
    written.

    Raises `InvalidArgumentError` for a source that holds no lines, `MissingError` for one that is
    not there, `ContiguityError` for a store that lacks batches of the checkpoint and a checkpoint
    of an earlier time than the store, `LockedError` where another process imports with this
    checkpoint, `JobFailedError`, and as `EventStore.open`.
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
    """The store as a query knows it: each checkpoint is an application of its own.

    So a store that lacks batches is noticed, and one whose checkpoint is lost takes another.
    """
    if query is None:
        return to
    return replace(to, checkpoint=replace(to.checkpoint, app=f"{to.checkpoint.app}-{query}"))


@dataclass(frozen=True)
class _Done:
    """What a task returns to the driver. An attempt that failed returns nothing."""

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
            # Of a line that is empty, too, there is nothing.
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
    """A number of this attempt, and what all attempts add to, which shows progress."""

    def __init__(self, shared: Any = None) -> None:
        self.value = 0
        self._shared = shared

    def add(self, more: int) -> None:
        self.value += more
        if self._shared is not None:
            self._shared.add(more)
