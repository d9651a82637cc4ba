"""Writers of ``append``, one for each format."""

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
from deedbook._show.text import count

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
    """The formats with lines as records."""
    return tuple(info for info in FORMATS if isinstance(info, LogInfo) or info is LEDGER)


def line_bytes_max(info: FormatInfo) -> int:
    """The default limit of a line, in bytes."""
    return _LINE_BYTES_MAX.get(info.name, 256 << 20)


def create_options(info: FormatInfo) -> tuple[str, ...]:
    """The options of ``append`` for new logs of the format."""
    return _CREATE_OPTIONS.get(info.name, ())


def append_options(info: FormatInfo) -> tuple[str, ...]:
    """All options of ``append`` for the format."""
    return create_options(info) + _APPEND_OPTIONS.get(info.name, ())


class Appender(ABC):
    """A writer of lines: the appended lines, and the durable end."""

    takes_empty = True
    """Whether a record may have no bytes."""

    @abstractmethod
    def commit(self, lines: list[bytes]) -> None:
        """Append lines as a batch: either all lines, or an error."""

    @abstractmethod
    def durable(self) -> int | None:
        """The durable end of the log, for ``--acks``."""

    @abstractmethod
    def positions(self) -> dict[str, Any]:
        """The positions of the lines, for JSON."""

    @abstractmethod
    def where(self, appended: int) -> str:
        """The positions of the lines, for the summary."""

    @abstractmethod
    def how_durable(self) -> str:
        """The durable part, for the summary."""

    def opening(self) -> list[str]:
        """The changes on opening, in words."""
        return []

    def files(self) -> Iterable[str]:
        """The files of the log. None of the files may be the input."""
        return ()

    @abstractmethod
    def sync(self) -> None:
        """Make all lines durable."""

    def present(self) -> Present | None:
        """The records in the log, for ``--resume``; None if records have no numbers."""
        return None


class Present(NamedTuple):
    """The records of a log before the run, to compare with the first lines of the input."""

    first: int
    """Position of the first record."""
    length: int
    payloads: Callable[[int, int], Iterable[bytes]]
    """The payloads of a range of positions."""


class _LogAppender(Appender):
    """Lines to a log. Opening repairs the log after a crash."""

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
    """Lines as deeds. Deeds have numbers, so ``--resume`` can skip lines."""

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
    """Lines as records of a WAL. The position of a record is the first byte (LSN)."""

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
    """Lines as events of a ledger. Events have no numbers before the file is finished."""

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
