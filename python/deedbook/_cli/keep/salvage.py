"""``salvage`` by format: the copy, and the lines of the result."""

from __future__ import annotations

from typing import Any

from deedbook import Error, Ledger, Pier
from deedbook._cli.keep.repair_store import salvage_store
from deedbook._formats.info import FormatInfo, Outcome, Progress
from deedbook._formats.log import LogInfo, loss_text
from deedbook._formats.nostr import NOSTR
from deedbook._formats.pier import PIER
from deedbook._show.text import count, damage_text
from deedbook.reports import PierSalvage, SalvageReport

__all__ = ["salvage"]


def salvage(
    info: FormatInfo, source: str, target: str, progress: Progress, **options: Any
) -> Outcome:
    """Copy all intact records. The source does not change.

    The outcome is ok if nothing was damaged or lost.
    """
    if info is NOSTR:
        return salvage_store(source, target, progress)
    if info is PIER:
        return _salvage_pier(source, target, progress)
    if isinstance(info, LogInfo):
        return _salvage_log(info, source, target, progress, options)
    return _salvage_ledger(info, source, target, progress, options)


def _salvage_ledger(
    info: FormatInfo, source: str, target: str, progress: Progress, options: dict[str, Any]
) -> Outcome:
    """Copy each file to a new file. Without ``base`` there must be a single ledger."""
    copied = Ledger.salvage(source, target, progress=progress, **options).files
    records = sum(one.report.records for one in copied)
    damaged = [(one, damage) for one in copied for damage in one.report.damages]
    lines = [f"{target}: copied {count(records, info.noun)}"]
    lines += [
        f"  left out of {one.file.path}: {damage_text(damage, info.noun)}"
        for one, damage in damaged
    ]
    files = [one.to_dict() for one in copied]
    return Outcome(not damaged, {"records": records, "files": files}, lines)


def _salvage_pier(source: str, target: str, progress: Progress) -> Outcome:
    """Copy each epoch, with a stub for each lost deed."""
    report = Pier.salvage(source, target, progress=progress)
    lines = [f"{target}: copied {count(report.records, PIER.noun)}"]
    for epoch in report.epochs:
        lines += [
            f"  left out of {epoch.path}: {damage_text(damage, PIER.noun)}"
            for damage in epoch.report.damages
        ]
        if (loss := loss_text(PIER, epoch.report)) is not None:
            lines.append(f"  {epoch.path}: {loss}")
    lines += [f"  {gap}" for gap in report.gaps]
    return Outcome(report.ok, report.to_dict(), lines + _carried_lines(report))


def _salvage_log(
    info: LogInfo[Any], source: str, target: str, progress: Progress, options: dict[str, Any]
) -> Outcome:
    reading = {name: value for name, value in options.items() if name in info.read_options}
    lost = _lost_at_end(info, source, reading)
    log: Any = info.log  # a book or a WAL
    report = log.salvage(source, target, progress=progress, **options)
    ok = not report.damages and lost is None and report.loss is None
    facts = {**report.to_dict(), "lost_at_end": lost}
    return Outcome(ok, facts, _salvage_lines(target, info, report, lost))


def _lost_at_end(info: LogInfo[Any], source: str, options: dict[str, Any]) -> dict[str, int] | None:
    """The missing acknowledged bytes at the end of the log; None if no bytes are missing."""
    try:
        with info.open(source, "r", **options) as log:
            recovery = log.recovery
    except (Error, OSError):
        return None  # salvage reports what is wrong
    durable = recovery.durable_end
    if durable is None or recovery.file_end >= durable:
        return None
    return {"intact_end": recovery.valid_end, "durable_end": durable}


def _salvage_lines(
    target: str, info: LogInfo[Any], report: Any, lost: dict[str, int] | None
) -> list[str]:
    left_out = [f"  left out {damage_text(damage, info.noun)}" for damage in report.damages]
    lines = [f"{target}: copied {count(report.records, info.noun)}", *left_out]
    if lost is not None:
        lines.append(
            f"  acknowledged {info.noun}s are lost: durable to byte {lost['durable_end']:,}, "
            f"intact to byte {lost['intact_end']:,}"
        )
    if (loss := loss_text(info, report)) is not None:
        lines.append(f"  {loss}")
    moved = _moved_deeds(report) if info.name == "book" else _moved_records(report)
    return lines + moved + _carried_lines(report)


def _carried_lines(report: SalvageReport | PierSalvage) -> list[str]:
    lines = []
    if report.stubs:
        lines.append(f"  stubs stand for lost events: {_ranges(report.stubs)}")
    if report.consumers:
        lines.append(f"  {count(report.consumers, 'consumer')} carried over")
    if report.moved_consumers:
        names = ", ".join(report.moved_consumers)
        lines.append(f"  consumers whose record is lost need the next one: {names}")
    if report.transactions:
        applications = count(report.transactions, "application")
        lines.append(f"  the last transaction of {applications} is carried over")
    if report.unfinished_transactions:
        unfinished = count(report.unfinished_transactions, "unfinished transaction")
        lines.append(f"  not in the copy: {unfinished}")
    return lines + [f"  not carried over: {why}" for why in report.not_carried]


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers, with consecutive numbers as ``first..last``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("..".join(map(str, run)) for run in runs)


def _moved_deeds(report: SalvageReport) -> list[str]:
    """Lines about the deeds with new numbers."""
    if not report.renumbered:
        return []
    lines = ["  deeds after a gap have new numbers:"]
    for run in report.runs:
        last = run.ordinal + run.records - 1
        if run.source_ordinal is None:
            old = f"unknown numbers from byte {run.source_offset:,}"
        else:
            old = f"{run.source_ordinal}..{run.source_ordinal + run.records - 1}"
        lines.append(f"    {old} -> {run.ordinal}..{last}")
    return lines


def _moved_records(report: SalvageReport) -> list[str]:
    """Lines about the records with new LSNs."""
    moved = [run for run in report.runs if run.offset != run.source_offset]
    lines = ["  records after a gap, or after a dropped prefix, have new LSNs:"]
    lines += [
        f"    {count(run.records, 'record')} from {run.source_offset:,} -> {run.offset:,}"
        for run in moved
    ]
    return lines if moved else []
