"""``deedbook spark migrate``: logs into a log of another format, verified."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import add_batches
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.keep.convert import LAYOUTS
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "copy logs to a log of another format, or a pier in LMDB to books, and verify the copy",
    "description": "Copy the records of SOURCE (a log, a directory of logs or a glob) to LOG, "
    "then read and compare both. The formats are books, WALs and ledgers. Or copy the epochs of "
    "SOURCE, a pier of Urbit in LMDB, to the new pier LOG of books, one task for each epoch. The "
    "job only reads the source. Run the job again to copy only new records.",
    "epilog": "examples:\n"
    "  deedbook spark migrate zod/ new-zod/ --layout slots\n"
    "  deedbook spark migrate pier/.urb/log events.book --format book\n"
    "  deedbook spark migrate spool/ events.wal --format wal --master spark://host:7077\n\n"
    "From books to a book, the job keeps mugs and event numbers. From a pier in LMDB, the\n"
    "job compares each event while copying. With --no-verify, the job does not compare\n"
    "epochs of an earlier run again.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("source", metavar="SOURCE", help="log, directory of logs, glob, or pier")
    parser.add_argument("log", metavar="LOG", help="the log; --format creates a missing log")
    parser.add_argument(
        "--format", choices=("book", "wal", "ledger"), help="create a log of the format"
    )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="choose the layout of a new book (default: packed); an existing book must have the "
        "same layout",
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="skip the comparison of source and copy"
    )
    add_batches(parser, "LOG")


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Migrate; return the exit code. Raises `CliError`."""
    if jobs.is_lmdb_pier(args.source):
        if args.format not in (None, "book"):
            raise CliError(f"spark migrate: {args.source} is a pier in LMDB, for --format book")
        return _run_pier(args, out, spark, jobs)
    with Progress("migrate", enabled=not args.quiet) as progress:
        report = jobs.migrate(
            spark,
            args.source,
            args.log,
            format=args.format,
            layout=args.layout,
            checkpoint=args.checkpoint,
            batch_bytes=args.batch_size,
            verify=not args.no_verify,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
    elif args.dry_run:
        out.talk(f"would copy the {report.source_format} {report.source} to {report.log}")
    else:
        same = (
            ""
            if report.records is None
            else f"; both hold {count(report.records, 'record')}, digest {report.digest}"
        )
        out.talk(f"copied {count(report.appended, 'record')} to {report.log}{same}")
    return EXIT_OK


def _run_pier(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Bring a pier; return the exit code."""
    with Progress("migrate", enabled=not args.quiet, unit="event") as progress:
        report = jobs.migrate_pier(
            spark,
            args.source,
            args.log,
            layout=args.layout,
            verify=not args.no_verify,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
        return EXIT_OK
    verb = "would bring" if args.dry_run else "brought"
    found = report.events - report.brought
    out.talk(
        f"{verb} {count(report.brought, 'event')} in {count(len(report.epochs), 'epoch')} to"
        f" {report.dest}"
        + (f"; {count(found, 'event')} were there, and are the source's" if found else "")
        + (f"; {count(report.passed_over, 'epoch')} passed over" if report.passed_over else "")
    )
    return EXIT_OK
