"""How ``append`` writes a log, by its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from deedbook import Book, Pier, Wal
from deedbook._formats import FORMATS
from deedbook._formats.info import FormatInfo
from deedbook._formats.log import LogInfo

__all__ = ["Appender", "Present", "append_options", "appender_of", "create_options", "logs"]

_CREATE_OPTIONS: Final = {
    "book": ("epoch", "layout"),
    "pier": ("epoch",),
    "wal": ("segment_bytes", "single_file"),
}
_APPEND_OPTIONS: Final = {"book": ("resume",), "pier": ("resume",)}


def create_options(info: FormatInfo) -> tuple[str, ...]:
    """Options for a new log that only this format has."""
    return _CREATE_OPTIONS.get(info.name, ())


def append_options(info: FormatInfo) -> tuple[str, ...]:
    """All options that only this format has."""
    return create_options(info) + _APPEND_OPTIONS.get(info.name, ())


def logs() -> tuple[LogInfo[Any], ...]:
    """The formats whose paths are logs, which `deedbook append` makes and mends."""
    return tuple(info for info in FORMATS if isinstance(info, LogInfo))


class Appender(ABC):
    """Lines on their way into a log: what was appended, and up to where it is durable."""

    @abstractmethod
    def commit(self, lines: list[bytes]) -> None:
        """Append lines as one batch: all of them, or an error."""

    @abstractmethod
    def durable(self) -> int | None:
        """What ``--acks`` reports: up to where the log is durable."""

    @abstractmethod
    def positions(self) -> dict[str, Any]:
        """For JSON: where the lines are."""

    @abstractmethod
    def where(self, appended: int) -> str:
        """For the summary: where the lines are."""

    @abstractmethod
    def how_durable(self) -> str:
        """For the summary: what is durable."""

    def present(self) -> Present | None:
        """What the log already holds, for ``--resume``; None if its records have no numbers."""
        return None


class Present(NamedTuple):
    """The records that a log held before, to be compared with the first lines of an input."""

    first: int
    """Position of the first one."""
    length: int
    payloads: Callable[[int, int], Iterable[bytes]]
    """The payloads of a range of positions."""


class DeedAppender(Appender):
    """Lines as deeds, which have numbers: what is there can be skipped."""

    def __init__(self, book: Book | Pier) -> None:
        self._book = book
        self._first = book.epoch + 1
        self._last = book.last

    def commit(self, lines: list[bytes]) -> None:
        added = self._book.append_many(lines, atomic=True, event=self._last + 1)
        self._last = added.end - 1

    def durable(self) -> int | None:
        return self._book.durable_last

    def positions(self) -> dict[str, Any]:
        return {"last_event": self._last, "durable_event": self._book.durable_last}

    def where(self, appended: int) -> str:
        return f" (events {self._last - appended + 1}..{self._last})" if appended else ""

    def how_durable(self) -> str:
        durable = self._book.durable_last
        if durable is not None and durable == self._last:
            return "all durable"
        return f"durable through event {durable or self._first - 1}"

    def present(self) -> Present:
        return Present(self._first, len(self._book), self._book.payloads)


class RecordAppender(Appender):
    """Lines as records, which are known by the byte at which they begin."""

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self._first_lsn: int | None = None

    def commit(self, lines: list[bytes]) -> None:
        first = self._wal.append_many(lines).first
        if self._first_lsn is None:
            self._first_lsn = first

    def durable(self) -> int | None:
        return self._wal.durable_end

    def positions(self) -> dict[str, Any]:
        return {
            "first_lsn": self._first_lsn,
            "end": self._wal.end,
            "durable_end": self._wal.durable_end,
        }

    def where(self, appended: int) -> str:
        if self._first_lsn is None:
            return ""
        return f" (bytes {self._first_lsn:,} to {self._wal.end:,})"

    def how_durable(self) -> str:
        durable = self._wal.durable_end
        return "all durable" if durable == self._wal.end else f"durable to byte {durable or 0:,}"


def appender_of(log: Book | Pier | Wal) -> Appender:
    """The log as ``append`` writes it."""
    return RecordAppender(log) if isinstance(log, Wal) else DeedAppender(log)
