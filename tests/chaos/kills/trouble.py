"""The faults: making one between two runs, the required message of a run, and undoing it."""

import errno
import os
import random
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from chaos.home import SILVER, Home, Source
from chaos.runs import Once, Runs
from chaos.tables import bronze_of

_FULL_BYTES: Final = 1 << 16


class NotNowError(Exception):
    """This fault is impossible now, or on this machine."""


@dataclass
class Place:
    home: Home
    runs: Runs
    aside: Path
    """A directory for moved files, on the pipeline's file system."""
    paused: Callable[[], AbstractContextManager[object]]
    """Makes followers close the logs."""
    order: random.Random

    def batches(self, query: str) -> int:
        try:
            names = os.listdir(self.home.checkpoint(query) / "commits")
        except FileNotFoundError:
            return 0
        return 1 + max((int(name) for name in names if name.isdecimal()), default=-1)

    def is_committing(self, source: Source) -> bool:
        """Whether a kill interrupted a commit to a bronze log; the next writer ends the commit."""
        return (self.home.bronze(source.name) / ".deedbook" / "transaction").exists()

    def log(self, source: Source) -> list[Any]:
        return list(bronze_of(self.home.bronze(source.name), source.bronze).records)

    def tables(self) -> dict[str, tuple[int, int]]:
        found = {}
        for folder in ("silver", "gold"):
            for file in (self.home.directory / folder).rglob("*"):
                if file.is_file():
                    status = file.stat()
                    found[str(file)] = (status.st_size, status.st_mtime_ns)
        return found


class Trouble(ABC):
    name: str
    check: str
    moment: str = "between runs"

    def __init__(self, place: Place) -> None:
        self.place = place

    def look(self) -> None:
        """Called between any two runs until the fault is made."""
        return

    @abstractmethod
    def make(self) -> tuple[Once, Sequence[str], bool]:
        """Make the fault, run the pipeline, and undo the fault."""


class CheckpointLost(Trouble):
    """A run without the checkpoint of a source, or of silver; afterwards the checkpoint is back."""

    name = "checkpoint lost"
    check = "trouble: refused without its checkpoint"

    def make(self) -> tuple[Once, Sequence[str], bool]:
        place = self.place
        logs = {f"bronze/{one.name}": one for one in place.home.sources}
        found = [name for name in (*logs, SILVER) if place.batches(name) > 0]
        if not found:
            raise NotNowError("no batch has come through")
        name = place.order.choice(found)
        target = place.home.checkpoint(name)

        def state() -> tuple[Any, Any]:
            return place.log(logs[name]) if name in logs else None, place.tables()

        before = state()
        with _moved(target, place.aside / "checkpoint"):
            run = place.runs.once()
        says = (
            ["give another txnAppId", name]
            if name in logs
            else ["no checkpoint is at", str(target)]
        )
        return run, says, state() == before


class DiskFull(Trouble):
    """The tasks that read a source have no room to stage: a full file system covers the folder."""

    name = "disk full"
    check = "trouble: failed on a full disk"
    moment = "in a run"

    def make(self) -> tuple[Once, Sequence[str], bool]:
        place = self.place
        # An interrupted commit needs the files in the folder.
        ready = [one for one in place.home.sources if not place.is_committing(one)]
        found = [one for one in ready if place.batches(f"bronze/{one.name}") > 0]
        if not found:
            raise NotNowError("no batch has come through, or commits are to be ended first")
        source = place.order.choice(found)
        staged = place.home.bronze(source.name) / ".deedbook" / "staged"
        before = place.log(source), place.tables()
        with full_disk(staged, place.aside / "full"):
            run = place.runs.once()
        if run.code == 0 and run.rows.get(f"bronze/{source.name}") == 0:
            raise NotNowError(f"nothing new came to {source.name}")
        unchanged = (place.log(source), place.tables()) == before
        return run, [os.strerror(errno.ENOSPC), str(staged)], unchanged


class LogCut(Trouble):
    """An older copy replaces a bronze log for one run; afterwards the log is back.

    The copy must miss two batches. A kill can cause the first missing batch to come again, and then
    this batch would continue the copy, too.
    """

    name = "log cut"
    check = "trouble: refused a log that was cut"

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._source: Source | None = None
        self._batches = 0

    @property
    def _copy(self) -> Path:
        return self.place.aside / "copy"

    def look(self) -> None:
        place = self.place
        logs = place.home.sources
        found = [
            one
            for one in logs
            if place.batches(f"bronze/{one.name}") and not place.is_committing(one)
        ]
        if self._source is None and found:
            source = place.order.choice(found)
            self._batches = place.batches(f"bronze/{source.name}")
            shutil.copytree(place.home.bronze(source.name), self._copy)
            self._source = source

    def make(self) -> tuple[Once, Sequence[str], bool]:
        place, source = self.place, self._source
        if source is None or place.batches(f"bronze/{source.name}") < self._batches + 2:
            raise NotNowError("a log did not grow by two batches")
        log = place.home.bronze(source.name)
        with place.paused(), _moved(log, place.aside / "log"):
            self._copy.rename(log)
            before = place.log(source), place.tables()
            run = place.runs.once()
            unchanged = (place.log(source), place.tables()) == before
        return run, ["is not the next", str(log)], unchanged


KINDS: Final[tuple[type[Trouble], ...]] = (CheckpointLost, DiskFull, LogCut)


@contextmanager
def _moved(path: Path, aside: Path) -> Iterator[None]:
    """Move something away and back; files made in its place are deleted."""
    path.rename(aside)
    try:
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
        aside.rename(path)


@contextmanager
def full_disk(folder: Path, aside: Path) -> Iterator[None]:
    """Cover a folder with a full file system. Raises `NotNowError` if mounting is not allowed."""
    aside.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={_FULL_BYTES}", "tmpfs", str(aside))
    try:
        (aside / "folder").mkdir()
        with (aside / "filled").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        _mount("--bind", str(aside / "folder"), str(folder))
        try:
            yield
        finally:
            _unmount(folder)
    finally:
        _unmount(aside)


def _mount(*arguments: str) -> None:
    try:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NotNowError("there is no mount") from error
    if done.returncode != 0:
        raise NotNowError(f"mounting is not allowed: {done.stderr.strip()}")


def _unmount(folder: Path) -> None:
    """Unmount, even while a dying process still has a file there open."""
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)
