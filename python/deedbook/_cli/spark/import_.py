"""``deedbook spark import``: Nostr events from files of JSON lines into an event store."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import add_batches
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "import Nostr events from files of JSON lines into an event store",
    "description": "Store the events of the files at SOURCE, an event on each line (also .gz and "
    ".zst). SOURCE is a directory, a file or a glob. The executors check the events. The job "
    "skips events already in the store. Run the job again to store only new events.",
    "epilog": "examples:\n"
    "  deedbook spark import dumps/ store\n"
    "  deedbook spark import 'dumps/*.jsonl.zst' store --master spark://host:7077\n"
    "  deedbook spark import dumps/ store --check id --dry-run\n\n"
    "Move a file to SOURCE only when the file is complete. The job writes bad lines to a\n"
    "Parquet table, with file, line and reason, and continues. The exit code is then 1.\n"
    "'deedbook import' imports without Spark.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("source", metavar="SOURCE", help="directory, file or glob")
    parser.add_argument(
        "store", metavar="STORE", help="the event store; the job creates a missing store"
    )
    parser.add_argument(
        "--check",
        choices=("id", "signature"),
        default="signature",
        help="check the form and the id of each event, or also the signature (default)",
    )
    parser.add_argument(
        "--aside", metavar="DIR", help="write bad lines to DIR (default: next to the checkpoint)"
    )
    add_batches(parser, "STORE")


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Import; return the exit code."""
    with Progress("import", enabled=not args.quiet) as progress:
        report = jobs.import_events(
            spark,
            args.source,
            args.store,
            check=args.check,
            aside=args.aside,
            checkpoint=args.checkpoint,
            batch_bytes=args.batch_size,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": not report.bad, **report.to_dict()})
    elif args.dry_run:
        out.talk(f"{count(report.events, 'good event')}, {count(report.bad, 'bad line')}")
    else:
        bad = f", put {count(report.bad, 'bad line')} aside in {report.aside}" if report.bad else ""
        out.talk(
            f"stored {count(report.stored, 'event')} in {report.store} in {report.seconds:.0f} s,"
            f" passed over {count(report.passed_over, 'event')} that are there already or are not"
            f" kept{bad}"
        )
    return EXIT_DAMAGE if report.bad else EXIT_OK
