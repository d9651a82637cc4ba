"""``compact``: many small logs into few."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from deedbook import CorruptError, InvalidArgumentError, OutOfRangeError
from deedbook._durable import load_json, store_json, sync_folder
from deedbook.formats import by_name
from deedbook.spark._detect import detect_logs
from deedbook.spark._options import parse
from deedbook.spark._worker import settle
from deedbook.spark.jobs._ingest import Counted
from deedbook.spark.jobs._run import Tell, watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CompactReport", "CompactedLog", "compact"]

SIZE_BYTES: Final = 1 << 30
_BATCH_BYTES: Final = 4 << 20
_PLAN: Final = "compaction.json"
_MAKING: Final = ".making-"


@dataclass(frozen=True)
class CompactedLog:
    """A log that was made, and of what."""

    path: str
    """Where it is."""
    sources: tuple[str, ...]
    """The logs whose records it has, in their order."""
    records: int
    """How many it has."""
    bytes: int
    """Of the payloads."""
    first: int | None
    """Of a book, the number of its first event, which is that of its first source where each source
    goes on where the one before ends, and else 1."""


@dataclass(frozen=True)
class CompactReport:
    """What `compact` did; with ``dry_run`` what it would do."""

    source: tuple[str, ...]
    """The paths that were given."""
    target: str
    """The directory with the logs that were made."""
    format: str
    """The format of them all."""
    logs: tuple[CompactedLog, ...]
    """Each log that is there now, or would be."""
    made: int
    """How many of them were made in this run; the others were there."""
    seconds: float
    """How long it took."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def compact(
    spark: SparkSession,
    sources: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    size_bytes: int = SIZE_BYTES,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> CompactReport:
    """Copy many books, or many WALs, into few new ones of about ``size_bytes`` each.

    ``sources`` are logs, directories of logs and globs; their records keep their order, one log
    after the other in the order of their paths and of digits in names by value. The new logs are
    ``00000``, ``00001``, ... in the directory ``target``, each made by one task; it appears under
    its name when it is complete, synced and counted. The sources stay.

    ``target/compaction.json`` has the plan. A run that was killed goes on where it was, once it is
    begun again, and one that is repeated makes nothing. The sources must not grow
    meanwhile: a log that is not as long as the plan says is refused.

    Raises `deedbook.CorruptError` for damage, `InvalidArgumentError` for ledgers and event stores,
    a target that is not empty and was not made from these sources, and as a log's opening.
    """
    begun = time.monotonic()
    given = [os.path.abspath(path) for path in sources]
    path = Path(os.path.abspath(target))
    plan = _planned(given, path, size_bytes)
    counted = Counted(spark)
    missing = [bin for bin in plan["logs"] if not (path / bin["name"]).exists()]
    if missing and not dry_run:
        path.mkdir(parents=True, exist_ok=True)
        for stray in path.glob(f".*{_MAKING}*"):  # of a run that was killed
            shutil.rmtree(stray)
        store_json(path / _PLAN, plan)
        totals, read, format = counted.totals[0], counted.bytes, plan["format"]

        def make(bins: Iterable[Any]) -> Iterable[int]:
            settle()
            for bin in bins:
                for records, size in _make(path, bin, format):
                    totals.add(records)
                    read.add(size)
                yield 1

        total = sum(one["bytes"] for bin in missing for one in bin["sources"])

        def look() -> tuple[int, int | None, str]:
            done, _, note = counted.look()
            return done, total, note

        def work() -> int:
            tasks = spark.sparkContext.parallelize(missing, len(missing))
            made: list[int] = tasks.mapPartitions(make).collect()
            return len(made)

        watch(spark, "compact", work, look, progress)
    return CompactReport(
        tuple(given),
        str(path),
        plan["format"],
        tuple(_described(path, bin, plan["format"]) for bin in plan["logs"]),
        0 if dry_run else len(missing),
        round(time.monotonic() - begun, 3),
    )


