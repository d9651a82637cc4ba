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
from deedbook._durable import load_json, store_json, sync_folder, unfinished
from deedbook._lock import alone
from deedbook._regular import is_folder
from deedbook.spark._detect import detect_logs
from deedbook.spark._options import parse
from deedbook.spark._paths import local_path
from deedbook.spark._worker import settle
from deedbook.spark.jobs._copies import COPIES, first_of
from deedbook.spark.jobs._ingest import Counted
from deedbook.spark.jobs._run import Tell, beside_the_driver, watch

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
    """A log that was made, and of what."""

    path: str
    """Where it is."""
    sources: tuple[str, ...]
    """The logs whose records it has, in their order."""
    records: int
    """How many it has; of an event store, those that count. With ``dry_run`` what its sources
    have, of which event stores may have some more than once, and some whose time is over then."""
    bytes: int
    """Of the sources."""
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


@beside_the_driver
def compact(
    spark: SparkSession,
    sources: Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    size_bytes: int = SIZE_BYTES,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> CompactReport:
    """Copy many logs of one format into few new ones of about ``size_bytes`` each.

    ``sources`` are logs, directories of logs and globs; their records keep their order, one log
    after the other in the order of their paths and of digits in names by value. The new logs are
    ``00000``, ``00001``, ... in the directory ``target``, each made by one task; it appears under
    its name when it is complete, synced and counted. The sources stay.

    ``target/compaction.json`` has the plan. A run that was killed goes on where it was, once it is
    begun again, and one that is repeated makes nothing. Sources that are not those of the plan are
    refused by name, also when all is made: a log that grew, that came later, or that is gone.

    Of ledgers, all files must be finished. Of event stores the events that count are copied, by
    the rules of `EventStore.append`: a new store has each of them once, and of a replaceable one
    the newest.

    Raises `deedbook.CorruptError` for damage, `InvalidArgumentError` for a ledger that is being
    written, ledgers of several bases, and a target that is not empty and was not made from these
    sources, `deedbook.OutOfRangeError` for a source that changed, `deedbook.LockedError` where
    another process compacts into the same directory, and as a log's opening.
    """
    begun = time.monotonic()
    given = [str(local_path(os.fspath(path))) for path in sources]
    path = local_path(os.fspath(target))
    if not (path / _PLAN).exists():
        _logs_at(given)  # before the directory is made
    # Else one would remove what the other one's tasks are making.
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
    """Store the plan, and make its logs that are missing, each by a task."""
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
    """Remove what runs and workers that were killed left of logs that they were making.

    A task of an earlier run may live, and give its log the name while this removes it: under
    another name it finds nothing.
    """
    for stray in path.glob(f".*{_MAKING}*"):
        own = stray.with_name(f"{stray.name}-{uuid.uuid4().hex}")
        with suppress(FileNotFoundError):
            stray.rename(own)
            shutil.rmtree(own, ignore_errors=True)


def _planned(given: list[str], path: Path, size_bytes: int) -> dict[str, Any]:
    """The plan that the target has, or a new one. Raises `InvalidArgumentError`."""
    there = load_json(path / _PLAN)
    if there is not None:
        _check_plan(path, there)
        if there["given"] != given:
            raise InvalidArgumentError(
                f"{path} was made from {', '.join(there['given'])}, not from {', '.join(given)}"
            )
        _refuse_changes(path, there)
        return there
    # A run may have been killed as it stored its plan, before anything else was there.
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
    return None


def _is_list(found: Any, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(found, list) and all(isinstance(one, kind) for one in found)


def _logs_at(given: list[str]) -> tuple[str, list[str]]:
    """The format of the logs at the paths, and where they are."""
    log, series = detect_logs({"paths": json.dumps(given)}, parse({}, None))
    return log.name, [of for one in series for of in one.logs]


def _refuse_changes(path: Path, plan: dict[str, Any]) -> None:
    """Refuse logs that are not those of the plan: what is new in them is in none that was made."""
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
    """In a task: make a log, and give it its name. Yields records and bytes done.

    Under speculation two attempts make the same log; the first one gives it its name.
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
    """Give a complete log its name, unless another attempt has given it to its own."""
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
    """Note of each log that is there how many records it has, where its sources do not say."""
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
