"""The figures of a report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from deedbook._core import Stats
from deedbook._formats.info import Part
from deedbook._text import count, size

__all__ = ["DataFile", "LogReport", "Size", "Sizes", "Stretch", "Times", "Type", "state_of"]


@dataclass(frozen=True)
class Size:
    """The payloads of ``low`` to ``high`` bytes."""

    low: int
    """The least size, in bytes."""
    high: int
    """The greatest."""
    records: int
    """How many payloads are of such a size."""


@dataclass(frozen=True)
class Sizes:
    """How many bytes payloads have. The quantiles are too small by 1 in 8 at most."""

    least: int
    """The shortest payload."""
    most: int
    """The longest."""
    mean: float
    """All bytes by all payloads."""
    median: int
    """Half of the payloads are no longer."""
    p95: int
    """95 of 100 payloads are no longer."""
    p99: int
    """99 of 100 payloads are no longer."""
    steps: tuple[Size, ...]
    """Payloads by size; each step reaches to twice the size."""


@dataclass(frozen=True)
class Stretch:
    """The records of a stretch of time."""

    begin: datetime
    """Its first moment, in UTC; `Times.seconds` is its length."""
    records: int
    """Records with a time in it."""
    bytes: int
    """Of their payloads."""


@dataclass(frozen=True)
class Times:
    """Records by the times in their payloads, in UTC."""

    source: str
    """The fields that held them, the most frequent first."""
    first: datetime
    """The earliest time."""
    last: datetime
    """The latest."""
    records: int
    """Those that have a time."""
    outside: int
    """Of these, such as are too far off for the stretches."""
    seconds: int
    """Length of a stretch."""
    stretches: tuple[Stretch, ...]
    """One after the other, empty ones included."""


@dataclass(frozen=True)
class Type:
    """Records of one type, and the bytes of their payloads."""

    name: str
    """What the field ``type`` or ``kind`` says, else the keys; ``(other)`` is all the rest."""
    records: int
    """How many there are."""
    bytes: int
    """Of their payloads."""


@dataclass(frozen=True)
class DataFile:
    """A file that holds records: a segment, an epoch's log, a ledger's file."""

    path: str
    """The file."""
    bytes: int
    """Its size."""
    changed: datetime
    """When it was last written to, in UTC."""


@dataclass(frozen=True)
class LogReport:
    """What `deedbook.report` found in a log of any format."""

    path: str
    """The log."""
    format: str
    """``"book"``, ``"pier"``, ``"wal"``, ``"ledger"`` or ``"nostr"``."""
    noun: str
    """One record: ``"deed"``, ``"record"``, ``"event"``."""
    ok: bool
    """Whether nothing is damaged, torn or lost."""
    records: int
    """Intact records that were read, those after damage included."""
    bytes: int
    """Of their payloads."""
    objects: int
    """How many payloads are JSON objects."""
    sizes: Sizes | None
    """Of the payloads; None without records."""
    times: Times | None
    """Records by the times in their payloads; None where none has one."""
    types: tuple[Type, ...]
    """What the payloads are, the most frequent first; the last may be all others together."""
    parts: tuple[Part, ...]
    """The log's bytes, and the damage in them; empty where no check was asked for."""
    files: tuple[DataFile, ...]
    """The files that hold the records, in the log's order."""
    info: dict[str, Any]
    """What ``deedbook info --json`` shows; empty if the log cannot be opened."""
    rows: tuple[tuple[str, str], ...]
    """The same in words."""
    checked: dict[str, Any]
    """What ``deedbook verify --json`` shows; empty where no check was asked for."""
    findings: tuple[str, ...]
    """What the check found, in words, and what kept the log from being read."""
    handle: str | None
    """The open log that was handed over, in a line; None if a path was."""
    stats: Stats | None
    """What that handle counted of itself; None of one that only reads, and of a path."""
    unsynced_bytes: int | None
    """Bytes that are not durable by what that handle knows; None where that is not known."""
    unsynced_records: int | None
    """The same in records."""
    made: datetime
    """When, in UTC."""

    @property
    def durable_end(self) -> int | None:
        """Byte up to which the log is durable, where that is known."""
        end: int | None = self.info.get("durable_end")
        return end

    @property
    def lag_bytes(self) -> int | None:
        """Bytes that are written and not known to be durable, where that is known."""
        if self.unsynced_bytes is not None:
            return self.unsynced_bytes
        end = self.info.get("end")
        return None if end is None or self.durable_end is None else max(0, end - self.durable_end)

    @property
    def damages(self) -> int:
        """How many damaged stretches there are; an event store's ``parts`` name only the first."""
        faults: int = self.checked.get("faults", 0)
        return max(faults, sum(len(part.damages) for part in self.parts))

    @property
    def rate(self) -> float | None:
        """Records a second, from the first time in a payload to the last; None without times."""
        if self.times is None or self.times.first == self.times.last:
            return None
        return self.times.records / (self.times.last - self.times.first).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values, ready for JSON; times are ISO 8601."""
        plain: dict[str, Any] = _plain(
            {
                **{name: value for name, value in asdict(self).items() if name != "rows"},
                "durable_end": self.durable_end,
                "lag_bytes": self.lag_bytes,
                "rate": self.rate,
            }
        )
        return plain

    def to_html(self) -> str:
        """A page of HTML that stands alone: one file, nothing loaded from elsewhere."""
        from deedbook._report._html import page_of

        return page_of(self)

    def _repr_html_(self) -> str:
        """For notebooks: the page without its frame."""
        from deedbook._report._html import part_of_page

        return part_of_page(self)

    def __repr__(self) -> str:
        return (
            f"<LogReport {self.path!r} {self.format}, {count(self.records, self.noun)},"
            f" {size(self.bytes)}, {state_of(self)}>"
        )


def state_of(report: LogReport) -> str:
    """The outcome: ``ok``, how many damages there are, or ``NOT OK`` where none was counted."""
    if report.ok:
        return "ok"
    return count(report.damages, "damage") if report.damages else "NOT OK"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Stats):
        return _plain(value.to_dict())
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else value
