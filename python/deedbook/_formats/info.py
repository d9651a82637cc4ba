"""The description of a log format. No other module asks which format a log has."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from deedbook._core import Stats, _is_at


class Passed(Protocol):
    """A damaged stretch."""

    @property
    def offset(self) -> int:
        """First byte of the stretch."""

    @property
    def end(self) -> int:
        """First byte after the stretch."""

    @property
    def reason(self) -> str:
        """The cause of the damage."""


class Skipping(Protocol):
    """Records around damage."""

    @property
    def damages(self) -> Sequence[Passed]:
        """The stretches skipped so far."""

    def __iter__(self) -> Iterator[Any]: ...


class View(Protocol):
    """Records as read by ``cat``. Positions are event numbers, LSNs, or indexes of files."""

    @property
    def left_out(self) -> str | None:
        """The parts of the log that are not read, in words."""

    def records(self, start: int | None, stop: int | None) -> Iterable[Any]:
        """The records of a range, which may reach beyond the end."""

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        """The intact records of a range."""

    def payloads(self, start: int | None, stop: int | None, /) -> Iterable[bytes]:
        """The payloads of a range."""


class Entry(NamedTuple):
    """One record, in the terms of all formats."""

    position: int | None
    """None where damage hid the number."""
    next_position: int | None
    payload: bytes
    facts: dict[str, Any]
    """Fields before the payload in JSON."""
    payload_name: str
    label: str | None = None
    """Text before the payload, if other than the position."""


class Description(NamedTuple):
    """The output of ``info``."""

    facts: dict[str, Any]
    """For JSON."""
    rows: list[tuple[str, str]]
    """Names and values."""
    corrupt: bool


class Figures(NamedTuple):
    """The facts that a handle knows at once. None: not known, or unknown to the format."""

    bytes: int
    """Bytes of the records."""
    files: int
    """Files with the records."""
    records: int | None = None
    end: int | None = None
    """The last event, or the LSN after the last record."""
    unsynced_bytes: int | None = None
    """Bytes after the durable end."""
    unsynced_records: int | None = None
    """Records after the durable end."""
    lost_records: int | None = None
    """Acknowledged records known to be lost."""
    is_damaged: bool | None = None
    """Whether opening met damage, or a noted loss."""
    consumers: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """By name: the next position of each consumer, and the distance to the end."""
    lag_unit: Literal["bytes", "records"] = "bytes"
    """The unit of the distance."""
    quarantined_files: int | None = None
    """Damaged files set aside."""


class Outcome(NamedTuple):
    """The result of ``verify`` or ``salvage``."""

    ok: bool
    """Whether the log is undamaged."""
    facts: dict[str, Any]
    """Values for JSON, next to the paths and the format."""
    lines: list[str]
    """The same in words."""


class Stretch(NamedTuple):
    """Damaged bytes."""

    offset: int
    end: int
    reason: str


class Part(NamedTuple):
    """A stretch of a log's bytes with one beginning, and its damage."""

    name: str
    begin: int
    end: int
    """The byte after the last one, also if acknowledged bytes before it are missing."""
    damages: tuple[Stretch, ...]


class Progress(Protocol):
    """Called with bytes done and bytes in all; an exception ends the call."""

    def __call__(self, done: int, total: int, /) -> object: ...


class Found(NamedTuple):
    """The log at a path."""

    format: FormatInfo
    """Format of the log."""
    saved: bool = False
    """Whether the file is the saved end of a log that was cut."""
    saved_offset: int | None = None
    """The first byte of the saved end in its log, if the file's name has it."""


