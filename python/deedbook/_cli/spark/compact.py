"""``deedbook spark compact``: many small logs into few."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli import arguments
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count, size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "copy many small logs to a few large logs",
    "description": "Copy many logs of one format to a few new logs, one task for each new log. "
    "The sources stay. If the job is killed, run the job again to write the missing logs. The job "
    "refuses sources that changed since the first run.",
    "epilog": "examples:\n"
    "  deedbook spark compact small/ few/\n"
    "  deedbook spark compact 'logs/*.wal' few/ --size 4g --dry-run\n\n"
    "Records keep the order, one log after the other. Event numbers of books stay the same\n"
    "if each source continues the numbers of the source before; else the numbers begin at\n"
    "1. Close ledgers first. From event stores, the job copies each live event once.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("logs", metavar="LOG", nargs="+", help="log, directory of logs, or glob")
    parser.add_argument("target", metavar="DIR", help="directory of the new logs")
    parser.add_argument(
        "--size",
        metavar="BYTES",
        type=arguments.size,
        default=1 << 30,
        help="write logs of about BYTES (default: 1g)",
    )


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Compact; return the exit code."""
    with Progress("compact", enabled=not args.quiet) as progress:
        report = jobs.compact(
            spark,
            args.logs,
            args.target,
            size_bytes=args.size,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
        return EXIT_OK
    sources = sum(len(log.sources) for log in report.logs)
    would = "would make" if args.dry_run else "made"
    made = len(report.logs) if args.dry_run else report.made
    there = len(report.logs) - made
    out.talk(
        f"{would} {count(made, 'log')} of {count(sources, 'log')},"
        f" {size(sum(log.bytes for log in report.logs))}, in {report.target}"
        + (f"; {there:,} were there" if there else "")
    )
    return EXIT_OK
