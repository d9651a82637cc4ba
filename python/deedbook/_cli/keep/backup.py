"""``deedbook backup``: copy a log while another process writes."""

from __future__ import annotations

import argparse

from deedbook import backup
from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import by_name
from deedbook._show.text import count, exact_size

__all__ = ["add_arguments", "run_backup"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "backup",
        help="copy a log while another process writes; again: copy only new records",
        description="Copy a log, or update an earlier copy. The copy has every record "
        "acknowledged before the command began, with the same numbers. The command reads new "
        "records back from the copy. To restore, open the copy. Another process may write during "
        "the backup, in any format.",
        epilog="examples:\n"
        "  deedbook backup events.book /backup/events.book\n"
        "  deedbook backup events.book /backup/events.book    again: only new records\n\n"
        "The next backup continues an interrupted backup. If the files of DST are not the\n"
        "beginning of the files of SRC, the command fails and leaves DST unchanged. Records\n"
        "that a WAL or a ledger dropped are also removed from the backup.",
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
