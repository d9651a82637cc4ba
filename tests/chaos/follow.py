"""A follower of bronze notes each new record.

The log must keep every noted record forever, whatever process is killed: `chaos.check` compares the
notes with the log. A follower that starts again reads from the first record on, and compares the
log with its earlier notes.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from chaos.home import Home, Source
from chaos.inputs.notes import JsonLines, digest, json_lines
from deedbook import Book, Error, MissingError, Wal

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


def follow(home: Home, stop: threading.Event) -> list[Followed]:
    """Follow all bronze logs until ``stop`` is set. Logs may appear later."""
    found: dict[str, Followed] = {}

    def run(source: Source) -> None:
        found[source.name] = _follow(source, home, stop)

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


def _follow(source: Source, home: Home, stop: threading.Event) -> Followed:
    file = home.follower(source.name)
    count = noted = 0
    error = None
    try:
        with JsonLines(file) as notes:
            before = list(json_lines(file))
            noted = len(before)
            for position, payload in _READERS[source.bronze](home.bronze(source.name), stop):
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


def _read_book(path: Path, stop: threading.Event) -> Iterator[Seen]:
    book = _opened(lambda: Book.open(path), stop)
    if book is None:
        return
    with book:
        at = book.epoch + 1
        while not stop.is_set():
            for deed in book.follow(at, timeout=_POLL_SECONDS):
                at += 1
                yield deed.event or 0, deed.payload
                if stop.is_set():
                    return


def _read_wal(path: Path, stop: threading.Event) -> Iterator[Seen]:
    wal = _opened(lambda: Wal.open(path), stop)
    if wal is None:
        return
    with wal:
        at = wal.head
        while not stop.is_set():
            for record in wal.follow(at, timeout=_POLL_SECONDS):
                at = record.next_lsn
                yield record.lsn, record.payload
                if stop.is_set():
                    return


_READERS: Final[dict[str, Callable[[Path, threading.Event], Iterator[Seen]]]] = {
    "book": _read_book,
    "wal": _read_wal,
}


def _opened(open_log: Callable[[], _L], stop: threading.Event) -> _L | None:
    """Open a log as soon as the files exist; None at the end of the wait."""
    while True:
        try:
            return open_log()
        except (MissingError, FileNotFoundError):
            if stop.wait(_POLL_SECONDS):
                return None
