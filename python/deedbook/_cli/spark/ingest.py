"""``deedbook spark ingest``: files of lines, Parquet files or other logs into a log."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import add_batches, add_reading
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "append files of lines, Parquet files or other logs to a log",
    "description": "Append a record to LOG for each line of files, for each row of Parquet files, "
    "or for each record of other logs. SOURCE is a directory, a file or a glob of files (also .gz "
    "and .zst), or a log. Run the job again to append only new data.",
    "epilog": "examples:\n"
    "  deedbook spark ingest incoming/ events.book --format book\n"
    "  deedbook spark ingest 'lines/*.jsonl.gz' events.wal --format wal --aside bad/\n"
    "  deedbook spark ingest table/ events.book --format book --column body\n"
    "  deedbook spark ingest spool/ events.book --format book --master spark://host:7077\n\n"
    "Move a file to SOURCE only when the file is complete. The job reads the files of a\n"
    "batch in the order of the names, and the lines or rows in order. The job writes lines\n"
    "that are not JSON to a Parquet table, with file, line and reason, continues, and exits\n"
    "with 1.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("source", metavar="SOURCE", help="directory, file, glob, or log")
    parser.add_argument("log", metavar="LOG", help="the log; --format creates a missing log")
    parser.add_argument(
        "--format", choices=("book", "wal", "ledger", "nostr"), help="create a log of the format"
    )
    parser.add_argument(
        "--kind",
        choices=("lines", "parquet", "log"),
        help="choose the kind of SOURCE (default: by the file names and contents)",
    )
    parser.add_argument(
        "--column", metavar="NAME", help="for Parquet files: read payloads from the column NAME"
    )
    parser.add_argument(
        "--no-validate", action="store_true", help="accept any lines, not only JSON"
    )
    parser.add_argument(
        "--aside", metavar="DIR", help="write bad lines to DIR (default: next to the checkpoint)"
    )
    parser.add_argument(
        "--stop-at-bad", action="store_true", help="stop at the first bad line, and exit with 2"
    )
    add_batches(parser, "LOG")
    add_reading(parser)


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Ingest; return the exit code."""
    aside = args.aside or f"{args.checkpoint or f'{args.log}.jobs'}.bad"
    with Progress("ingest", enabled=not args.quiet) as progress:
        report = jobs.ingest(
            spark,
            args.source,
            args.log,
            format=args.format,
            kind=args.kind,
            column=args.column,
            check="none" if args.no_validate else "json",
            aside=None if args.stop_at_bad else aside,
            checkpoint=args.checkpoint,
            batch_bytes=args.batch_size,
            consumer=args.consumer,
            fail_on_data_loss=not args.go_on_after_loss,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": not report.bad, **report.to_dict()})
    elif args.dry_run:
        after = "" if report.last_batch is None else f", after batch {report.last_batch}"
        out.talk(f"would append the {report.kind} of {report.source} to {report.log}{after}")
    else:
        bad = f", put {count(report.bad, 'bad line')} aside in {aside}" if report.bad else ""
        out.talk(
            f"appended {count(report.appended, 'record')} to {report.log}"
            f" in {report.seconds:.0f} s{bad}"
        )
    return EXIT_DAMAGE if report.bad else EXIT_OK