class FormatInfo(ABC):
    """One format: how its logs are opened, read, checked and described.

    To add a format, add a subclass, its instance in `deedbook._formats.FORMATS`, and its rule in
    `deedbook::detect` of the crate. If the format's paths are logs, `deedbook._formats.log.LogInfo`
    does most of the work.

    ``options`` are those named by `read_options`; an option not given is left out.
    """

    name: ClassVar[str]
    """As in ``--format`` and in JSON."""
    title: ClassVar[str]
    """In a sentence: ``holds a {title}``."""
    noun: ClassVar[str]
    """The word for one record."""
    position: ClassVar[str]
    """The unit of a range of ``cat``."""
    position_min: ClassVar[int] = 0
    columns: ClassVar[tuple[str, ...]]
    """The facts of an `Entry`, all of them integers."""
    is_position_of_one: ClassVar[bool] = True
    """Whether a position belongs to one record; otherwise several may share a position."""
    log: type[Any]
    """The class of an appending handle."""
    packed: ClassVar[bytes | None] = None
    """The first bytes of a record with possibly several payloads."""
    read_options: ClassVar[tuple[str, ...]] = ()
    """Options that choose among several logs at a path."""

    # -- present logs

    def is_there(self, path: str | os.PathLike[str]) -> bool:
        """Whether a quick look is sure of this format at a path."""
        return _is_at(path, self.name)

    # -- operations

    @abstractmethod
    def open(self, path: str, mode: str, **options: Any) -> Any:
        """The result of `deedbook.open`."""

    def open_store(self, path: str, base: str | None) -> Any:
        """A handle for its ``transactions`` only; no record is changed."""
        return self.log.open(path)

    @abstractmethod
    def read(self, path: str, **options: Any) -> AbstractContextManager[View]:
        """The records for ``cat``."""

    @abstractmethod
    def entry(self, record: Any) -> Entry:
        """A record in the terms of all formats."""

    @abstractmethod
    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """The output of ``info``."""

    def is_handle(self, handle: object) -> bool:
        """Whether the object is an open log of the format."""
        return isinstance(handle, self.log)

    def stats_of(self, handle: Any) -> Stats | None:
        """The counts of an appending handle; None for a read-only one."""
        return None if handle.mode == "r" else handle.stats()

    def readers(self, path: str) -> Mapping[str, Any]:
        """The logs at a path, opened for reading, each by a name unique there."""
        return {"": self.open(path, "r")}

    @abstractmethod
    def figures(self, handle: Any) -> Figures:
        """The figures that an open log knows without reading records."""

    @abstractmethod
    def verify(self, path: str, progress: Progress, **options: Any) -> Outcome:
        """Check every record; change nothing."""

    @abstractmethod
    def outcome(self, path: str, report: Any) -> Outcome:
        """The outcome of `verify`, from the report of the log or those of a ledger's files."""

    @abstractmethod
    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """The places of damage, from the facts of an `Outcome` of `verify`."""

    @abstractmethod
    def data_files(self, path: str, **options: Any) -> list[str]:
        """The files with the records at a path, in order. Raises as opening does."""


def size_of(file: str) -> int:
    """Bytes of a file; 0 if a sender, retention or a compaction removed the file."""
    try:
        return os.path.getsize(file)
    except FileNotFoundError:
        return 0


def part_of(name: str, checked: Mapping[str, Any], begin: int = 0) -> Part:
    """One log as a part, from the plain values of a `deedbook.reports.VerifyReport`.

    Acknowledged bytes missing at the end are damage, too.
    """
    damages = [Stretch(one["offset"], one["end"], one["reason"]) for one in checked["damages"]]
    end, durable = checked["file_end"], checked["durable_end"] or 0
    missing = end if damages else checked["valid_end"]
    if checked["lost_acknowledged"] and missing < durable:
        reason = f"durable to byte {durable:,}, intact to byte {checked['valid_end']:,}"
        damages.append(Stretch(missing, durable, reason))
    begin = min([begin, *(one.offset for one in damages)])
    return Part(name, begin, max([end, *(one.end for one in damages)]), tuple(damages))


__all__ = [
    "Description",
    "Entry",
    "Figures",
    "FormatInfo",
    "Found",
    "Outcome",
    "Part",
    "Passed",
    "Progress",
    "Skipping",
    "Stretch",
    "View",
    "part_of",
    "size_of",
]
