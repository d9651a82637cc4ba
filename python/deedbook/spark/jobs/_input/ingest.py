"""``ingest``: files of lines, Parquet files or logs into a log; a later run adds new records."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deedbook import InvalidArgumentError
from deedbook._formats import FORMATS, find, missing
from deedbook._show.json import why_not_json
from deedbook._system.sidecar import SIDECAR
from deedbook.spark._options.paths import local_path
from deedbook.spark._write.sinks import SINKS
from deedbook.spark.jobs._engine.run import Tell, runs_on
from deedbook.spark.jobs._engine.tasks import counter_of
from deedbook.spark.jobs._input.aside import Aside, Check
from deedbook.spark.jobs._input.lines import lines, stream_of
from deedbook.spark.jobs._input.stream import Destination, Ended, options_of_logs, run_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "BATCH_BYTES",
    "Counted",
    "IngestReport",
    "Kind",
    "OnBatch",
    "append_all",
    "ingest",
    "kind_of",
]

BATCH_BYTES = 1 << 30
"""Bytes of a batch. After a kill in the middle, a run repeats a batch."""

Kind = Literal["lines", "parquet", "log"]
OnBatch: TypeAlias = "Callable[[int, int, float], object]"
"""Gets the number, the rows and the seconds of a batch."""

_FILE, _ROW = "_deedbook_file", "_deedbook_row"
"""The place of a row of a Parquet file, until the rows of a batch are in order."""


@dataclass(frozen=True)
class IngestReport:
    """The result of `ingest`, or with ``dry_run`` the plan."""

    source: str
    """The source."""
    kind: Kind
    """The kind of the source."""
    log: str
    """The target log."""
    format: str
    """The format of the log."""
    checkpoint: str
    """The directory with the progress of the job."""
    batches: int
    """Batches appended in this run."""
    rows: int
    """Rows, or lines, read in this run."""
    bad: int
    """Lines put aside."""
    appended: int
    """Records appended in this run, without batches that the log had before."""
    last_batch: int | None
    """The last batch of this source in the log, from 0; None without a batch."""
    seconds: float
    """The duration of the run."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@runs_on("spark")
def ingest(
    spark: SparkSession,
    source: str | os.PathLike[str],
    log: str | os.PathLike[str],
    *,
    format: str | None = None,
    kind: Kind | None = None,
    column: str | None = None,
    check: Literal["json", "none"] = "json",
    aside: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batch_bytes: int = BATCH_BYTES,
    consumer: str | None = None,
    fail_on_data_loss: bool = True,
    dry_run: bool = False,
    progress: Tell | None = None,
    on_batch: OnBatch | None = None,
) -> IngestReport:
    """Append the records at ``source`` to a log, and in a later run the new records.

    ``source`` is a directory of files, a file or a glob: files of lines (also gzip and zstd), a
    record for each line, or Parquet files; or a log, or a directory of logs. ``kind`` names the
    kind, if the names do not show the kind. ``format`` is needed to create the log.

    Lines are ``check``-ed to be JSON. The first bad line ends the job. With a directory ``aside``,
    the bad lines go there as a Parquet table with file, line and reason, and the job goes on. From
    Parquet files, the log takes its columns by their names, or ``column`` as the payload.

    Files of a batch are taken in the order of their names, and their lines or rows in order. A file
    must be complete when the name appears; a file changed later is not read again.

    After a kill, begin the run again: it goes on at the same place. The ``checkpoint``, by default
    in ``LOG.jobs``, has the position in the source, and the log has the number of the last batch. A
    batch reads about ``batch_bytes``. ``on_batch`` is called with the number, the rows and the
    seconds of each appended batch.

    For logs, ``consumer`` and ``fail_on_data_loss`` are the options of the stream. WALs keep the
    unread records of a named consumer. With ``fail_on_data_loss=False`` the job goes on after a
    loss of unread records, with a warning.

    Raises `InvalidArgumentError` for a bad line, wrong columns and a missing checkpoint,
    `MissingError` for a missing source, `LockedError` if another process runs the job with this
    checkpoint, `JobFailedError`, and the errors of opening a log.
    """
    return append_all(
        spark,
        "ingest",
        str(local_path(os.fspath(source))),
        log,
        format=format,
        kind=kind,
        column=column,
        check=_check_json if check == "json" else _check_nothing,
        aside=aside,
        checkpoint=checkpoint,
        batch_bytes=batch_bytes,
        consumer=consumer,
        fail_on_data_loss=fail_on_data_loss,
        dry_run=dry_run,
        progress=progress,
        on_batch=on_batch,
    )


