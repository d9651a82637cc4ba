"""``compact``: many small logs into few."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from deedbook import CorruptError, InvalidArgumentError
from deedbook._system.durable import load_json, store_json, sync_folder, unfinished
from deedbook._system.lock import alone
from deedbook._system.regular import is_folder
from deedbook.spark._options.options import parse
from deedbook.spark._options.paths import local_path
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._worker import settle
from deedbook.spark.jobs._copies import COPIES, first_of
from deedbook.spark.jobs._engine.run import Tell, runs_on, watch
from deedbook.spark.jobs._input.ingest import Counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CompactReport", "CompactedLog", "compact"]

SIZE_BYTES: Final = 1 << 30
_PLAN: Final = "compaction.json"
_MAKING: Final = ".making-"
_NAME: Final = re.compile(r"[0-9]{5,}")
_LOCK: Final = ".compaction.lock"


@dataclass(frozen=True)
class CompactedLog:
    """A new log, and its sources."""

    path: str
    """The path."""
    sources: tuple[str, ...]
    """The logs with the source records, in order."""
    records: int
    """The number of records; for an event store, the visible events. With ``dry_run`` the records
    of the sources. Event stores may have some events more than once, and events may expire before
    the run.
    """
    bytes: int
    """Bytes of the sources."""
    first: int | None
    """The number of a book's first event. If the sources follow one another, the number of the
    first source's first event, and else 1.
    """


@dataclass(frozen=True)
class CompactReport:
    """The result of `compact`; with ``dry_run`` the plan."""

    source: tuple[str, ...]
    """The given paths."""
    target: str
    """The directory with the new logs."""
    format: str
    """The format of all logs."""
    logs: tuple[CompactedLog, ...]
    """Each new log, or with ``dry_run`` each planned log."""
    made: int
    """The number of logs made in this run; earlier runs made the others."""
    seconds: float
    """The duration of the run."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


@runs_on("spark")
def compact(
    spark: SparkSession,
    sources: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    size_bytes: int = SIZE_BYTES,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> CompactReport:
    """Copy many logs of a format into few new logs of about ``size_bytes`` each.

    ``sources`` are logs, directories of logs and globs. The records keep their order: the logs
    follow one another in the order of their paths, with digits in names by value. The new logs are
    ``00000``, ``00001``, ... in the directory ``target``. A task makes each log; the log gets the
    name once complete, synced and counted. The sources stay.

    ``target/compaction.json`` has the plan. After a kill, begin the run again: it goes on at the
    same place. A repeated run makes nothing. Sources that differ from the plan are refused by name,
    also after the last log: a log that grew, came later, or is missing.

    All files of a ledger must be finished. From event stores, the run copies the visible events, by
    the rules of `EventStore.append`: a new store has each event once, and only the newest version
    of a replaceable event.

    Raises `deedbook.CorruptError` for damage, `InvalidArgumentError` for an unfinished ledger,
    ledgers of several bases, and a target with files from other sources, `deedbook.OutOfRangeError`
    for a changed source, `deedbook.LockedError` if another process compacts into the same
    directory, and the errors of opening a log.
    """
    begun = time.monotonic()
    given = [str(local_path(os.fspath(path))) for path in sources]
    path = local_path(os.fspath(target))
    if not (path / _PLAN).exists():
        _logs_at(given)  # before the directory is made
    # Otherwise a run would remove the unfinished logs of another run's tasks.
    lock = alone(path / _LOCK, f"compacts into {path}")
    with nullcontext() if dry_run else lock:
        plan = _planned(given, path, size_bytes)
        missing = [bin for bin in plan["logs"] if not is_folder(path / bin["name"])]
        if not dry_run:
            _remove_strays(path)
            if missing:
                _make_all(spark, path, plan, missing, progress)
            _count(path, plan)
    return CompactReport(
        tuple(given),
        str(path),
        plan["format"],
        tuple(_described(path, bin, plan["format"]) for bin in plan["logs"]),
        0 if dry_run else len(missing),
        round(time.monotonic() - begun, 3),
    )


def _make_all(
    spark: SparkSession,
    path: Path,
    plan: dict[str, Any],
    missing: list[dict[str, Any]],
    progress: Tell | None,
) -> None:
    """Store the plan, and make the missing logs, each by a task."""
    path.mkdir(parents=True, exist_ok=True)
    store_json(path / _PLAN, plan)
    counted = Counted(spark)
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
    _remove_strays(path)


def _remove_strays(path: Path) -> None:
    """Remove the unfinished logs of killed runs and workers.

    A task of an earlier run may live, and give its log the name during the removal. Removal
    therefore renames the log first.
    """
    for stray in path.glob(f".*{_MAKING}*"):
        own = stray.with_name(f"{stray.name}-{uuid.uuid4().hex}")
        with suppress(FileNotFoundError):
            stray.rename(own)
            shutil.rmtree(own, ignore_errors=True)


def _planned(given: list[str], path: Path, size_bytes: int) -> dict[str, Any]:
    """The target's plan, or a new plan. Raises `InvalidArgumentError`."""
    there = load_json(path / _PLAN)
    if there is not None:
        _check_plan(path, there)
        if there["given"] != given:
            raise InvalidArgumentError(
                f"{path} was made from {', '.join(there['given'])}, not from {', '.join(given)}"
            )
        _refuse_changes(path, there)
        return there
    # A kill may have come during the storing of the plan, before any other file.
    own = {unfinished(path / _PLAN), path / _LOCK}
    if path.exists() and any(one not in own for one in path.iterdir()):
        raise InvalidArgumentError(f"{path} is not empty; new logs go into a new directory")
    format, found = _logs_at(given)
    logs = [COPIES[format].look(of) for of in found]
    bases = sorted({one["base"] for one in logs if "base" in one})
    if len(bases) > 1:
        raise InvalidArgumentError(
            f"there are ledgers of several bases, {', '.join(bases)}: compact those of each by"
            " themselves"
        )
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
        "format": format,
        "logs": [{"name": f"{number:05}", "sources": bin} for number, bin in enumerate(bins)],
    }


