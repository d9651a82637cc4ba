"""``deedbook repair`` and ``deedbook salvage``: make a damaged log usable again."""

from __future__ import annotations

import argparse
from typing import Any

from deedbook import Error
from deedbook._text import count, damage_text
from deedbook.cli.check import loss_text
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook.cli.output import Output
from deedbook.cli.progress import Progress
from deedbook.formats import require
from deedbook.formats._info import FormatInfo


def run_repair(args: argparse.Namespace, out: Output) -> int:
    """Cut the log at ``args.path`` after its valid prefix, saving what is cut.

    Raises `deedbook.Error`; the log is then unchanged.
    """
    found = require(args.path)
    info = found.format
    if found.saved:
        raise CliError(
            f"repair: {args.path} is what was cut off a {info.title} and saved; salvage copies it"
            " to a new log",
            path=args.path,
        )
    asked = {name: True for name in ("dry_run", "force", "accept_loss") if getattr(args, name)}
    report = info.log.repair(args.path, **asked)
    usable = report.mended or args.dry_run
    if args.json:
        out.emit({"ok": usable, "format": info.name, **report.to_dict()})
    else:
        for line in _repair_lines(info, report, args.dry_run):
            out.line(line)
        out.flush()
    return EXIT_OK if usable else EXIT_DAMAGE


def _repair_lines(info: FormatInfo[Any], report: Any, dry_run: bool) -> list[str]:
    lines = []
    if report.cut_bytes:
        cut = "would cut" if dry_run else "cut"
        lines.append(f"{cut} {count(report.cut_bytes, 'byte')} after byte {report.valid_end:,}")
        if report.damage is not None:
            lines.append(damage_text(report.damage, info.noun))
        if intact := report.cut_records:
            hint = "; salvage copies them to a new log, --force cuts them" if dry_run else ""
            lines.append(f"{count(intact, f'intact {info.noun}')} among them{hint}")
        if report.saved_to is not None:
            lines.append(f"what was cut is in {report.saved_to}")
    if (loss := loss_text(info, report)) is not None:
        lines.append(loss)
        if not report.mended:
            lines.append("--accept-loss goes on without them; a backup may have them")
    first, *more = lines or ["nothing to repair"]
    return [f"{report.path}: {first}", *(f"  {line}" for line in more)]


def run_salvage(args: argparse.Namespace, out: Output) -> int:
    """Copy everything intact in ``args.source`` to a new log of its format at ``args.target``.

    Nothing copied although there are bytes is a failure, with `EXIT_DAMAGE`. Raises
    `deedbook.Error`; the source is never changed.
    """
    info = require(args.source).format
    lost = _lost_at_end(info, args.source)
    with Progress(f"salvage {args.source}", enabled=not args.quiet) as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        report = info.log.salvage(args.source, args.target, progress=progress.update)
    nothing = report.records == 0 and (bool(report.damages) or lost is not None)
    if args.json:
        result = {"source": args.source, "target": args.target, "format": info.name}
        out.emit({"ok": not nothing, **result, **report.to_dict(), "lost_at_end": lost})
    else:
        for line in _salvage_lines(args.target, info, report, lost):
            out.line(line)
        out.flush()
    return EXIT_DAMAGE if nothing else EXIT_OK


def _lost_at_end(info: FormatInfo[Any], source: str) -> dict[str, int] | None:
    """The acknowledged bytes that are missing at the end of the log; None if none are."""
    try:
        with info.log.open(source) as log:
            recovery = log.recovery
    except (Error, OSError):
        return None  # salvage reports what is wrong
    durable = recovery.durable_end
    if durable is None or recovery.file_end >= durable:
        return None
    return {"intact_end": recovery.valid_end, "durable_end": durable}


def _salvage_lines(
    target: str, info: FormatInfo[Any], report: Any, lost: dict[str, int] | None
) -> list[str]:
    left_out = [f"  left out {damage_text(damage, info.noun)}" for damage in report.damages]
    lines = [f"{target}: copied {count(report.records, info.noun)}", *left_out]
    if lost is not None:
        lines.append(
            f"  acknowledged {info.noun}s are lost at the end: durable to byte"
            f" {lost['durable_end']:,}, there to byte {lost['intact_end']:,}"
        )
    return lines + info.moved_lines(report)
