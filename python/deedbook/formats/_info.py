"""What a log format says of itself, so that nothing else asks which format it is."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from deedbook._core import Book, Damage, Loss, SalvageReport, Wal

LogT = TypeVar("LogT", Book, Wal)

SIDECAR = ".deedbook"


class Place(NamedTuple):
    """A path, and what is in it if it is a directory."""

    path: str
    names: Sequence[str] | None
    """The names in a directory, in order; None for anything else."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)


def first_setting(sidecar: str) -> bytes | None:
    """The first line of the settings in a log's sidecar; None if it has none."""
    try:
        with open(os.path.join(sidecar, "settings"), "rb") as file:
            return file.readline(64)
    except OSError:
        return None


class Skipping(Protocol):
    """Records around damage."""

    @property
    def damages(self) -> list[Damage]:
        """The stretches passed over so far."""

    def __iter__(self) -> Iterator[Any]: ...


class View(Protocol):
    """A log as ``cat`` reads it. Positions are event numbers, or LSNs."""

    @property
    def first(self) -> int:
        """Position of the first record."""

    @property
    def end(self) -> int:
        """Position after the last record."""

    def read(self, at: int, /) -> Any:
        """The record at a position."""

    def iter(self, start: int | None, stop: int | None, *, reverse: bool) -> Iterable[Any]:
        """The records of a range, which may reach beyond the end."""

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        """The intact records of a range."""

    def payloads(self, start: int | None, stop: int | None, /) -> Iterable[bytes]:
        """The payloads of a range."""

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Any]:
        """The records from a position on, waiting for more."""


class Entry(NamedTuple):
    """One record, in the terms that all formats share."""

    position: int | None
    """None where damage hid the number."""
    next_position: int | None
    payload: bytes
    facts: dict[str, Any]
    """What JSON shows before the payload."""
    payload_name: str


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


class FormatInfo(ABC, Generic[LogT]):
    """One log format: how its logs are recognised, opened, read, appended to, mended, described.

    A further format is one more subclass, and its instance in `deedbook.formats.FORMATS`.
    """

    name: ClassVar[str]
    """As in ``--format`` and in JSON."""
    title: ClassVar[str]
    """In a sentence: ``holds a {title}``."""
    noun: ClassVar[str]
    """One record."""
    position: ClassVar[str]
    """What a record is found by."""
    position_min: ClassVar[int] = 0
    log: type[LogT]
    """The class of a handle."""
    saved_name: ClassVar[re.Pattern[str]]
    """Names of files in which the end of a log was saved before it was cut; ``offset`` says where
    that was."""
    create_options: ClassVar[tuple[str, ...]] = ()
    """Options of ``append`` for a new log that only this format has."""
    append_options: ClassVar[tuple[str, ...]] = ()
    """Further options of ``append`` that only this format has."""
    instead: ClassVar[Mapping[str, str]] = {}
    """What to do instead of an option that this format does not have."""

    # -- what is there

    @abstractmethod
    def evidence(self, place: Place) -> str | None:
        """The name of a file that only a log of this format has; None if there is none."""

    def hint(self, place: Place) -> str | None:
        """As `evidence`, for what may be of another format as well."""
        return None

    @abstractmethod
    def is_there(self, path: str) -> bool:
        """Whether such a log certainly lies at a path, by a quick look."""

    # -- a log

    @abstractmethod
    def view(self, log: LogT) -> View:
        """The log as ``cat`` reads it."""

    @abstractmethod
    def entry(self, record: Any) -> Entry:
        """A record of the log in the terms that all formats share."""

    @abstractmethod
    def appender(self, log: LogT) -> Appender:
        """The log as ``append`` writes it."""

    @abstractmethod
    def files(self, log: LogT) -> Sequence[str]:
        """The files that hold the log's records."""

    def sidecar(self, log: LogT) -> str:
        """The log's directory of mark, index and lock."""
        return os.path.join(log.path, SIDECAR)

    # -- in words and in JSON

    @abstractmethod
    def size_bytes(self, log: LogT) -> int:
        """Bytes that the log takes."""

    @abstractmethod
    def facts(self, log: LogT) -> dict[str, Any]:
        """What ``info --json`` shows beside the keys that all formats share."""

    @abstractmethod
    def rows(self, log: LogT) -> list[tuple[str, str]]:
        """What ``info`` shows of layout, records, size and durability."""

    @abstractmethod
    def extent_text(self, bounds: tuple[int, int] | None) -> str:
        """The bounds of a verify report: ``, events 1..5``; empty if there is nothing to say."""

    @abstractmethod
    def loss_at(self, loss: Loss) -> str:
        """Where acknowledged records are missing: ``event 812``, ``lsn 4,096``."""

    @abstractmethod
    def moved_lines(self, report: SalvageReport) -> list[str]:
        """Which records have another position after a salvage than before."""


__all__ = [
    "SIDECAR",
    "Appender",
    "Entry",
    "FormatInfo",
    "LogT",
    "Place",
    "Present",
    "Skipping",
    "View",
    "first_setting",
]