def _check_plan(path: Path, plan: dict[str, Any]) -> None:
    """Refuse a plan with other fields or names than a run stores. Raises `CorruptError`."""
    reason = _fault_of(plan)
    if reason is not None:
        error = CorruptError(f"{path / _PLAN}: {reason}; nothing was changed")
        error.path, error.reason = str(path / _PLAN), reason
        raise error


def _fault_of(plan: dict[str, Any]) -> str | None:
    given, logs, format = plan.get("given"), plan.get("logs"), plan.get("format")
    if not _is_list(given, str) or not _is_list(logs, dict) or format not in list(COPIES):
        return "this is no plan of compact"
    for one in logs:
        name, sources = one.get("name"), one.get("sources")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return f"{name!r} is no name of a new log, which has digits alone"
        if not _is_list(sources, dict):
            return f"log {name} has no sources"
        if not all(isinstance(of.get("path"), str) for of in sources):
            return f"a source of log {name} has no path"
        if not all(type(of.get(unit)) is int for of in sources for unit in ("bytes", "records")):
            return f"a source of log {name} has no number of bytes or records"
    return None


def _is_list(found: Any, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(found, list) and all(isinstance(one, kind) for one in found)


def _logs_at(given: list[str]) -> tuple[str, list[str]]:
    """The format of the logs at the paths, and the logs' paths."""
    log, series = detect_logs({"paths": json.dumps(given)}, parse({}, None))
    return log.name, [of for one in series for of in one.logs]


def _refuse_changes(path: Path, plan: dict[str, Any]) -> None:
    """Refuse logs that differ from the plan, because no new log would have the new records."""
    planned = {one["path"]: one for bin in plan["logs"] for one in bin["sources"]}
    _, found = _logs_at(plan["given"])
    for of in found:
        if of not in planned:
            raise InvalidArgumentError(
                f"{path} was made without {of}, which came later; compact into a new directory"
            )
    there = set(found)
    for of, source in planned.items():
        if of not in there:
            raise InvalidArgumentError(
                f"{path} was made of {of}, too, which is not there any more; compact what is left"
                " into a new directory"
            )
        COPIES[plan["format"]].check(source)


def _make(path: Path, bin: dict[str, Any], format: str) -> Iterator[tuple[int, int]]:
    """In a task: make a log and give the log a name. Yields records and bytes done.

    Under speculation two attempts make the same log; the first attempt gives the name.
    """
    final = path / bin["name"]
    # Spark numbers the attempts of each application from 0, and tasks of an earlier one may live.
    making = path / f".{bin['name']}{_MAKING}{uuid.uuid4().hex}"
    if final.exists():
        return
    try:
        yield from COPIES[format].fill(making, bin["sources"])
        _publish(making, final)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _publish(making: Path, final: Path) -> None:
    """Give a complete log its name, unless another attempt was first."""
    try:
        making.rename(final)
    except OSError:  # a directory that is not empty has the name
        if not final.exists():
            raise
    sync_folder(final.parent)


def _described(path: Path, bin: dict[str, Any], format: str) -> CompactedLog:
    sources = bin["sources"]
    return CompactedLog(
        str(path / bin["name"]),
        tuple(one["path"] for one in sources),
        bin.get("records", sum(one["records"] for one in sources)),
        sum(one["bytes"] for one in sources),
        first_of(sources) if format == "book" else None,
    )


def _count(path: Path, plan: dict[str, Any]) -> None:
    """Note the number of records of each new log, if the sources do not have the number."""
    copies = COPIES[plan["format"]]
    counted = False
    for bin in plan["logs"]:
        made = path / bin["name"]
        if "records" not in bin and is_folder(made):
            records = copies.records(made)
            if records is not None:
                bin["records"], counted = records, True
    if counted:
        store_json(path / _PLAN, plan)
