"""``migrate`` of a pier: epochs in LMDB become books, each copied by its own task."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pyspark import TaskContext

from deedbook import Book, InvalidArgumentError, LockedError, MissingError
from deedbook._system.durable import sync_folder, sync_folders
from deedbook._system.regular import is_file, is_folder
from deedbook.reports import LmdbMigration
from deedbook.spark._options.paths import local_path
from deedbook.spark._worker import settle
from deedbook.spark.jobs._engine.run import Tell, runs_on, watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["MigratedEpoch", "PierMigrateReport", "is_lmdb_pier", "migrate_pier"]

_EPOCH: Final = re.compile(r"0i(0|[1-9][0-9]*)")
_MAKING: Final = ".making-"
_SIGNED: Final = "epoc.txt"
"""The last file of an epoch already copied and compared."""
_READY: Final = "ready"
"""An empty file next to a staged epoch that is signed and synced. No task writes the epoch again.
"""
Layout = Literal["packed", "slots"]


@dataclass(frozen=True)
class MigratedEpoch:
    """An epoch, and this run's work on the epoch."""

    path: str
    """The path of the book."""
    epoch: int
    """The last event before the epoch."""
    first: int | None
    """The first event; None without events."""
    last: int | None
    """The last event."""
    bytes: int
    """Bytes of the jams."""
    found: int
    """Events of earlier runs, compared in this run."""


@dataclass(frozen=True)
class PierMigrateReport:
    """The result of `migrate_pier`; with ``dry_run`` the plan."""

    source: str
    """The source pier."""
    dest: str
    """The pier of books."""
    dry_run: bool
    """Whether nothing was changed."""
    epochs: tuple[MigratedEpoch, ...]
    """Epochs copied or compared in this run, in the order of their events."""
    passed_over: int
    """Epochs copied by earlier runs, and not compared again."""
    events: int
    """Events brought or compared."""
    seconds: float
    """The duration of the run."""

    @property
    def brought(self) -> int:
        """Events written in this run, or with ``dry_run`` planned."""
        return self.events - sum(one.found for one in self.epochs)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "brought": self.brought}


def is_lmdb_pier(path: str | os.PathLike[str]) -> bool:
    """Whether the path has a pier with an epoch in LMDB."""
    log = local_path(os.fspath(path)) / ".urb" / "log"
    epochs = _epochs(log)
    if not epochs:
        return (log / "data.mdb").exists()
    return any(not (log / f"0i{epoch}" / "book.log").exists() for epoch in epochs)


