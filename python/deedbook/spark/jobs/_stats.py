"""``stats``: records by log and size; for event stores also by kind, author, day and tag."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from deedbook import InvalidArgumentError
from deedbook.spark._options.options import parse
from deedbook.spark._options.paths import local_path
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._worker import settle
from deedbook.spark.jobs._engine.run import Tell, runs_on, watch
from deedbook.spark.jobs._engine.tasks import functions_of
from deedbook.spark.jobs._input.ingest import Counted
from deedbook.spark.jobs._verify import bytes_of_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LogStats", "SizeClass", "StatsReport", "stats"]

_PAYLOAD: Final = {"book": "jam", "wal": "payload", "ledger": "payload", "nostr": "content"}
_TALLY: Final = "what string, key string, records bigint, bytes bigint, least bigint, most bigint"
_TOP: Final = ("kind", "author", "day", "tag")


@dataclass(frozen=True)
class LogStats:
    """A log, or a file of a log."""

    path: str
    """The path."""
    records: int
    """The number of records."""
    bytes: int
    """Bytes of the payloads; for events, bytes of the contents."""


@dataclass(frozen=True)
class SizeClass:
    """Records of about the same size: from half of ``below`` up to ``below``."""

    below: int
    """The upper bound of the sizes, bytes."""
    records: int
    """How many there are."""
    bytes: int
    """Bytes of all records."""


@dataclass(frozen=True)
class StatsReport:
    """The counts of `stats`."""

    format: str
    """The format of the logs."""
    records: int
    """Records of all logs."""
    bytes: int
    """Bytes of all payloads; for events, bytes of the contents."""
    least_bytes: int | None
    """Size of the smallest payload; None without records."""
    most_bytes: int | None
    """Size of the largest payload; None without records."""
    logs: tuple[LogStats, ...]
    """Each log by itself."""
    sizes: tuple[SizeClass, ...]
    """The number of records of each size, the smallest first."""
    top: dict[str, dict[str, int]]
    """For event stores: the most frequent kinds, authors, days (UTC) and names of tags."""
    seconds: float
    """The duration of the run."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@runs_on("spark", "sail")