def _planned(given: list[str], path: Path, size_bytes: int) -> dict[str, Any]:
    """The plan that the target has, or a new one. Raises `InvalidArgumentError`."""
    there = load_json(path / _PLAN)
    if there is not None:
        if there["given"] != given:
            raise InvalidArgumentError(
                f"{path} was made from {', '.join(there['given'])}, not from {', '.join(given)}"
            )
        return there
    if path.exists() and any(path.iterdir()):
        raise InvalidArgumentError(f"{path} is not empty; new logs go into a new directory")
    log, series = detect_logs({"paths": json.dumps(given)}, parse({}, None))
    if log.name not in ("book", "wal"):
        raise InvalidArgumentError(f"compact makes books and WALs, there is a {log.name}")
    logs = [_look(of, log.name) for one in series for of in one.logs]
    bins: list[list[dict[str, Any]]] = []
    filled = 0
    for one in logs:
        if not bins or filled + one["bytes"] > size_bytes:
            bins.append([])
            filled = 0
        bins[-1].append(one)
        filled += one["bytes"]
    return {
        "given": given,
        "format": log.name,
        "logs": [{"name": f"{number:05}", "sources": bin} for number, bin in enumerate(bins)],
    }


def _look(path: str, format: str) -> dict[str, Any]:
    """A source as the plan has it: how many records, where they begin, and its bytes."""
    with by_name(format).open(path, "r") as log:
        if log.recovery.verdict == "corrupt":
            raise CorruptError(f"{path} is damaged: verify says where; compact copies intact logs")
        first = log.bounds[0] if format == "book" and log.bounds else None
        return {"path": path, "records": len(log), "bytes": log.end, "first": first}


def _make(path: Path, bin: dict[str, Any], format: str) -> Iterator[tuple[int, int]]:
    """In a task: make a log, and give it its name. Yields records and bytes done.

    Under speculation two attempts make the same log; the first one gives it its name.
    """
    context = TaskContext.get()
    assert context is not None, "called in tasks only"
    final = path / bin["name"]
    making = path / f".{bin['name']}{_MAKING}{context.taskAttemptId()}"
    if final.exists():
        return
    try:
        yield from _copy(making, bin, format)
        _publish(making, final)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _publish(making: Path, final: Path) -> None:
    """Give a complete log its name, unless another attempt has given it to its own."""
    try:
        making.rename(final)
    except OSError:  # a directory that is not empty has the name
        if not final.exists():
            raise
    sync_folder(final.parent)


def _copy(making: Path, bin: dict[str, Any], format: str) -> Iterator[tuple[int, int]]:
    """Make a log of its sources, synced and counted. Yields records and bytes done."""
    first = _first(bin["sources"], format)
    options: dict[str, Any] = {"durability": "manual"}
    if first is not None:
        options["epoch"] = first - 1
    records = 0
    with by_name(format).open(str(making), "x", **options) as made:
        for source in bin["sources"]:
            before = len(made)
            for payloads, mugs in _records(source["path"], format):
                if format == "book":
                    made.append_many(payloads, mugs=mugs)
                else:
                    made.append_many(payloads)
                yield len(payloads), sum(map(len, payloads))
            copied = len(made) - before
            if copied != source["records"]:
                raise OutOfRangeError(
                    f"{source['path']} has {copied} records, the plan says {source['records']}:"
                    " it was changed"
                )
            records += copied
        made.sync()
    with by_name(format).open(str(making), "r") as made:
        if len(made) != records:
            raise CorruptError(f"{making} has {len(made)} records, {records} were appended")


def _records(path: str, format: str) -> Iterator[tuple[list[bytes], list[int]]]:
    """Payloads, and of a book mugs, in batches."""
    import pyarrow as pa

    name = "jam" if format == "book" else "payload"
    columns = [name, "mug"] if format == "book" else [name]
    with by_name(format).open(path, "r") as log:
        for batch in log.batches(columns=columns, batch_bytes=_BATCH_BYTES):
            rows = pa.record_batch(batch)
            payloads: list[Any] = rows[name].to_pylist()
            mugs: list[Any] = rows["mug"].to_pylist() if format == "book" else []
            yield payloads, [mug & 0xFFFFFFFF for mug in mugs]


def _first(sources: Sequence[dict[str, Any]], format: str) -> int | None:
    """The number of a new book's first event, where its sources follow one another."""
    if format != "book":
        return None
    filled = [one for one in sources if one["records"]]
    follow = all(
        one["first"] == before["first"] + before["records"] for before, one in pairwise(filled)
    )
    return filled[0]["first"] if filled and follow else 1


def _described(path: Path, bin: dict[str, Any], format: str) -> CompactedLog:
    sources = bin["sources"]
    return CompactedLog(
        str(path / bin["name"]),
        tuple(one["path"] for one in sources),
        sum(one["records"] for one in sources),
        sum(one["bytes"] for one in sources),
        _first(sources, format),
    )
