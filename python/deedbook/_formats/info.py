"""What a log format says of itself, so that nothing else asks which format it is."""

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
        """Its first byte."""

    @property
    def end(self) -> int:
        """The byte after it."""

    @property
    def reason(self) -> str:
        """What is wrong."""


class Skipping(Protocol):
    """Records around damage."""

    @property
    def damages(self) -> Sequence[Passed]:
        """The stretches passed over so far."""

    def __iter__(self) -> Iterator[Any]: ...


class View(Protocol):
    """Records as ``cat`` reads them. Positions are event numbers, LSNs, or indexes of files."""

    @property
    def left_out(self) -> str | None:
        """What is there and is not read, in words."""

    def records(self, start: int | None, stop: int | None) -> Iterable[Any]:
        """The records of a range, which may reach beyond the end."""

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        """The intact records of a range."""

    def payloads(self, start: int | None, stop: int | None, /) -> Iterable[bytes]:
        """The payloads of a range."""


class Entry(NamedTuple):
    """One record, in the terms that all formats share."""

    position: int | None
    """None where damage hid the number."""
    next_position: int | None
    payload: bytes
    facts: dict[str, Any]
    """What JSON shows before the payload."""
    payload_name: str
    label: str | None = None
    """What stands before the payload in text, where that is not the position."""


class Description(NamedTuple):
    """What ``info`` shows."""

    facts: dict[str, Any]
    """For JSON."""
    rows: list[tuple[str, str]]
    """Names and values."""
    corrupt: bool


class Figures(NamedTuple):
    """What a handle says at once of its log. None: not known, or nothing that the format has."""

    bytes: int
    """Bytes of its records."""
    files: int
    """Files that hold them."""
    records: int | None = None
    end: int | None = None
    """The last event, or the LSN after the last record."""
    unsynced_bytes: int | None = None
    """Bytes after the durable end."""
    unsynced_records: int | None = None
    """Records after the durable end."""
    lost_records: int | None = None
    """Acknowledged records that are known to be lost."""
    is_damaged: bool | None = None
    """Whether opening met damage, or a loss that was noted."""
    consumers: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """By name: the position that each needs next, and how far the end is from there."""
    lag_unit: Literal["bytes", "records"] = "bytes"
    """In which that is counted."""
    quarantined_files: int | None = None
    """Damaged files that were set aside."""


class Outcome(NamedTuple):
    """What ``verify`` or ``salvage`` found."""

    ok: bool
    """Whether the log is as it should be."""
    facts: dict[str, Any]
    """For JSON, beside the paths and the format."""
    lines: list[str]
    """The same in words."""


class Stretch(NamedTuple):
    """Damaged bytes."""

    offset: int
    end: int
    reason: str


class Part(NamedTuple):
    """A stretch of a log's bytes that is counted from one beginning, and what is damaged in it."""

    name: str
    begin: int
    end: int
    """After its last byte; also if acknowledged bytes before it are not there."""
    damages: tuple[Stretch, ...]


class Progress(Protocol):
    """Called with bytes done and bytes in all; what it raises ends the call."""

    def __call__(self, done: int, total: int, /) -> object: ...


class Found(NamedTuple):
    """What lies at a path."""

    format: FormatInfo
    """Its format."""
    saved: bool = False
    """Whether it is the end of a log, saved in a file of its own before it was cut."""
    saved_offset: int | None = None
    """Byte of that log at which it began, where its name says so."""


class FormatInfo(ABC):
    """One format: how what lies at a path is opened, read, checked and described.

    A further format is one more subclass, its instance in `deedbook._formats.FORMATS`, and its rule
    in `deedbook::detect` of the crate. For a format whose paths are logs,
    `deedbook._formats.log.LogInfo` does most of it.

    ``options`` are those that `read_options` names; one that was not given is left out.
    """

    name: ClassVar[str]
    """As in ``--format`` and in JSON."""
    title: ClassVar[str]
    """In a sentence: ``holds a {title}``."""
    noun: ClassVar[str]
    """One record."""
    position: ClassVar[str]
    """What a range of ``cat`` counts."""
    position_min: ClassVar[int] = 0
    columns: ClassVar[tuple[str, ...]]
    """The facts of an `Entry`, all of them whole numbers."""
    is_position_of_one: ClassVar[bool] = True
    """Whether a position is that of one record; else several may share it."""
    log: type[Any]
    """The class of a handle that appends."""
    packed: ClassVar[bytes | None] = None
    """Payloads that begin so may be several in one record."""
    read_options: ClassVar[tuple[str, ...]] = ()
    """Options that say which of several things at a path is meant."""

    # -- what is there

    def is_there(self, path: str | os.PathLike[str]) -> bool:
        """Whether this format certainly lies at a path, by a quick look."""
        return _is_at(path, self.name)

    # -- what can be done with it

    @abstractmethod
    def open(self, path: str, mode: str, **options: Any) -> Any:
        """What `deedbook.open` gives."""

    def open_store(self, path: str, base: str | None) -> Any:
        """A handle that changes no record, to be asked for its ``transactions``."""
        return self.log.open(path)

    @abstractmethod
    def read(self, path: str, **options: Any) -> AbstractContextManager[View]:
        """What ``cat`` reads."""

    @abstractmethod
    def entry(self, record: Any) -> Entry:
        """A record in the terms that all formats share."""

    @abstractmethod
    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """What ``info`` shows."""

    def is_handle(self, handle: object) -> bool:
        """Whether this is an open log of the format."""
        return isinstance(handle, self.log)

    def stats_of(self, handle: Any) -> Stats | None:
        """What a handle that appends counted of itself; None of one that only reads."""
        return None if handle.mode == "r" else handle.stats()

    def readers(self, path: str) -> Mapping[str, Any]:
        """What lies at a path, opened for reading, by a name that tells it from others there."""
        return {"": self.open(path, "r")}

    @abstractmethod
    def figures(self, handle: Any) -> Figures:
        """What an open log says at once of what it holds; no record is read."""

    @abstractmethod
    def verify(self, path: str, progress: Progress, **options: Any) -> Outcome:
        """Check every record; change nothing."""

    @abstractmethod
    def outcome(self, path: str, report: Any) -> Outcome:
        """What `verify` says of a report: the log's; of a ledger, those of its files."""

    @abstractmethod
    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """Where damage lies, by the facts of an `Outcome` of `verify`."""

    @abstractmethod
    def data_files(self, path: str, **options: Any) -> list[str]:
        """The files that hold the records at a path, in their order. Raises as opening does."""


def size_of(file: str) -> int:
    """Its bytes; 0 if it is gone: a sender, retention and a compaction remove files."""
    try:
        return os.path.getsize(file)
    except FileNotFoundError:
        return 0


def part_of(name: str, checked: Mapping[str, Any], begin: int = 0) -> Part:
    """One log as a part, by the plain values of a `deedbook.reports.VerifyReport`.

    Acknowledged bytes that are not there at the end are damage, too.
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
