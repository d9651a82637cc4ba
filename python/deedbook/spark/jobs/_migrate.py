"""``migrate``: the records of logs into a log of another format, verified."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deedbook import Book, CorruptError, InvalidArgumentError
from deedbook._formats import find
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.steps import Steps
from deedbook.spark._options.options import parse
from deedbook.spark._options.paths import local_path
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._worker import settle
from deedbook.spark._write.sinks import SINKS
from deedbook.spark.jobs._engine.run import Tell, runs_on, watch
from deedbook.spark.jobs._input.ingest import BATCH_BYTES, IngestReport, append_all
from deedbook.spark.jobs._migrate_pier import is_lmdb_pier

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MigrateReport", "migrate"]

_PAYLOAD = {"book": "jam", "wal": "payload", "ledger": "payload"}
_SUMS = "part int, records bigint, plain string, weighted string"
_MODULUS = 1 << 64
_STEP = 1 << 14
"""Rows whose products of 32 bits, summed up, fit in 63."""


@dataclass(frozen=True)
class MigrateReport:
    """The result of `migrate`, or with ``dry_run`` the plan."""

    source: str
    """The source."""
    source_format: str
    """The format of the source."""
    log: str
    """The target log."""
    format: str
    """The format of the target."""
    checkpoint: str
    """The directory with the progress of the migration."""
    appended: int
    """Records appended in this run, without batches that the log had before."""
    records: int | None
    """Records in the source, and in the log, found equal; None without ``verify``."""
    digest: str | None
    """The digest of all payloads in order, 16 hexadecimal digits: the same for both."""
    seconds: float
    """The duration of the run."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@runs_on("spark")