@runs_on("spark")
def migrate_pier(
    spark: SparkSession,
    source: str | os.PathLike[str],
    dest: str | os.PathLike[str],
    *,
    layout: Layout | None = None,
    verify: bool = True,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> PierMigrateReport:
    """Copy the epochs of a pier in LMDB to a new pier of books, as `Book.migrate_lmdb` does.

    A task copies an epoch into a directory of its own, syncs each event, reads the event back and
    compares with the source. The epochs get their names in the order of their events, each after
    all earlier epochs; the pier gets its metadata last. The ship must have ended; the source is
    only read.

    After a kill, begin the run again: it goes on at the same place. Epochs with names are compared
    with the source again, or with ``verify=False`` skipped, except for the last epoch that may have
    grown. In the other epochs, the run compares the copied events and adds the rest. With
    ``dry_run`` the run reads and compares everything, and writes nothing. ``progress`` gets the
    events of finished tasks.

    Raises `InvalidArgumentError` without a pier in LMDB, `JobFailedError`, and the errors of
    `Book.migrate_lmdb`.
    """
    begun = time.monotonic()
    pier, to = (local_path(os.fspath(path)) for path in (source, dest))
    if not is_lmdb_pier(pier):
        raise InvalidArgumentError(f"{pier} is no pier with epochs in LMDB")
    # Order, metadata and the files at the destination, without a look at the events.
    Book.migrate_lmdb(pier, to, layout=layout, epochs=[], dry_run=True)
    log = to / ".urb" / "log"
    epochs = _epochs(pier / ".urb" / "log") or [0]
    there = [] if verify or dry_run else [one for one in epochs[:-1] if _is_signed(log, one)]
    wanted = [one for one in epochs if one not in there]
    if not dry_run:
        log.mkdir(parents=True, exist_ok=True)
        sync_folders(to, [log / "0i0"])
        for made in log.glob(f"{_MAKING}0i*"):
            is_folder(made)
            (made / _READY).unlink(missing_ok=True)  # of a run before: the epoch may have grown
    events, done = spark.sparkContext.accumulator(0), spark.sparkContext.accumulator(0)

    def bring(numbers: Iterable[int]) -> Iterable[dict[str, Any]]:
        settle()
        for number in numbers:
            task = _Task(pier, to, layout, dry_run, epochs)
            report = task.bring(number)
            events.add(report.events)
            done.add(1)
            yield report.epochs[0].to_dict()

    def look() -> tuple[int, int | None, str]:
        return int(events.value), None, f"{done.value} of {len(wanted)} epochs"

    def work() -> list[dict[str, Any]]:
        tasks = spark.sparkContext.parallelize(wanted, len(wanted))
        found: list[dict[str, Any]] = tasks.mapPartitions(bring).collect()
        return found

    brought = watch(spark, "migrate", work, look, progress)
    if not dry_run:
        publish(log, epochs)
        Book.migrate_lmdb(pier, to, layout=layout, epochs=[])
        for stray in log.glob(f"{_MAKING}0i*"):
            shutil.rmtree(stray, ignore_errors=True)
    names = [str(log / f"0i{one['epoch']}") for one in brought]
    return PierMigrateReport(
        str(pier),
        str(to),
        dry_run,
        tuple(
            MigratedEpoch(name, *(one[key] for key in ("epoch", "first", "last", "bytes", "found")))
            for name, one in zip(names, brought, strict=True)
        ),
        len(there),
        sum(_count(one["first"], one["last"]) for one in brought),
        round(time.monotonic() - begun, 3),
    )


@dataclass(frozen=True)
class _Task:
    """The input of a task that copies an epoch."""

    source: Path
    dest: Path
    layout: Layout | None
    dry_run: bool
    epochs: Sequence[int]

    def bring(self, epoch: int) -> LmdbMigration:
        """Copy an epoch, or compare an existing copy; give names to finished epochs."""
        log = self.dest / ".urb" / "log"
        # An epoch with its name stays in place: compare the events, and add the rest.
        if self.dry_run or (log / f"0i{epoch}").exists():
            report = self._migrate(self.dest, epoch, dry_run=True)
            if self.dry_run or (report.found == report.events and _is_signed(log, epoch)):
                return report
            return self._migrate(self.dest, epoch)
        try:
            report = self._stage(log / f"{_MAKING}0i{epoch}", epoch)
        except MissingError:
            if not _is_signed(log, epoch):
                raise
            # Another attempt was quicker, and the epoch has a name.
            return self._migrate(self.dest, epoch, dry_run=True)
        publish(log, self.epochs)
        return report

    def _stage(self, making: Path, epoch: int) -> LmdbMigration:
        if is_folder(making) and is_file(making / _READY):
            # The epoch may get its name at any moment, so write nothing more.
            return self._migrate(making, epoch, dry_run=True)
        try:
            report = self._migrate(making, epoch)
        except LockedError:  # by another attempt, perhaps of a run whose driver is dead
            context = TaskContext.get()
            assert context is not None, "called in tasks only"
            making = making.with_name(f"{making.name}.{context.taskAttemptId()}")
            report = self._migrate(making, epoch)
        (making / _READY).touch()
        return report

    def _migrate(self, dest: Path, epoch: int, dry_run: bool = False) -> LmdbMigration:
        return Book.migrate_lmdb(
            self.source, dest, layout=self.layout, epochs=[epoch], dry_run=dry_run
        )


def publish(log: Path, epochs: Sequence[int]) -> None:
    """Give names to complete epochs, up to the first incomplete epoch.

    Tasks may call this at the same time: a name is given once.
    """
    for epoch in epochs:
        if _is_signed(log, epoch):
            continue
        first = log / f"{_MAKING}0i{epoch}"
        made = (first, *sorted(log.glob(f"{first.name}.*")))
        for one in made:
            for folder in (one, one / ".urb", one / ".urb" / "log"):
                is_folder(folder)
        ready = next((one / ".urb" / "log" for one in made if is_file(one / _READY)), None)
        if ready is None:
            return
        try:
            (ready / f"0i{epoch}").rename(log / f"0i{epoch}")
        except OSError:
            if not _is_signed(log, epoch):  # else another one was quicker
                raise
        sync_folder(log)


def _epochs(log: Path) -> list[int]:
    if not log.is_dir():
        return []
    names = (_EPOCH.fullmatch(one.name) for one in log.iterdir() if one.is_dir())
    return sorted(int(name[1]) for name in names if name is not None)


def _is_signed(log: Path, epoch: int) -> bool:
    return (log / f"0i{epoch}" / _SIGNED).exists()


def _count(first: int | None, last: int | None) -> int:
    return 0 if first is None or last is None else last - first + 1
