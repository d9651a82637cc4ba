"""How ``append`` writes a log, by its format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from deedbook import Book, Ledger, Pier, Wal
from deedbook._formats import FORMATS
from deedbook._formats.info import FormatInfo
from deedbook._formats.ledger import LEDGER
from deedbook._formats.log import LogInfo
from deedbook._text import count

__all__ = ["Appender", "Present", "append_options", "line_bytes_max", "logs", "open_appender"]

_CREATE_OPTIONS: Final = {
    "book": ("epoch", "layout"),
    "pier": ("epoch",),
    "wal": ("segment_bytes", "single_file"),
    "ledger": ("base", "batch_bytes", "max_bytes"),
}
_APPEND_OPTIONS: Final = {
    "book": ("resume", "acks"),
    "pier": ("resume", "acks"),
    "wal": ("acks",),
    "ledger": ("drop_oldest",),
}
_LINE_BYTES_MAX: Final = {"ledger": 1 << 20}


def logs() -> tuple[FormatInfo, ...]:
    """The formats to which lines are appended as they are."""
    return tuple(info for info in FORMATS if isinstance(info, LogInfo) or info is LEDGER)


def line_bytes_max(info: FormatInfo) -> int:
    """The limit of a line where none is given."""
    return _LINE_BYTES_MAX.get(info.name, 256 << 20)


def create_options(info: FormatInfo) -> tuple[str, ...]:
    """Options for a new log that only this format has."""
    return _CREATE_OPTIONS.get(info.name, ())


def append_options(info: FormatInfo) -> tuple[str, ...]:
    """All options that only this format has."""
    return create_options(info) + _APPEND_OPTIONS.get(info.name, ())


class Appender(ABC):
    """Lines on their way into a log: what was appended, and up to where it is durable."""

    takes_empty = True
    """Whether a record may have no bytes."""

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

    def opening(self) -> list[str]:
        """What opening changed, in words."""
        return []

    def files(self) -> Iterable[str]:
        """The log's own files, which are no input of it."""
        return ()

    @abstractmethod
    def sync(self) -> None:
        """Make all lines durable."""

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


class _LogAppender(Appender):
    """Lines into a log that opening mends."""

    def __init__(self, info: Any, log: Any) -> None:
        self._info = info
        self._log = log

    def opening(self) -> list[str]:
        recovery = self._log.recovery
        said = []
        if recovery.cut_records > 0:
            said.append(f"cut {count(recovery.cut_records, f'unacknowledged {self._info.noun}')}")
        elif recovery.cut_bytes and recovery.torn_bytes:
            torn = count(recovery.torn_bytes, "byte")
            said.append(f"cut a torn tail of {torn} after byte {recovery.valid_end:,}")
        if recovery.saved_to is not None:
            said.append(f"what was cut is in {recovery.saved_to}")
        return said + [
            f"a segment after a gap is set aside as {path}" for path in recovery.set_aside
        ]

    def files(self) -> Iterable[str]:
        files: Iterable[str] = self._info.files(self._log)
        return files

    def sync(self) -> None:
        self._log.sync()


class DeedAppender(_LogAppender):
    """Lines as deeds, which have numbers: what is there can be skipped."""

    def __init__(self, info: Any, book: Book | Pier) -> None:
        super().__init__(info, book)
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


class RecordAppender(_LogAppender):
    """Lines as records, which are known by the byte at which they begin."""

    def __init__(self, info: Any, wal: Wal) -> None:
        super().__init__(info, wal)
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


class EventAppender(Appender):
    """Lines as events of a ledger, which have no numbers before their files are finished."""

    takes_empty = False

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def commit(self, lines: list[bytes]) -> None:
        self._ledger.append_many(lines)

    def durable(self) -> None:
        return None

    def positions(self) -> dict[str, Any]:
        return {"base": self._ledger.base, "dropped": self._ledger.stats().dropped_events}

    def where(self, appended: int) -> str:
        dropped = self._ledger.stats().dropped_events
        return f", dropped {count(dropped, 'older record')}" if dropped else ""

    def how_durable(self) -> str:
        return "all on stable storage"

    def files(self) -> Iterable[str]:
        return [file.path for file in self._ledger.files]

    def sync(self) -> None:
        self._ledger.sync()


@contextmanager
def open_appender(
    info: FormatInfo, path: str, durability: str, given: Mapping[str, Any]
) -> Iterator[Appender]:
    """Open a log to append lines; ``given`` has the options of the command."""
    options = {name: given[name] for name in create_options(info) if given[name] is not None}
    if info is LEDGER:
        options["on_full"] = "drop_oldest" if given["drop_oldest"] else "reject"
    else:
        options |= {name: given[name] for name in ("recovery", "lock_timeout")}
    with info.open(path, "a", durability=durability, **options) as log:
        if isinstance(log, Ledger):
            yield EventAppender(log)
        elif isinstance(log, Wal):
            yield RecordAppender(info, log)
        else:
            yield DeedAppender(info, log)
