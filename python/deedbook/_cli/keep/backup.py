"""``deedbook backup``: copy a log while another process writes."""

from __future__ import annotations

import argparse

from deedbook import backup
from deedbook._cli.archive import is_url, run_restore, run_upload
from deedbook._cli.arguments import Commands, add_base, add_json, add_quiet, seconds
from deedbook._cli.failure import CliError
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import by_name
from deedbook._show.text import count, exact_size

__all__ = ["add_arguments", "run_backup"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "backup",
        help="copy a log while another process writes; archive it at a URL, and restore it",
        description="Copy a log, or update an earlier copy. The copy has every record "
        "acknowledged before the command began, with the same numbers. The command reads new "
        "records back from the copy. To restore, open the copy. Another process may write during "
        "the backup, in any format. If DST is a URL, the command sends the sealed files of a log "
        "to an archive there. If SRC is a URL, the command restores the log of the archive.",
        epilog="examples:\n"
        "  deedbook backup events.book /backup/events.book\n"
        "  deedbook backup events.book /backup/events.book    again: only new records\n"
        "  deedbook archive events.wal s3://bucket/events     the new segments\n"
        "  deedbook archive a.wal s3://bucket/a --catalog s3://bucket\n"
        "  deedbook restore s3://bucket/events new.wal        every archived segment\n\n"
        "The next backup continues an interrupted backup. If the files of DST are not the\n"
        "beginning of the files of SRC, the command fails and leaves DST unchanged. Records\n"
        "that a WAL or a ledger dropped are also removed from the backup.\n\n"
        "'archive' and 'restore' are other names of 'backup'. A URL begins with s3://, gs://,\n"
        "az:// or file://. The credentials come from the environment. An archive keeps dropped\n"
        "records. 'deedbook verify URL' checks an archive, and 'deedbook cat URL' reads it.",
    )
    parser.add_argument("source", metavar="SRC", help="the log, or the URL of an archive")
    parser.add_argument("target", metavar="DST", help="the copy, or the URL of an archive")
    parser.add_argument(
        "--consumer",
        metavar="NAME",
        help="with a URL as DST: name the consumer of a WAL or pier that keeps what is not "
        "archived (default: archive)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds,
        help="with a URL: end a request, and its repeats, after TIME (default: 120s)",
    )
    parser.add_argument(
        "--catalog",
        metavar="URL",
        help="with a URL as DST: a URL above DST; its catalog of many archives gets the new pieces",
    )
    add_base(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_backup)


def run_backup(args: argparse.Namespace, out: Output) -> int:
    """Back ``args.source`` up. Raises `deedbook.Error` and OSError."""
    if is_url(args.source) and is_url(args.target):
        raise CliError("backup: SRC and DST are URLs; one of them must be a path")
    if is_url(args.source):
        return run_restore(args, out)
    if is_url(args.target):
        return run_upload(args, out)
    if any(value is not None for value in (args.consumer, args.timeout, args.base, args.catalog)):
        raise CliError("backup: --consumer, --timeout, --base and --catalog go with a URL")
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
