"""A follower of bronze notes each new record."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import deedbook
from chaos.home import Home, Source
from chaos.inputs.notes import JsonLines, digest, json_lines
from deedbook import Error, MissingError

_POLL_SECONDS: Final = 0.25

Seen = tuple[int, bytes]


@dataclass(frozen=True)
class Followed:
    """The records that a follower saw, in this run and earlier runs."""

    source: str
    records: int
    error: str | None
    """The error that ended the follower early: a changed record, or damage."""


def follow(home: Home, stop: threading.Event) -> list[Followed]:
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
            for position, payload in _read(home.bronze(source.name), stop):
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


def _read(path: Path, stop: threading.Event) -> Iterator[Seen]:
    log: Any = None
    while log is None:
        try:
            log = deedbook.open(path)
        except (MissingError, FileNotFoundError):
            if stop.wait(_POLL_SECONDS):
                return
    with log:
        follower = log.follow(timeout=_POLL_SECONDS)
        while not stop.is_set():
            for record in follower:
                yield record.position, record.payload
                if stop.is_set():
                    return
