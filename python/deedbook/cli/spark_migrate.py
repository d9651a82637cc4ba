"""``deedbook spark migrate``: logs into a log of another format, verified."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._text import count
from deedbook.cli.arguments import add_batches
from deedbook.cli.failure import EXIT_OK
from deedbook.cli.output import Output
from deedbook.cli.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "logs into a log of another format, verified",
    "description": "Copy the records of SOURCE, a log, a directory of logs or a glob, to LOG; then "
    "read both and compare them. Books, WALs and ledgers go into each other. The source is only "
    "read. Begun again, it copies what has come since.",
    "epilog": "examples:\n"
    "  deedbook spark migrate pier/.urb/log events.book --format book\n"
    "  deedbook spark migrate spool/ events.wal --format wal --master spark://host:7077\n\n"
    "From books to a book, mugs and event numbers are kept.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the job takes."""
    parser.add_argument("source", metavar="SOURCE", help="log, directory of logs, or glob")
    parser.add_argument("log", metavar="LOG", help="the log, which is created with --format")
    parser.add_argument("--format", choices=("book", "wal", "ledger"), help="which log to create")
    parser.add_argument("--no-verify", action="store_true", help="do not read both and compare")
    add_batches(parser, "LOG")


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Migrate; return the exit code."""
    with Progress("migrate", enabled=not args.quiet) as progress:
        report = jobs.migrate(
            spark,
            args.source,
            args.log,
            format=args.format,
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