def migrate(
    spark: SparkSession,
    source: str | os.PathLike[str],
    log: str | os.PathLike[str],
    *,
    format: str | None = None,
    layout: Literal["packed", "slots"] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    batch_bytes: int = BATCH_BYTES,
    verify: bool = True,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> MigrateReport:
    """Copy a log, a directory of logs or a glob into a log of another format, and compare.

    Books, WALs and ledgers go into each other. From books to a book, mugs and numbers are kept: the
    new book begins with the first number of the first book. ``layout`` is for a new book, by
    default ``packed``; an existing book must have this layout. ``verify`` then reads both, compares
    all checksums, and the digest of all payloads (and mugs) in order. The source is only read. A
    pier in LMDB is for `migrate_pier`.

    A later run copies the new records. After a kill, begin the run again, as for `ingest`. The run
    copies synced records of books and WALs. With ``verify``, a log with unsynced records is refused
    before the copy: open the log for writing and ``sync``.

    Raises `deedbook.CorruptError` for damage, and if the records written differ from the source;
    `deedbook.ContiguityError` if a number cannot be kept; and the errors of `ingest`.
    """
    given, log = str(local_path(os.fspath(source))), local_path(os.fspath(log))
    if is_lmdb_pier(given):
        raise InvalidArgumentError(f"{given} is a pier in LMDB: migrate_pier makes books of it")
    of, series = detect_logs({"path": given}, parse({}, None))
    if of.name not in _PAYLOAD or format == "nostr":
        raise InvalidArgumentError(
            "event stores have a format of their own for import and export; migrate copies books,"
            " WALs and ledgers"
        )
    keeps_numbers = of.name == "book"
    _check_layout(layout, format, log)
    if verify:
        logs = [path for one in series for path in one.logs]
        _refuse_mixed(of, logs)
        if isinstance(of, Steps):
            _refuse_unsynced(of, logs)
    # Not by the existence of the path, because a killed run may have left an empty directory.
    if format == "book" and (keeps_numbers or layout) and not dry_run and find(log) is None:
        epoch = 0
        if keeps_numbers:
            with Book.open(series[0].logs[0]) as first:
                epoch = first.epoch
        Book.create(log, epoch=epoch, layout=layout or "packed").close()
    done: IngestReport = append_all(
        spark,
        "migrate",
        given,
        log,
        format=format,
        kind="log",
        checkpoint=checkpoint,
        batch_bytes=batch_bytes,
        keeps_numbers=keeps_numbers,
        dry_run=dry_run,
        progress=progress,
    )
    records = digest = None
    if verify and not dry_run:
        made = SINKS[done.format].called
        with_mugs = keeps_numbers and made == "book"

        def work() -> list[tuple[int, str]]:
            return [
                _digest(spark, path, name, with_mugs)
                for path, name in ((given, of.name), (done.log, made))
            ]

        (read, one), (written, other) = watch(spark, "verify", work)
        if (read, one) != (written, other):
            raise CorruptError(
                f"{done.log} is not what {given} is: {written:,} records of digest {other}, the"
                f" source has {read:,} of {one}; was it appended to meanwhile, or before?"
            )
        records, digest = read, one
    return MigrateReport(
        given,
        of.name,
        done.log,
        done.format,
        done.checkpoint,
        done.appended,
        records,
        digest,
        done.seconds,
    )


def _check_layout(layout: str | None, format: str | None, log: str | os.PathLike[str]) -> None:
    """Refuse a layout that is impossible or differs from the log's."""
    if layout is None:
        return
    there = find(log) if os.path.exists(log) else None
    name = format if there is None else there.format.name
    if name != "book":
        raise InvalidArgumentError(f"layout {layout} is for books, there is a {name}")
    if there is not None:
        with Book.open(log) as book:
            if book.layout != layout:
                raise InvalidArgumentError(
                    f"{log}: layout {layout} asked for, it has {book.layout}"
                )


def _refuse_mixed(of: LogFormat, logs: Sequence[str]) -> None:
    """Refuse several growing logs: a copy would get new records last, and differ in order.

    In a sequence of books, such as the epochs of a pier, only the last book may grow.
    """
    if len(logs) < 2:
        return
    instead = (
        "migrate could not compare the copy once one of them has grown; compact them into one log,"
        " or copy them with ingest"
    )
    if not of.in_sequence:
        raise InvalidArgumentError(
            f"there are {len(logs)} logs, {logs[0]} to {logs[-1]}, which do not follow one another:"
            f" {instead}"
        )
    options = parse({}, None)
    planned = [of.plan(Path(path), options, 1 << 62) for path in logs]
    of.check(planned, options)
    for before, after in pairwise(planned):
        # Reading a damaged log raises the error.
        if before.bounds and after.bounds and before.bounds[1] != after.bounds[0]:
            raise InvalidArgumentError(
                f"{after.path} begins with event {after.bounds[0]}, and {before.path} ends with"
                f" event {before.bounds[1] - 1}: {instead}"
            )


def _refuse_unsynced(of: Steps, logs: Sequence[str]) -> None:
    """Refuse unsynced logs: a stream reads only synced records, a read all records."""
    for path in logs:
        with of.open_log(Path(path)) as log:
            end, durable = log.end, log.durable_end
        if durable is not None and durable < end:
            raise InvalidArgumentError(
                f"{path} is synced up to byte {durable}, and written up to byte {end}: migrate"
                " copies what is synced, and would find less than is there; open it for writing and"
                " sync it, or let its writer do so"
            )


def _digest(spark: SparkSession, path: str, format: str, with_mugs: bool) -> tuple[int, str]:
    """Records, and the sum of their hashes, each multiplied by its place."""
    from pyspark.sql import functions as F

    columns = [_PAYLOAD[format], *(["mug"] if with_mugs else [])]
    reader = spark.read.format("deedbook").option("log", format)
    rows = reader.option("columns", ",".join(columns)).load(path)
    hashes = rows.select(F.xxhash64(*columns).alias("hash"))
    plain = weighted = place = 0
    for part in sorted(_sums(hashes), key=lambda row: row.part):
        plain += int(part.plain)
        weighted += int(part.weighted) + place * int(part.plain)
        place += part.records
    total = (weighted * 0x9E3779B97F4A7C15 + plain) % _MODULUS
    return place, f"{total:016x}"


def _sums(hashes: DataFrame) -> list[Any]:
    """For each partition its records, the sum of the hashes, and each times its place there."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyspark import TaskContext

        settle()
        compute: Any = pc
        place = plain = weighted = 0
        for batch in batches:
            for first in range(0, batch.num_rows, _STEP):
                part: Any = batch.column(0)[first : first + _STEP]
                places = pa.array(range(len(part)), pa.int64())
                for shift in (0, 32):
                    half = compute.bit_wise_and(compute.shift_right(part, shift), 0xFFFFFFFF)
                    total = compute.sum(half).as_py()
                    here = compute.sum(compute.multiply(half, places)).as_py()
                    plain += total << shift
                    weighted += (here + place * total) << shift
                place += len(part)
        context = TaskContext.get()
        assert context is not None, "called in tasks only"
        yield pa.RecordBatch.from_pydict(
            {
                "part": pa.array([context.partitionId()], pa.int32()),
                "records": [place],
                "plain": [str(plain)],
                "weighted": [str(weighted)],
            }
        )

    return hashes.mapInArrow(add, _SUMS).collect()