def stats(
    spark: SparkSession,
    *paths: str | os.PathLike[str],
    top: int = 20,
    skip_corrupt: bool = False,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> StatsReport:
    """Count the records of logs of a format: at paths of logs, directories of logs, globs.

    The executors count, and a row for each log, size and key comes back. The job reads each record
    and compares the checksum; damage ends the job, unless ``skip_corrupt``. ``top`` is the number
    of kinds, authors, days and tags in the report. With ``dry_run`` nothing is counted: the report
    names the logs and the bytes of their files.

    Raises `deedbook.CorruptError`, `InvalidArgumentError` for logs of several formats, and as a
    log's opening.
    """
    if not paths:
        raise InvalidArgumentError("no path: a log, a directory of logs, or a glob of them")
    begun = time.monotonic()
    given = [str(local_path(os.fspath(path))) for path in paths]
    log, series = detect_logs({"paths": json.dumps(given)}, parse({}, None))
    counted = Counted(spark)
    payload = _PAYLOAD[log.name]
    of_events = ["pubkey", "created_at", "kind", "tags"] if log.name == "nostr" else []
    reader = spark.read.format("deedbook").option("log", log.name)
    reader = reader.option("mode", "DROPMALFORMED" if skip_corrupt else "FAILFAST")
    rows = reader.option("columns", ",".join(["path", payload, *of_events])).load(given)
    totals, read = counted.totals, counted.bytes

    def tally(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        counts = _Counts()
        for batch in batches:
            totals[0].add(batch.num_rows)
            read.add(batch.nbytes)
            counts.add(batch, payload)
        yield counts.batch()

    files = {path: bytes_of_files(path) for one in series for path in one.logs}
    total = sum(files.values())
    if dry_run:
        found_logs = tuple(LogStats(path, 0, size) for path, size in files.items())
        return StatsReport(log.name, 0, total, None, None, found_logs, (), {}, 0.0)

    def work() -> tuple[list[Any], dict[str, dict[str, int]]]:
        return _collected(rows.mapInArrow(tally, _TALLY), top, bool(of_events))

    def look() -> tuple[int, int | None, str]:
        done, _, note = counted.look()
        return done, total, note

    found, tops = watch(spark, "stats", work, look, progress)
    logs = sorted((one for one in found if one.what == "log"), key=lambda one: one.key)
    sizes = sorted((one for one in found if one.what == "size"), key=lambda one: int(one.key))
    return StatsReport(
        log.name,
        sum(one.records for one in logs),
        sum(one.bytes for one in logs),
        min((one.least for one in logs), default=None),
        max((one.most for one in logs), default=None),
        tuple(LogStats(one.key, one.records, one.bytes) for one in logs),
        tuple(SizeClass(int(one.key), one.records, one.bytes) for one in sizes),
        tops,
        round(time.monotonic() - begun, 3),
    )


def _collected(
    tallies: DataFrame, top: int, has_events: bool
) -> tuple[list[Any], dict[str, dict[str, int]]]:
    F = functions_of(tallies.sparkSession)
    merged = tallies.groupBy("what", "key").agg(
        F.sum("records").alias("records"),
        F.sum("bytes").alias("bytes"),
        F.min("least").alias("least"),
        F.max("most").alias("most"),
    )
    if not has_events:
        return merged.collect(), {}
    merged = merged.persist()
    try:
        found = merged.where(F.col("what").isin("log", "size")).collect()
        tops = {}
        for what in _TOP:
            best = merged.where(F.col("what") == what).orderBy(F.desc("records"), "key")
            tops[what] = {row.key: row.records for row in best.limit(top).collect()}
        return found, tops
    finally:
        merged.unpersist()


class _Counts:
    """The counts of a task: by the counted thing and its key, records, bytes, least, most."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[int]] = {}

    def add(self, batch: pa.RecordBatch, payload: str) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        compute: Any = pc
        sizes = compute.cast(compute.binary_length(batch[payload]), pa.int64())
        # The power of two above a size: 1 above 0, 2 above 1, 4 above 2 and 3.
        digits = compute.floor(compute.log2(compute.add(sizes, 0.5)))
        one = pa.scalar(1, pa.int64())
        below = compute.shift_left(one, compute.add(compute.cast(digits, pa.int64()), 1))
        self._group("log", batch["path"], sizes)
        self._group("size", below, sizes)
        if "kind" not in batch.schema.names:
            return
        self._count("kind", batch["kind"])
        # Spark gives times in the time zone of its session.
        created = compute.cast(batch["created_at"], pa.timestamp("us", "UTC"))
        self._count("day", compute.strftime(created, "%Y-%m-%d"))
        for author in compute.value_counts(batch["pubkey"]).to_pylist():
            self._one("author", author["values"].hex(), author["counts"])
        tags = compute.list_flatten(batch["tags"])
        named = tags.filter(compute.greater(compute.list_value_length(tags), 0))
        self._count("tag", compute.list_element(named, 0))

    def _group(self, what: str, keys: Any, sizes: Any) -> None:
        import pyarrow as pa

        grouped = pa.table({"key": keys, "size": sizes}).group_by("key")
        found = grouped.aggregate(
            [("size", "count"), ("size", "sum"), ("size", "min"), ("size", "max")]
        )
        for row in found.to_pylist():
            key = str(row["key"])
            kept = self._found.setdefault((what, key), [0, 0, row["size_min"], row["size_max"]])
            kept[0] += row["size_count"]
            kept[1] += row["size_sum"]
            kept[2] = min(kept[2], row["size_min"])
            kept[3] = max(kept[3], row["size_max"])

    def _count(self, what: str, keys: Any) -> None:
        import pyarrow.compute as pc

        for row in pc.value_counts(keys).to_pylist():
            self._one(what, str(row["values"]), row["counts"])

    def _one(self, what: str, key: str, records: int) -> None:
        self._found.setdefault((what, key), [0, 0, 0, 0])[0] += records

    def batch(self) -> pa.RecordBatch:
        import pyarrow as pa

        places = list(self._found)
        columns: Sequence[Any] = [
            pa.array([what for what, _ in places], pa.string()),
            pa.array([key for _, key in places], pa.string()),
            *(
                pa.array([self._found[place][number] for place in places], pa.int64())
                for number in range(4)
            ),
        ]
        names = ["what", "key", "records", "bytes", "least", "most"]
        return pa.RecordBatch.from_arrays(list(columns), names=names)
