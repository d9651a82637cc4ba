"""``deedbook repair`` and ``deedbook salvage``: make a damaged log usable again."""

from __future__ import annotations

import argparse

from deedbook import Book, SalvageReport, Wal, WalSalvageReport
from deedbook.cli.check import damage_text
from deedbook.cli.failure import EXIT_OK
from deedbook.cli.output import Output, count
from deedbook.cli.progress import Progress
from deedbook.formats import require


def run_repair(args: argparse.Namespace, out: Output) -> int:
    """Cut the log at ``args.path`` behind its valid prefix, saving what is cut.

    Raises `deedbook.Error`; the log is then unchanged.
    """
    is_wal = require(args.path) == "wal"
    report = Wal.repair(args.path) if is_wal else Book.repair(args.path)
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
        return EXIT_OK
    if report.cut_bytes == 0:
        out.line(f"{report.path}: nothing to repair")
    else:
        out.line(
            f"{report.path}: cut {count(report.cut_bytes, 'byte')} behind byte {report.valid_end:,}"
        )
        if report.damage is not None:
            out.line(f"  {damage_text(report.damage, 'record' if is_wal else 'deed')}")
        if report.saved_to is not None:
            out.line(f"  what was cut is in {report.saved_to}")
    out.flush()
    return EXIT_OK


def run_salvage(args: argparse.Namespace, out: Output) -> int:
    """Copy everything intact in ``args.source`` to a new log of its format at ``args.target``.

    Raises `deedbook.Error`; the source is never changed.
    """
    salvage = Wal.salvage if require(args.source) == "wal" else Book.salvage
    with Progress(f"salvage {args.source}", enabled=not args.quiet) as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        report = salvage(args.source, args.target, progress=progress.update)
    if args.json:
        out.emit({"ok": True, "source": args.source, "target": args.target, **report.to_dict()})
    else:
        for line in _salvage_lines(args.target, report):
            out.line(line)
        out.flush()
    return EXIT_OK


def _salvage_lines(target: str, report: SalvageReport | WalSalvageReport) -> list[str]:
    if isinstance(report, WalSalvageReport):
        noun, copied, moved = "record", count(report.records, "record"), _moved_records(report)
    else:
        noun, copied, moved = "deed", count(report.deeds, "deed"), _renumbered_deeds(report)
    left_out = [f"  left out {damage_text(damage, noun)}" for damage in report.damages]
    return [f"{target}: copied {copied}", *left_out, *moved]


def _moved_records(report: WalSalvageReport) -> list[str]:
    moved = [run for run in report.runs if run.lsn != run.source_lsn]
    lines = ["  records behind a gap, or behind a dropped prefix, have new LSNs:"] if moved else []
    return lines + [
        f"    {count(run.records, 'record')} from {run.source_lsn:,} -> {run.lsn:,}"
        for run in moved
    ]


def _renumbered_deeds(report: SalvageReport) -> list[str]:
    if not report.renumbered:
        return []
    lines = ["  deeds behind a gap have new numbers:"]
    for run in report.runs:
        last = run.event + run.deeds - 1
        if run.source_event is None:
            old = f"unknown numbers from byte {run.source_offset:,}"
        else:
            old = f"{run.source_event}..{run.source_event + run.deeds - 1}"
        lines.append(f"    {old} -> {run.event}..{last}")
    return lines
