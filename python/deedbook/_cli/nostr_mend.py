"""``deedbook nostr repair`` and ``salvage``: make a damaged event store usable again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from deedbook import EventStore
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._text import count, size
from deedbook.reports import DamagedPart, EventStoreRepair, EventStoreSalvage

DAMAGES_SHOWN_MAX: Final = 20
"""At most this many damaged places are named, without ``--json``."""


def run_repair(args: argparse.Namespace, out: Output) -> int:
    """Mend the store at ``args.store``, saving what is removed; return the exit code.

    Raises `deedbook.Error`; the store is then unchanged.
    """
    asked = {name: True for name in ("dry_run", "force", "accept_loss") if getattr(args, name)}
    report = EventStore.repair(args.store, **asked)
    usable = report.mended or args.dry_run
    if args.json:
        out.emit({"format": "nostr", **report.to_dict(), "ok": usable})
    else:
        for line in _repair_lines(report, args.dry_run):
            out.line(line)
        out.flush()
    return EXIT_OK if usable else EXIT_DAMAGE


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


def run_salvage(args: argparse.Namespace, out: Output) -> int:
    """Copy every intact event of ``args.store`` to ``args.target``; return the exit code.

    Nothing copied although there are bytes is a failure, with `EXIT_DAMAGE`. Raises
    `deedbook.Error`; the source is never changed.
    """
    with Progress(f"salvage {args.store}", enabled=not args.quiet) as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        report = EventStore.salvage(args.store, args.target, progress=progress.update)
    ok = bool(report.records) or report.ok
    if args.json:
        result = {"source": args.store, "target": args.target, "format": "nostr"}
        out.emit({**result, **report.to_dict(), "ok": ok})
    else:
        for line in _salvage_lines(args.target, report):
            out.line(line)
        out.flush()
    return EXIT_OK if ok else EXIT_DAMAGE


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
