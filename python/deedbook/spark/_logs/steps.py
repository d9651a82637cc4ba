"""Streams through a log of the engine, for books and write-ahead logs."""

from __future__ import annotations

import functools
import logging
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from deedbook import InvalidArgumentError, Log
from deedbook.jobs import Bookmark
from deedbook.spark._logs.format import Limits, Place, Step
from deedbook.spark._logs.parts import Piece
from deedbook.spark._options.options import ReadOptions

__all__ = ["Steps"]

_log = logging.getLogger("deedbook")

_WAIT_SECONDS = 30.0
"""A writer at work syncs sooner than that."""
_waiting: dict[str, tuple[Bookmark | None, float]] = {}
"""The places at which streams of this process wait for a sync, with the beginning of the wait."""
_KEYS = {"offset": "byte", "ordinal": "number", "first": "first", "before": "before"}
"""The values of a bookmark by their names in a checkpoint."""


class Steps(ABC):
    """Steps through a log by bookmarks. A checkpoint keeps a bookmark for each log."""

    in_sequence: bool

    @abstractmethod
    def open_log(self, log: Path) -> Log[Any]:
        """Open a log for reading."""

    def begin(
        self, log: Path, position: str | int, options: ReadOptions, alone: bool = False
    ) -> Place:
        """The bookmark of a position. Outside of the log the nearest, unless ``alone``."""
        with self.open_log(log) as opened:
            begin = opened.bookmark()
            if position == "earliest":
                return {**_place(begin), "origin": begin.offset}
            if position == "latest":
                return _place(_end(opened, begin, options))
            assert isinstance(position, int)
            bounds = opened.bounds
            if not alone and (bounds is None or position <= bounds[0]):
                return _place(begin)
            if not alone and bounds is not None and position > bounds[1]:
                return _place(_end(opened, begin, options))
            return _place(opened.bookmark(position))

    def origin(self, place: Place) -> Place:
        """The log's begin, by the place.

        A place of an older query knows the first intact record alone, which may lie after damage.
        """
        first = place.get("first")
        begin = str(first).partition(":")[0] if first is not None else place["byte"]
        known = {"first": first} if first is not None else {}
        return {"byte": int(place.get("origin", begin)), **known}

    def advance(self, log: Path, place: Place, limits: Limits, options: ReadOptions) -> Step:
        """As far as the log is durable, or with ``readUntil`` written, within the limits."""
        start = _bookmark(place)
        to = None if limits.to is None else _bookmark(limits.to)
        durable = options.read_until == "durable"
        with self.open_log(log) as opened:
            stop = opened.advance(
                start, to=to, records=limits.rows, bytes=limits.bytes, durable=durable
            )
            if stop == start:
                if opened.end > stop.offset:
                    _unsynced(str(log), stop, opened.durable_end == opened.bookmark().offset)
                return Step(place, 0, 0)
            rows = 0
            if limits.rows is not None:
                rows = sum(split.records or 0 for split in opened.splits_between(start, stop))
            more = self.in_sequence and (
                opened.advance(stop, to=to, durable=durable).offset > stop.offset
            )
        begun = {"origin": place["origin"]} if "origin" in place else {}
        return Step(_place(stop) | begun, rows, stop.offset - start.offset, more)

    def between(
        self, log: Path, start: Place, stop: Place, options: ReadOptions, split_size: int
    ) -> list[Piece]:
        """The parts between two bookmarks."""
        with self.open_log(log) as opened:
            splits = opened.splits_between(_bookmark(start), _bookmark(stop), split_size)
        return list(splits)

    def resume(self, log: Path, place: Place, options: ReadOptions) -> Place:
        """The end of a truncated log, or else the first record.

        The stream has read the records before the cut. If the front of a log was dropped, the
        stream reads the rest. From another log, the stream reads all records.
        """
        with self.open_log(log) as opened:
            begin = opened.bookmark()
            end = _end(opened, begin, options)
            is_cut = begin.offset <= int(place["byte"]) and end.offset < int(place["byte"])
            same = begin.first == place.get("first")
            return _place(end if is_cut and same else begin)


def _unsynced(log: str, place: Bookmark, never: bool) -> None:
    """Warn that a stream waits for a sync that may never come: no sync came, or not for long."""
    now = time.monotonic()
    seen, since = _waiting.get(log, (None, now))
    _waiting[log] = (place, since if seen == place else now)
    if never or (seen == place and now - since > _WAIT_SECONDS):
        _tell_unsynced(log)


@functools.cache
def _tell_unsynced(log: str) -> None:
    """Once for each log: nothing is read, although there is something."""
    _log.warning(
        "%s: what follows is written, but not known to be on stable storage, so the stream waits"
        " for the writer's sync; readUntil=written reads it",
        log,
    )


def _end(opened: Log[Any], begin: Bookmark, options: ReadOptions) -> Bookmark:
    """The end of a log, after damage if any."""
    while True:
        end = opened.advance(begin, durable=options.read_until == "durable")
        if end == begin:
            return end
        begin = end


def _place(bookmark: Bookmark) -> Place:
    return {_KEYS[name]: value for name, value in bookmark.to_dict().items() if value is not None}


def _bookmark(place: Place) -> Bookmark:
    if "byte" not in place:
        raise InvalidArgumentError(f"the checkpoint is not this query's: no byte in {place}")
    values: dict[str, Any] = {name: place.get(key) for name, key in _KEYS.items()}
    return Bookmark(**values)