def append_all(
    spark: SparkSession,
    job: str,
    source: str,
    log: str | os.PathLike[str],
    *,
    format: str | None,
    kind: Kind | None = None,
    column: str | None = None,
    check: Check | None = None,
    aside: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None,
    batch_bytes: int,
    consumer: str | None = None,
    fail_on_data_loss: bool = True,
    keeps_numbers: bool = False,
    dry_run: bool,
    progress: Tell | None,
    on_batch: OnBatch | None = None,
) -> IngestReport:
    """Append the records at a path, for a job of this name; ``check`` is for lines."""
    found = kind or kind_of(source)
    to = Destination.of(job, source, log, format, checkpoint)
    last = to.last
    to.checkpoint.check(None if last is None else last.version)
    if found == "lines" and to.format == "nostr":
        raise InvalidArgumentError(
            f"{source} holds lines; import parses them and puts the events into an event store"
        )
    if found != "log" and (consumer is not None or not fail_on_data_loss):
        raise InvalidArgumentError(
            f"consumer and fail_on_data_loss are for logs, {source} holds {found}"
        )
    of_logs = options_of_logs(batch_bytes, consumer, fail_on_data_loss)
    counted = Counted(spark)
    rows = _rows_of(spark, found, source, to, column, batch_bytes, of_logs, counted, keeps_numbers)
    if dry_run:
        return _report(source, found, to, Ended(0, 0.0), counted, 0)
    aside_at = None if aside is None else str(local_path(os.fspath(aside), "aside"))
    totals = counted.totals
    appended: list[int] = []

    def write(frame: DataFrame, query: str, batch: int) -> None:
        taken = Aside(aside_at, to.checkpoint, query, batch, "not JSON")
        if found != "log" and last is not None and (last.query, last.version) == (query, batch):
            # An earlier run ended with this batch; files may be gone since.
            totals[0].add(frame.count())
            totals[1].add(taken.finish())
            return
        if found != "log":
            to.checkpoint.require_files(batch)
        if found == "lines":
            assert check is not None, "lines are checked"
            taken.begin()
            frame = frame.mapInArrow(
                lambda batches: taken.good(batches, check, totals), "payload binary"
            )
        else:
            if found == "parquet":
                frame = _in_order(frame)
            frame = frame.mapInArrow(counted.pass_on, frame.schema)
        appended.append(to.append(frame, query, batch))
        if found == "lines":
            taken.finish()

    report = None if on_batch is None else counted.each(on_batch)
    with to.checkpoint.alone(job):
        ended = run_stream(spark, job, rows, to.checkpoint, write, counted.look, progress, report)
    return _report(source, found, to, ended, counted, sum(appended))


