"""``repair`` of a ledger."""

from __future__ import annotations

from typing import Any

from deedbook import Ledger
from deedbook._formats.info import Outcome
from deedbook._show.text import count, damage_text
from deedbook.reports import RepairReport

__all__ = ["repair_ledger"]


def repair_ledger(path: str, asked: dict[str, Any], options: dict[str, Any]) -> Outcome:
    """Repair the files of a ledger. With ``dry_run``, ok means that no file is damaged.

    Raises `deedbook.Error`; the files before the named one may be repaired.
    """
    report = Ledger.repair(path, **asked, **options)
    dry_run = "dry_run" in asked
    damaged = [one.report for one in report.files if one.report.damage is not None]
    ok = not damaged if dry_run else report.ok
    lines = [line for one in damaged for line in _lines(one, dry_run)]
    return Outcome(ok, report.to_dict(), lines or [f"{path}: nothing to repair"])


def _lines(report: RepairReport, dry_run: bool) -> list[str]:
    assert report.damage is not None
    lines = [damage_text(report.damage, "record")]
    if report.cut_bytes:
        would = "would remove" if dry_run else "removed"
        lines.append(f"{would} {count(report.cut_bytes, 'byte')}")
    lines.append(f"{count(report.records, 'intact record')} {'would stay' if dry_run else 'stay'}")
    if report.cut_records:
        hint = "; salvage copies them to a new ledger" if dry_run else ""
        lines.append(f"{count(report.cut_records, 'record')} inside the damage left out{hint}")
    if report.saved_to is not None:
        whole = report.loss is not None
        lines.append(f"{'the damaged file' if whole else 'the cut end'} is in {report.saved_to}")
    if report.loss is not None and not report.mended:
        lines.append("--accept-loss goes on without the damaged records; a backup may have them")
    first, *more = lines
    return [f"{report.path}: {first}", *(f"  {line}" for line in more)]
