"""``deedbook backup``: a copy of a log beside its writer."""

from __future__ import annotations

import argparse

from deedbook import backup
from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._formats import by_name
from deedbook._text import count, exact_size

__all__ = ["add_arguments", "run_backup"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "backup",
        help="copy a log beside its writer; again: what is new",
        description="Copy a log, or bring such a copy up to date. The copy has every record that "
        "was acknowledged before, with the same numbers; what is new in it is read back. To "
        "restore, open the copy. A log of any format may be written meanwhile.",
        epilog="examples:\n"
        "  deedbook backup events.book /backup/events.book\n"
        "  deedbook backup events.book /backup/events.book    again: what was appended since\n\n"
        "A backup that was interrupted is continued by the next one. Files of DST that are no\n"
        "beginning of those of SRC are an error, and stay as they are.\n"
        "What a WAL or a ledger dropped goes from the backup, too.",
    )
    parser.add_argument("source", metavar="SRC", help="the log")
    parser.add_argument("target", metavar="DST", help="the copy")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_backup)


def run_backup(args: argparse.Namespace, out: Output) -> int:
    """Back ``args.source`` up. Raises `deedbook.Error` and OSError."""
    with Progress(f"backup {args.source}", enabled=not args.quiet) as progress:
        report = backup(args.source, args.target, progress=progress.update)
    noun = by_name(report.format).noun
    new = "all of it"
    if report.new_records is not None:
        new = count(report.new_records, f"new {noun}")
    has = f"{noun}s {report.bounds[0]}..{report.bounds[1]}, " if report.bounds else ""
    text = (
        f"{args.target}: wrote {exact_size(report.copied_bytes)} to"
        f" {count(report.copied_files, 'file')} and read {new} back; it has {has}"
        f"{exact_size(report.total_bytes)} in all"
    )
    return out.result(args.json, report.to_dict(), [text])