class Counted:
    """The counts of tasks so far. A repeated task counts again."""

    def __init__(self, spark: SparkSession) -> None:
        self.bytes = counter_of(spark)
        self.totals = (counter_of(spark), counter_of(spark))

    @property
    def rows(self) -> int:
        """Rows or lines read."""
        return int(self.totals[0].value)

    @property
    def bad(self) -> int:
        """Bad lines among the lines."""
        return int(self.totals[1].value)

    @property
    def pass_on(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Counts the rows in a task, and passes the rows on."""
        totals, read = self.totals, self.bytes

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                totals[0].add(batch.num_rows)
                read.add(batch.nbytes)
                yield batch

        return count

    def each(self, on_batch: OnBatch) -> Callable[[int, float], None]:
        """For `run_stream`: reports the rows of each batch."""
        before = self.rows

        def report(batch: int, seconds: float) -> None:
            nonlocal before
            rows = self.rows
            on_batch(batch, rows - before, seconds)
            before = rows

        return report

    def look(self) -> tuple[int, int | None, str]:
        """For `watch`."""
        return int(self.bytes.value), None, f"{self.rows:,} rows"


def _report(
    source: str, kind: Kind, to: Destination, ended: Ended, counted: Counted, appended: int
) -> IngestReport:
    return IngestReport(
        source,
        kind,
        str(to.log),
        to.format,
        str(to.checkpoint.path),
        ended.batches,
        counted.rows,
        counted.bad,
        appended,
        to.committed,
        round(ended.seconds, 3),
    )


def kind_of(source: str) -> Kind:
    """The kind of a source, by formats and names."""
    if os.path.exists(source):
        names = [source]
        if _is_log(source):
            return "log"
        if os.path.isdir(source):
            children = sorted(os.scandir(source), key=lambda child: child.name)
            # A log in a file has a sidecar, so most of a million files need no look.
            maybe = any(child.name == SIDECAR for child in children)
            if any(_is_log(child.path) for child in children if maybe or child.is_dir()):
                return "log"
            names = [child.name for child in children]
    else:
        names = glob.glob(source)
        if not names:
            raise missing("no such file or directory, and no glob that matches", source)
        if any(map(_is_log, names)):
            return "log"
    return "parquet" if any(name.endswith(".parquet") for name in names) else "lines"


def _is_log(path: str) -> bool:
    """Whether the path has a log of any format. A file must certainly be a WAL."""
    if os.path.isdir(path):
        return find(path) is not None
    return any(info.is_there(path) for info in FORMATS)


def _rows_of(
    spark: SparkSession,
    kind: Kind,
    source: str,
    to: Destination,
    column: str | None,
    batch_bytes: int,
    of_logs: dict[str, Any],
    counted: Counted,
    keeps_numbers: bool,
) -> DataFrame:
    """The stream of records to append; for files of lines, the lines."""
    if kind == "lines":
        return lines(spark, source, batch_bytes, counted.bytes)
    renumbers = kind == "log" and not keeps_numbers
    if kind == "log":
        logs = spark.readStream.format("deedbook").options(**of_logs).load(source)
        return logs.select(*_columns(logs.columns, to, column, renumbers))
    files = spark.read.format("parquet").options(**stream_of(source)).load()
    reader = spark.readStream.format("parquet").schema(files.schema)
    rows = reader.options(maxBytesPerTrigger=batch_bytes, **stream_of(source)).load()
    return rows.select(*_columns(rows.columns, to, column, renumbers), *_place(rows))


def _place(rows: DataFrame) -> list[Any]:
    """The place of each row of Parquet files, because Spark sorts the files of a batch by size."""
    from pyspark.sql import functions as F

    place = rows.metadataColumn("_metadata")
    # Spark writes a file's path as a URL does, but for the plus sign.
    path = F.url_decode(F.replace(place["file_path"], F.lit("+"), F.lit("%2B")))
    return [path.alias(_FILE), place["row_index"].alias(_ROW)]


def _in_order(frame: DataFrame) -> DataFrame:
    """The rows of a batch in the order of the files' names, and in each file's order."""
    tasks = 2 * frame.sparkSession.sparkContext.defaultParallelism
    placed = frame.repartitionByRange(tasks, _FILE, _ROW).sortWithinPartitions(_FILE, _ROW)
    return placed.drop(_FILE, _ROW)


def _columns(
    names: Sequence[str], to: Destination, column: str | None, renumbers: bool
) -> list[Any]:
    """The columns for the log."""
    from pyspark.sql import functions as F

    sink = SINKS[to.format]
    if column is not None:
        return [F.col(column).alias(sink.columns[0].name)]
    left_out = {sink.numbered} if renumbers else set()  # another log counts in another way
    taken: list[Any] = []
    for one in sink.columns:
        known = [name for name in (one.name, *one.aliases) if name in names]
        if known and one.name not in left_out:
            taken.append(F.col(known[0]))
        elif one.is_needed:
            raise InvalidArgumentError(
                f"no column {' or '.join((one.name, *one.aliases))} among {', '.join(names)}: say"
                " which column is the payload"
            )
    return taken


def _check_json(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[str | None]]:
    lines: list[bytes] = batch["value"].to_pylist()  # type: ignore[assignment]
    reasons = [why_not_json(line) for line in lines]
    return _payloads(batch), reasons


def _check_nothing(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Sequence[str | None]]:
    return _payloads(batch), [None] * batch.num_rows


def _payloads(batch: pa.RecordBatch) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([batch["value"]], names=["payload"])
