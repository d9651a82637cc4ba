"""The figures of a report."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from deedbook._core import Stats
from deedbook._formats.info import Part
from deedbook._show.text import count, size

__all__ = ["DataFile", "LogReport", "Size", "Sizes", "Stretch", "Times", "Type", "state_of"]


@dataclass(frozen=True)
class Size:
    """The payloads of ``low`` to ``high`` bytes."""

    low: int
    """The least size, in bytes."""
    high: int
    """The greatest."""
    records: int
    """The number of payloads of this size."""


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
    """The median of the sizes: at most half of the payloads are longer."""
    p95: int
    """The 95th percentile of the sizes: at most 5 % of the payloads are longer."""
    p99: int
    """The 99th percentile of the sizes: at most 1 % of the payloads are longer."""
    steps: tuple[Size, ...]
    """Payloads by size; each step reaches to twice the size."""


@dataclass(frozen=True)
class Stretch:
    """The records of a stretch of time."""

    begin: datetime
    """The first moment, in UTC; `Times.seconds` is the length."""
    records: int
    """Records with a time in the stretch."""
    bytes: int
    """Bytes of the payloads."""


@dataclass(frozen=True)
class Times:
    """Records by the times in their payloads, in UTC."""

    source: str
    """The fields with times, the most frequent first."""
    first: datetime
    """The earliest time."""
    last: datetime
    """The latest."""
    records: int
    """Records with a time."""
    outside: int
    """Records with a time outside of the stretches."""
    seconds: int
    """Length of a stretch."""
    stretches: tuple[Stretch, ...]
    """One after the other, empty ones included."""


@dataclass(frozen=True)
class Type:
    """Records of one type, and the bytes of their payloads."""

    name: str
    """The field ``type`` or ``kind``, else the keys; ``(other)`` is all the rest."""
    records: int
    """How many there are."""
    bytes: int
    """Bytes of the payloads."""


@dataclass(frozen=True)
class DataFile:
    """A file with records: a segment, an epoch's log, a ledger's file."""

    path: str
    """The file."""
    bytes: int
    """Bytes of the file."""
    changed: datetime
    """The time of the last write, in UTC."""


@dataclass(frozen=True)
class LogReport:
    """The result of `deedbook.report` for a log of any format."""

    path: str
    """The log."""
    format: str
    """``"book"``, ``"pier"``, ``"wal"``, ``"ledger"`` or ``"nostr"``."""
    noun: str
    """The word for a record: ``"deed"``, ``"record"``, ``"event"``."""
    ok: bool
    """Whether nothing is damaged, torn or lost."""
    records: int
    """Intact records read, also after damage."""
    bytes: int
    """Bytes of the payloads."""
    objects: int
    """How many payloads are JSON objects."""
    sizes: Sizes | None
    """Sizes of the payloads; None without records."""
    times: Times | None
    """Records by the times in their payloads; None without times."""
    types: tuple[Type, ...]
    """The types of payloads, the most frequent first; the last may be all others together."""
    parts: tuple[Part, ...]
    """The log's bytes and damage; empty without a check."""
    files: tuple[DataFile, ...]
    """The files with records, in the log's order."""
    info: dict[str, Any]
    """The facts of ``deedbook info --json``; empty if the log cannot be opened."""
    rows: tuple[tuple[str, str], ...]
    """The same in words."""
    checked: dict[str, Any]
    """The facts of ``deedbook verify --json``; empty without a check."""
    findings: tuple[str, ...]
    """The findings of the check, in words, and the errors of reading."""
    handle: str | None
    """The open log of the call, in a line; None for a path."""
    stats: Stats | None
    """The counters of the open log; None for a reader, and for a path."""
    unsynced_bytes: int | None
    """Bytes that the open log knows as not durable; None if unknown."""
    unsynced_records: int | None
    """The same in records."""
    made: datetime
    """When, in UTC."""

    @property
    def durable_end(self) -> int | None:
        """Byte up to which the log is durable, if known."""
        end: int | None = self.info.get("durable_end")
        return end

    @property
    def lag_bytes(self) -> int | None:
        """Bytes written and not known to be durable, if known."""
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
        """A page of HTML in a single file, without links to other files."""
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
    """The outcome: ``ok``, the number of damages, or ``NOT OK`` if none was counted."""
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
