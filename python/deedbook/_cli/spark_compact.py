"""``deedbook spark compact``: many small logs into few."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli import arguments
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._text import count, size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "many small logs into few",
    "description": "Copy many logs of one format into few new ones, each made by one task. The "
    "sources stay. Begun again after a kill, it makes what is missing; sources that changed since "
    "are refused.",
    "epilog": "examples:\n"
    "  deedbook spark compact small/ few/\n"
    "  deedbook spark compact 'logs/*.wal' few/ --size 4g --dry-run\n\n"
    "Records keep their order, one log after the other. A book's numbers are kept where each of\n"
    "its sources goes on where the one before ends; else they begin at 1. Ledgers\n"
    "must be closed. Of event stores the events that count are copied, each once.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the job takes."""
    parser.add_argument("logs", metavar="LOG", nargs="+", help="log, directory of logs, or glob")
    parser.add_argument("target", metavar="DIR", help="directory of the new logs")
    parser.add_argument(
        "--size",
        metavar="BYTES",
        type=arguments.size,
        default=1 << 30,
        help="size of a new log, about (default: 1g)",
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
