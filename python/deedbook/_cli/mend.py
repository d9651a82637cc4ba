"""``deedbook repair`` and ``deedbook salvage``: make a damaged log usable again."""

from __future__ import annotations

import argparse
from typing import Any

from deedbook._cli.arguments import Commands, add_json, add_path, add_quiet, add_which
from deedbook._cli.check import asked_for
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.formats import instead_of
from deedbook._cli.formats.salvage import salvage
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._formats.log import LogInfo, loss_text
from deedbook._text import count, damage_text


def add_repair(commands: Commands) -> None:
    """Add the command ``repair``."""
    parser = commands.add_parser(
        "repair",
        help="cut a damaged log after its intact beginning, saving what is cut",
        description="Cut a damaged log after its intact beginning. What is cut is saved beside "
        "the log first; what is intact after the damage goes with it, so try salvage before.",
        epilog="examples:\n"
        "  deedbook salvage events.book rescued.book   keep what is after the damage\n"
        "  deedbook repair events.book --dry-run       what would be cut, and what goes with it\n"
        "  deedbook repair events.book --force         then make the log usable again\n\n"
        "Exits with 0 when the log is usable, whatever had to be cut, and with 1 when it is not.",
    )
    add_path(parser)
    add_which(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be cut, and change nothing"
    )
    parser.add_argument(
        "--force", action="store_true", help="cut also if intact records go with it"
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on without acknowledged records that are missing; the loss stays noted",
    )
    add_json(parser)
    parser.set_defaults(run=run_repair)


def add_salvage(commands: Commands) -> None:
    """Add the command ``salvage``."""
    parser = commands.add_parser(
        "salvage",
        help="copy everything intact to a new log",
        description="Copy every intact deed and the metadata, or every intact record, to a new "
        "log. The source is not changed. What lies after a gap gets new numbers or LSNs; the "
        "report has both. Consumers of a write-ahead log keep their records, and committed "
        "transactions stay known.",
        epilog="examples:\n"
        "  deedbook salvage broken.book rescued.book\n"
        "  deedbook salvage --json broken.book rescued.book | jq .damages\n"
        "  deedbook salvage --keep-numbers broken.book rescued.book\n\n"
        "Exits with 0 when everything intact was copied, whatever was left out, and with 1 when\n"
        "there was something, but nothing intact. What was lost at the end is reported, too.",
    )
    parser.add_argument(
        "source",
        metavar="SRC",
        help="the damaged log, or the file in which a repair saved what it cut",
    )
    parser.add_argument("target", metavar="DST", help="the new log")
    parser.add_argument(
        "--keep-numbers",
        action="store_true",
        help="of a book: put a stub in the place of each lost deed, so that later ones keep their"
        " numbers; fails where it is not known how many are lost",
    )
    add_which(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_salvage)


def run_repair(args: argparse.Namespace, out: Output) -> int:
    """Cut the log at ``args.path`` after its valid prefix, saving what is cut.

    Raises `deedbook.Error`; the log is then unchanged.
    """
    found, options = asked_for(args, args.path)
    info = found.format
    if not isinstance(info, LogInfo) or "repair" in instead_of(info):
        instead = instead_of(info)["repair"]
        raise CliError(f"repair: {args.path} holds a {info.title}; {instead}", path=args.path)
    if found.saved:
        raise CliError(
            f"repair: {args.path} is what was cut off a {info.title} and saved; salvage copies it"
            " to a new log",
            path=args.path,
        )
    asked = {name: True for name in ("dry_run", "force", "accept_loss") if getattr(args, name)}
    report = info.log.repair(args.path, **asked, **options)
    usable = report.mended or args.dry_run
    if args.json:
        out.emit({"format": info.name, **report.to_dict(), "ok": usable})
    else:
        for line in _repair_lines(info, report, args.dry_run):
            out.line(line)
        out.flush()
    return EXIT_OK if usable else EXIT_DAMAGE


def _repair_lines(info: LogInfo[Any], report: Any, dry_run: bool) -> list[str]:
    lines = []
    if report.cut_bytes:
        cut = "would cut" if dry_run else "cut"
        lines.append(f"{cut} {count(report.cut_bytes, 'byte')} after byte {report.valid_end:,}")
    if report.set_aside:
        verb, how = ("would set aside", "") if dry_run else ("set aside", " as")
        segments = f"{count(len(report.set_aside), 'segment')} after a gap{how}"
        lines.append(f"{verb} {segments}: {', '.join(report.set_aside)}")
    if lines:
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
    """Copy everything intact in ``args.source`` to ``args.target``, in its format.

    Nothing copied although there are bytes is a failure, with `EXIT_DAMAGE`. Raises
    `deedbook.Error`; the source is never changed.
    """
    found, options = asked_for(args, args.source)
    if args.keep_numbers:
        if found.format.name != "book":
            raise CliError(
                f"salvage: {args.source} holds a {found.format.title}, --keep-numbers is for books",
                path=args.source,
            )
        options["keep_numbers"] = True
    with Progress(f"salvage {args.source}", enabled=not args.quiet) as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        outcome = salvage(found.format, args.source, args.target, progress.update, **options)
    if args.json:
        result = {"source": args.source, "target": args.target, "format": found.format.name}
        out.emit({**result, **outcome.facts, "ok": outcome.ok})
    else:
        for line in outcome.lines:
            out.line(line)
        out.flush()
    return EXIT_OK if outcome.ok else EXIT_DAMAGE
