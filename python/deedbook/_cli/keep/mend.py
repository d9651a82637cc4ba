"""``deedbook repair`` and ``deedbook salvage``: make a damaged log usable again."""

from __future__ import annotations

import argparse
from typing import Any

from deedbook import EventStore
from deedbook._cli.arguments import (
    Commands,
    add_dry_run,
    add_json,
    add_lock_timeout,
    add_path,
    add_quiet,
    add_which,
)
from deedbook._cli.failure import CliError
from deedbook._cli.instead import instead_of
from deedbook._cli.keep.check import asked_for
from deedbook._cli.keep.repair_ledger import repair_ledger
from deedbook._cli.keep.repair_store import repair_store
from deedbook._cli.keep.salvage import salvage
from deedbook._cli.read.query import store_at
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats.info import Outcome
from deedbook._formats.ledger import LEDGER
from deedbook._formats.log import LogInfo, loss_text
from deedbook._formats.nostr import NOSTR
from deedbook._show.text import count, damage_text


def add_repair(commands: Commands) -> None:
    """Add the command ``repair``."""
    parser = commands.add_parser(
        "repair",
        help="cut a damaged log after the intact beginning, and save the removed bytes",
        description="Make a damaged log usable again: cut the log after the intact beginning, or "
        "remove the damaged parts of an event store or of a ledger's files. The newest epoch of "
        "a pier is cut; damage in an older epoch is an error, and needs a salvage. The command "
        "first saves the removed bytes next to the log. With --force, the cut also removes intact "
        "records after the damage: run 'deedbook salvage' before.",
        epilog="examples:\n"
        "  deedbook salvage events.book rescued.book   keep the records after the damage\n"
        "  deedbook repair events.book --dry-run       print the bytes and records to cut\n"
        "  deedbook repair events.book --force         then make the log usable again\n\n"
        "The exit code is 0 if the log is usable after the repair, and 1 if not. With\n"
        "--dry-run, the exit code is 1 if there is damage, loss or a torn end.",
    )
    add_path(parser)
    add_which(parser)
    add_dry_run(parser)
    parser.add_argument(
        "--force", action="store_true", help="also cut intact records after the damage"
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="continue without the missing acknowledged records; the log keeps a note of the loss",
    )
    parser.add_argument(
        "--index",
        action="store_true",
        help="for event stores: only delete the index, and build a new index from the events",
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_repair)


def add_salvage(commands: Commands) -> None:
    """Add the command ``salvage``."""
    parser = commands.add_parser(
        "salvage",
        help="copy all intact records to a new log",
        description="Copy every intact record, and the metadata of a book, to a new log. The "
        "command does not change the source. Records after a gap get new numbers or LSNs; the "
        "report has the old and the new numbers. In a pier, deeds keep their numbers, and a stub "
        "stands for each lost deed before another deed. The consumers of a write-ahead log or a "
        "pier and the committed transactions are copied, too. The command copies every intact "
        "event of an event store once.",
        epilog="examples:\n"
        "  deedbook salvage broken.book rescued.book\n"
        "  deedbook salvage --json broken.book rescued.book | jq .damages\n"
        "  deedbook salvage --keep-numbers broken.book rescued.book\n\n"
        "The exit code is 1 at damage or loss, also at the end of the log: the copy then lacks\n"
        "records.",
    )
    parser.add_argument(
        "source",
        metavar="SRC",
        help="the damaged log, or the saved end of a repaired log",
    )
    parser.add_argument("target", metavar="DST", help="the new log")
    parser.add_argument(
        "--keep-numbers",
        action="store_true",
        help="for books: write a stub for each lost deed, to keep the numbers of later deeds; "
        "fails if the number of lost deeds is unknown",
    )
    add_which(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_salvage)


def run_repair(args: argparse.Namespace, out: Output) -> int:
    """Repair the log at ``args.path``, saving the removed bytes; return the exit code.

    Raises `deedbook.Error`; the log is then unchanged.
    """
    found, options = asked_for(args, args.path)
    info = found.format
    if args.index:
        return _reindex(args, out)
    if "repair" in instead_of(info):
        instead = instead_of(info)["repair"]
        raise CliError(f"repair: {args.path} holds a {info.title}; {instead}", path=args.path)
    if found.saved:
        raise CliError(
            f"repair: {args.path} is what was cut off a {info.title} and saved; salvage copies it"
            " to a new log",
            path=args.path,
        )
    asked = {name: True for name in ("dry_run", "force", "accept_loss") if getattr(args, name)}
    if info is NOSTR:
        outcome = repair_store(args.path, asked)
    elif info is LEDGER:
        outcome = repair_ledger(args.path, asked, options)
    else:
        assert isinstance(info, LogInfo)
        outcome = _repair_log(info, args.path, asked, options)
    return out.result(args.json, {"format": info.name, **outcome.facts}, outcome.lines, outcome.ok)


def _reindex(args: argparse.Namespace, out: Output) -> int:
    store_at(args, args.path)  # opening for writing would make a missing one
    if args.dry_run or args.force or args.accept_loss:
        raise CliError("repair: --index goes alone")
    opened = EventStore.open(args.path, "a", lock_timeout=args.lock_timeout)
    with opened as store, Progress("index", enabled=not args.quiet) as progress:
        events = store.reindex(progress=progress.update)
        path = store.path
    facts = {"format": NOSTR.name, "path": path, "events": events}
    return out.result(args.json, facts, [f"{path}: indexed {count(events, 'event')}"])


def _repair_log(
    info: LogInfo[Any], path: str, asked: dict[str, Any], options: dict[str, Any]
) -> Outcome:
    report: Any = info.log.repair(path, **asked, **options)
    dry_run = "dry_run" in asked
    is_fine = not (report.cut_bytes or report.set_aside or report.damage or report.loss)
    ok = is_fine if dry_run else report.mended
    return Outcome(ok, report.to_dict(), _repair_lines(info, report, dry_run))


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

    Damage and loss are `EXIT_DAMAGE`. Raises `deedbook.Error`; the source is never changed.
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
    named = {"source": args.source, "target": args.target, "format": found.format.name}
    return out.result(args.json, {**named, **outcome.facts}, outcome.lines, outcome.ok)
