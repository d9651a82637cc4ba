"""A follower of bronze: a reader that notes each record as it arrives.

The log must keep every noted record forever, whatever process is killed: `chaos.check` compares the
notes with the log. A follower that starts again reads from the first record on, and compares the
log with its earlier notes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from chaos.home import Home, Source
from chaos.inputs.notes import JsonLines, digest, json_lines
from deedbook import Book, Error, MissingError, Wal

__all__ = ["Followed", "follow"]

_POLL_SECONDS: Final = 0.25

Seen = tuple[int, bytes]
_L = TypeVar("_L")


@dataclass(frozen=True)
class Followed:
    """The records that a follower saw, in this run and earlier runs."""

    source: str
    records: int
    error: str | None
    """The error that ended the follower early: a changed record, or damage."""


def follow(home: Home, stop: threading.Event, idle_seconds: float | None = None) -> list[Followed]:
    """Follow all bronze logs until ``stop`` is set, or for ``idle_seconds`` without a record.

    Logs may appear later.
    """
    found: dict[str, Followed] = {}

    def run(source: Source) -> None:
        found[source.name] = _follow(source, home, stop, idle_seconds)

    threads = [threading.Thread(target=run, args=(source,)) for source in home.sources]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return [found[source.name] for source in home.sources]


def _follow(
    source: Source, home: Home, stop: threading.Event, idle_seconds: float | None
) -> Followed:
    file = home.follower(source.name)
    count = noted = 0
    error = None
    try:
        with JsonLines(file) as notes:
            before = list(json_lines(file))
            noted = len(before)
            idle = _Idle(stop, idle_seconds)
            for position, payload in _READERS[source.bronze](home.bronze(source.name), idle):
                note = {"sha256": digest(payload), "position": position}
                if count >= noted:
                    notes.add([note], sync=False)
                elif before[count] != note:
                    error = f"record {count + 1} was {before[count]} and is {note}"
                    break
                count += 1
    except (Error, OSError, ValueError) as caught:
        error = str(caught)
    return Followed(source.name, max(count, noted), error)


class _Idle:
    """Decides when to end: at the stop, or after ``seconds`` without a record."""

    def __init__(self, stop: threading.Event, seconds: float | None) -> None:
        self._stop = stop
        self._seconds = seconds
        self._last = time.monotonic()

    def came(self) -> None:
        self._last = time.monotonic()

    def ends(self, wait: bool = False) -> bool:
        if wait:
            self._stop.wait(_POLL_SECONDS)
        idle = time.monotonic() - self._last
        return self._stop.is_set() or (self._seconds is not None and idle >= self._seconds)


def _read_book(path: Path, idle: _Idle) -> Iterator[Seen]:
    book = _opened(lambda: Book.open(path), idle)
    if book is None:
        return
    with book:
        at = book.epoch + 1
        while not idle.ends():
            for deed in book.follow(at, timeout=_POLL_SECONDS):
                at += 1
                idle.came()
                yield deed.event or 0, deed.payload
                if idle.ends():
                    return


def _read_wal(path: Path, idle: _Idle) -> Iterator[Seen]:
    wal = _opened(lambda: Wal.open(path), idle)
    if wal is None:
        return
    with wal:
        at = wal.head
        while not idle.ends():
            for record in wal.follow(at, timeout=_POLL_SECONDS):
                at = record.next_lsn
                idle.came()
                yield record.lsn, record.payload
                if idle.ends():
                    return


_READERS: Final[dict[str, Callable[[Path, _Idle], Iterator[Seen]]]] = {
    "book": _read_book,
    "wal": _read_wal,
}


def _opened(open_log: Callable[[], _L], idle: _Idle) -> _L | None:
    """Open a log as soon as the files exist; None at the end of the wait."""
    while True:
        try:
            return open_log()
        except (MissingError, FileNotFoundError):
            if idle.ends(wait=True):
                return None
