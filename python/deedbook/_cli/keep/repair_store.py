"""``repair`` and ``salvage`` of an event store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deedbook import EventStore
from deedbook._formats.info import Outcome, Progress
from deedbook._show.text import count, size
from deedbook.reports import DamagedPart, EventStoreRepair, EventStoreSalvage

__all__ = ["repair_store", "salvage_store"]

DAMAGES_SHOWN_MAX: Final = 20
"""At most this many damaged places are named, without ``--json``."""


def repair_store(path: str, asked: dict[str, Any]) -> Outcome:
    """Repair a store, saving the removed bytes. With ``dry_run``, ok means an intact store.

    Raises `deedbook.Error`; the store is then unchanged.
    """
    report = EventStore.repair(path, **asked)
    dry_run = "dry_run" in asked
    is_fine = not (report.damages or report.cut_bytes or report.lost_segments or report.is_loss)
    ok = is_fine if dry_run else report.mended
    return Outcome(ok, report.to_dict(), _repair_lines(report, dry_run))


def _repair_lines(report: EventStoreRepair, dry_run: bool) -> list[str]:
    lines = _damage_lines(report.damages)
    if report.cut_bytes:
        would = "would remove" if dry_run else "removed"
        lines.append(f"{would} {count(report.cut_bytes, 'byte')}")
    if report.cut_events:
        hint = "; salvage copies them to a new store, --force cuts them" if dry_run else ""
        lines.append(
            f"{count(report.cut_events, 'intact event')} of the write-ahead log among them, which"
            f" no segment has{hint}"
        )
    lines += _lost_lines(report.lost_segments)
    lines += [f"what was removed is in {path}" for path in report.saved]
    if report.is_loss:
        lines.append("acknowledged events are lost")
        if not report.mended:
            lines.append("--accept-loss goes on without them; a backup may have them")
    elif report.was_loss:
        lines.append("noted before: acknowledged events are lost")
    first, *more = lines or ["nothing to repair"]
    return [f"{report.path}: {first}", *(f"  {line}" for line in more)]


def salvage_store(source: str, target: str, progress: Progress) -> Outcome:
    """Copy every intact event; ok if nothing was damaged or lost. The source is not changed."""
    report = EventStore.salvage(source, target, progress=progress)
    return Outcome(report.ok, report.to_dict(), _salvage_lines(target, report))


def _salvage_lines(target: str, report: EventStoreSalvage) -> list[str]:
    parts = [
        (report.hidden, "deleted or replaced"),
        (report.from_log, "only from the write-ahead log"),
        (report.from_saved, "only from what was cut off and saved"),
        (report.uncertain, "uncertain"),
    ]
    besides = "".join(f", {number:,} {what}" for number, what in parts if number)
    lines = [
        f"{target}: copied {count(report.records, 'event')} of {size(report.source_bytes)}{besides}"
    ]
    if report.left_out:
        lines.append(f"left out {count(report.left_out, 'event')}, deleted or over")
    lines += _lost_lines(report.lost_segments)
    lines += _damage_lines(report.damages)
    first, *more = lines
    return [first, *(f"  {line}" for line in more)]


def _lost_lines(segments: Sequence[int]) -> list[str]:
    return [f"segment {number} is missing" for number in segments]


def _damage_lines(damages: Sequence[DamagedPart]) -> list[str]:
    lines = [
        f"{damage.path}, bytes {damage.offset:,}..{damage.end:,}: {damage.reason}"
        for damage in damages[:DAMAGES_SHOWN_MAX]
    ]
    if len(damages) > DAMAGES_SHOWN_MAX:
        lines.append(f"and {count(len(damages) - DAMAGES_SHOWN_MAX, 'more damaged place')}")
    return lines
