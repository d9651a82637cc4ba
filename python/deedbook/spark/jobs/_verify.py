"""``verify``: check every record of many or huge logs, with the core's reports."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from deedbook import (
    Book,
    ContiguityError,
    Error,
    EventStore,
    InvalidArgumentError,
    Ledger,
    MissingError,
    Pier,
    Wal,
)
from deedbook._formats import Outcome, by_name, find
from deedbook._formats.pier import PIER
from deedbook._show.text import count, size
from deedbook._system.sidecar import SIDECAR
from deedbook.jobs import Split
from deedbook.reports import LedgerFileInfo, LedgerFileReport
from deedbook.spark._logs.book import BOOK
from deedbook.spark._logs.formats import formats
from deedbook.spark._logs.parts import LOG_COST_BYTES, group
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look, find_logs, local_path
from deedbook.spark._worker import settle
from deedbook.spark.jobs._checks import Check, Found, Level, Target, first_round, joined, run
from deedbook.spark.jobs._engine.run import Tell, runs_on, watch
from deedbook.spark.jobs._engine.tasks import cores_of, counter_of, spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PART_BYTES", "Verified", "bytes_of_files", "verify"]

PART_BYTES = 512 << 20
"""Bytes of a task."""
_PART_BYTES_MIN = 16 << 20
_WAVES = 4
"""Tasks for each core, unless the tasks get too small. All cores then end at about the same time.
"""


@dataclass(frozen=True)
class Verified:
    """The result of `verify` for a log; for a dry run, the plan."""

    path: str
    """The path of the log."""
    format: str | None
    """None without a log."""
    outcome: Outcome
    """Whether the log is intact, with the output of ``deedbook verify`` as plain values for JSON
    and in words.
    """
    parts: int
    """Parts of the log."""
    bytes: int
    """Bytes of the parts."""
    error: Exception | None = None
    """The reason if the log was not checked."""

    @property
    def ok(self) -> bool:
        """Whether the log was checked, and is intact."""
        return self.error is None and self.outcome.ok


@runs_on("spark", "sail")
def verify(
    spark: SparkSession,
    *paths: str | os.PathLike[str],
    part_bytes: int = PART_BYTES,
    check: Literal["none", "id", "signature"] = "id",
    progress: Tell | None = None,
    dry_run: bool = False,
) -> list[Verified]:
    """Check every record of the logs at ``paths``, each with the report of its class's ``verify``.

    A path is a log of any format, a pier, a directory of logs, or a glob of these. Each epoch of a
    pier has a result. A gap or an overlap between epochs is an error in a further result for the
    pier. Tasks check the logs in parts of at most ``part_bytes``; small logs share a task.
    ``check`` is as for `EventStore.verify`. The check changes nothing, so simply begin a killed run
    again. With ``dry_run`` the logs are only opened and cut.

    A log that cannot be opened has an ``error``, and the others are still checked. Results are in
    the order of the paths. Raises `InvalidArgumentError` for wrong arguments, and `JobFailedError`
    if Spark fails.
    """
    if not paths:
        raise InvalidArgumentError("no path: say what to check")
    if part_bytes < 1:
        raise InvalidArgumentError(f"part_bytes {part_bytes}, must be at least 1")
    if check not in ("none", "id", "signature"):
        raise InvalidArgumentError(f'check "{check}", must be one of "none", "id", "signature"')
    logs = [log for path in paths for log in _logs_at(os.fspath(path))]
    cores = cores_of(spark)
    _cut(logs, part_bytes, cores)
    if dry_run:
        return [log.planned() for log in logs]
    targets = [target for log in logs for target in log.targets]
    first = [first_round(number, target, check) for number, target in enumerate(targets)]
    counted = counter_of(spark)
    total = sum(one.bytes for checks in first for one in checks)

    def share(checks: Sequence[Check]) -> Iterator[Found]:
        return _spread(spark, checks, part_bytes, counted)

    def work() -> list[Any]:
        return _reports(targets, first, check, share)

    def look() -> tuple[int, int | None, str]:
        return min(int(counted.value), total), total, ""

    reports = iter(watch(spark, "verify", work, look, progress))
    return [log.verified([next(reports) for _ in log.targets]) for log in logs]


def _reports(
    targets: Sequence[Target],
    first: Sequence[Sequence[Check]],
    level: Level,
    share: Callable[[Sequence[Check]], Iterator[Found]],
) -> list[Any]:
    """The report of each target, or the exception instead of it."""
    found = share([check for checks in first for check in checks])
    reports: list[Any] = []
    for number, (target, checks) in enumerate(zip(targets, first, strict=True)):
        of_target = [next(found) for _ in checks]
        try:
            reports.append(joined(number, target, of_target, level))
        except (Error, OSError) as error:
            reports.append(error)
    again = [report for report in reports if isinstance(report, Check)]
    for one in share(again):
        reports[one.target] = one.report if one.error is None else one.error
    return reports


def _spread(
    spark: SparkSession, checks: Sequence[Check], part_bytes: int, counted: Any
) -> Iterator[Found]:
    """The results of the checks, in order; packed into tasks of about ``part_bytes``."""
    if not checks:
        return iter(())
    cores = cores_of(spark)
    total = sum(check.bytes for check in checks)
    part_bytes = _task_bytes(total, part_bytes, cores)
    tasks = group(checks, part_bytes, LOG_COST_BYTES, lambda check: (check.path, check.bytes))
    return spread(spark, tasks, functools.partial(_task, count=counted.add))


def _task(tasks: Iterable[list[Check]], count: Callable[[int], object]) -> Iterator[Found]:
    settle()
    for checks in tasks:
        yield from run(checks, count)


def _task_bytes(total: int, part_bytes: int, cores: int) -> int:
    """Bytes of a task: at most ``part_bytes``, and equal numbers of tasks for all cores."""
    waves = max(_WAVES, math.ceil(total / (part_bytes * cores)))
    return min(part_bytes, max(_PART_BYTES_MIN, math.ceil(total / (waves * cores))))


# -- the logs to check


class _Log:
    """A log at the time of planning."""

    def __init__(self, path: str, format: str | None, error: Exception | None = None) -> None:
        self.path = path
        self.format = format
        self.error = error
        self.targets: list[Target] = []
        self._files: list[LedgerFileInfo] = []
        self._unopened: Exception | None = None

    @property
    def bytes(self) -> int:
        """Bytes of the log."""
        return sum(target.bytes for target in self.targets)

    def cut(self, part_bytes: int) -> None:
        """Cut the log into parts of about ``part_bytes`` bytes, if cuts are possible."""
        if self.format is None or self.error is not None:
            return
        if self.format != "ledger":
            try:
                self.targets = [_target(self.format, self.path, part_bytes)]
            except (Error, OSError) as error:
                self._unopened = error  # its check says why
                self.targets = [Target(self.format, self.path, (), 0)]
            return
        try:
            self._files = _files(self.path)
        except (Error, OSError) as error:
            self.error = error
        # Each file is a part, because only reading shows the ends of records.
        self.targets = [Target("ledger", file.path, (), file.bytes) for file in self._files]

    def planned(self) -> Verified:
        """For a dry run."""
        parts, self.error = self._count_parts(), self.error or self._unopened
        facts = {"parts": parts, "bytes": self.bytes}
        line = f"{self.path}: {self.format}, {count(parts, 'part')}, {size(self.bytes)}"
        return self._verified(Outcome(True, facts, [line]))

    def verified(self, reports: Sequence[Any]) -> Verified:
        """The log with the report of each target, or an error."""
        if self.error is None:
            errors = (one for one in reports if isinstance(one, Exception))
            self.error = next((one for one in errors if not self._is_gone(one)), None)
        if self.error is not None or self.format is None:
            return self._verified(Outcome(False, {}, []))
        report: Any = reports[0] if reports else None
        if self.format == "ledger":
            pairs = zip(self._files, reports, strict=True)
            # A missing file was sent meanwhile.
            there = [(file, one) for file, one in pairs if not isinstance(one, Exception)]
            report = [LedgerFileReport(file=file, report=one) for file, one in there]
        return self._verified(by_name(self.format).outcome(self.path, report))

    def _is_gone(self, error: Exception) -> bool:
        return self.format == "ledger" and isinstance(error, MissingError)

    def _count_parts(self) -> int:
        return sum(max(len(target.parts), 1) for target in self.targets)

    def _verified(self, outcome: Outcome) -> Verified:
        return Verified(
            self.path, self.format, outcome, self._count_parts(), self.bytes, self.error
        )


def _cut(logs: Sequence[_Log], part_bytes: int, cores: int) -> None:
    """Cut all logs, finer if there are too few bytes for tasks on all cores.

    The sizes of files give the bytes, so each log is opened once.
    """
    finer = _task_bytes(sum(bytes_of_files(log.path) for log in logs), part_bytes, cores)
    for log in logs:
        log.cut(finer)


def bytes_of_files(path: str) -> int:
    """The approximate bytes of a log; 0 without a log."""
    try:
        if not os.path.isdir(path):
            return os.stat(path).st_size
        found = 0
        for folder, names, files in os.walk(path):
            names[:] = [name for name in names if name != SIDECAR]
            found += sum(os.stat(os.path.join(folder, file)).st_size for file in files)
    except OSError:  # gone meanwhile, perhaps: opening says so
        return 0
    return found


def _target(format: str, path: str, part_bytes: int) -> Target:
    """A log, cut: an event store as a whole, others as far as records were counted."""
    if format == "nostr":
        with EventStore.open(path) as store:
            parts, segments = store.splits(part_bytes), store.segments
            is_loss = store.opening.is_loss
        return Target(format, path, tuple(parts), _bytes(parts), tuple(segments), is_loss)
    opened: type[Book] | type[Wal] = Book if format == "book" else Wal
    with opened.open(path) as log:
        parts = log.splits(part_bytes)
    counted = itertools.takewhile(lambda part: part.records is not None, parts)
    return Target(format, path, tuple(counted), _bytes(parts))


def _bytes(parts: Sequence[Split]) -> int:
    return sum(part.end - part.offset for part in parts)


def _files(path: str) -> list[LedgerFileInfo]:
    """The files of all ledgers in a directory; or the one at a path."""
    files: list[LedgerFileInfo] = []
    for base in Ledger.bases(path) if os.path.isdir(path) else [None]:
        with Ledger.open(path, base=base) as snapshot:
            files += snapshot.files
    return files


def _logs_at(given: str) -> list[_Log]:
    """The logs at a path; without a log, a result with an error."""
    try:
        path = local_path(given)
        is_there = os.path.lexists(path)
        if not is_there and (gone := find(path)) is not None:
            return [_Log(str(path), gone.format.name)]  # what lies beside it says what it was
        return find_logs([given], functools.partial(_expand, is_glob=not is_there))
    except (Error, OSError) as error:
        return [_Log(given, None, error)]


def _between_epochs(path: Path) -> list[_Log]:
    """The error of a pier whose epochs leave out events or overlap, unseen in a single epoch."""
    if not PIER.is_there(str(path)):
        return []
    try:
        Pier.open(path).close()
    except ContiguityError as error:
        return [_Log(str(path), PIER.name, error)]
    except (Error, OSError):
        pass  # the check of the epoch says why
    return []


def _error_of(look: Look) -> Exception | None:
    """The reason why the format of the log is unknown; None if the format is known."""
    try:
        _ = look.format
    except (Error, OSError) as error:
        return error
    return None


def _expand(path: Path, is_glob: bool) -> list[_Log]:
    """The result of `deedbook._formats.find`, or the logs of a pier or a directory.

    An unreadable log of many has an error, and the others are still checked.
    """
    look = Look(path)
    if is_glob and (error := _error_of(look)) is not None:
        return [_Log(str(path), None, error)]
    options = ReadOptions()
    if path.is_dir() or not is_glob:
        found = find(path)
        # Tasks share the epochs of a pier like other logs.
        if found is not None and found.format is not PIER:
            return [_Log(str(path), found.format.name)]
    if not path.is_dir():
        return [_Log(str(log), one.name) for one in formats() for log in one.expand(path, options)]
    errors = [(child, _error_of(child)) for child in look.children]
    look.children = [child for child, error in errors if error is None]
    books = [_Log(str(book), BOOK.name) for book in BOOK.expand(look, options)]
    books += _between_epochs(path)
    others = [
        _Log(str(child.path), child.format)
        for child in look.children
        if child.format not in (None, BOOK.name, PIER.name)
    ]
    refused = [_Log(str(child.path), None, error) for child, error in errors if error is not None]
    return books + others + refused
