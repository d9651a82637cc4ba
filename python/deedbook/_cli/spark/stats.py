"""``deedbook spark stats``: figures about logs, counted by many tasks at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import positive
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.terminal.output import Output, table
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count, exact_size, size

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "count records by log and size; for event stores also by kind, author, day and tag",
    "description": "Count the records in logs of one format. The job reads each record and "
    "compares the checksum. Damage ends the job, unless you use --skip-corrupt.",
    "epilog": "examples:\n"
    "  deedbook spark stats pier/.urb/log\n"
    "  deedbook spark stats notes/ --top 5\n"
    "  deedbook spark stats 'logs/*.wal' --json | jq .sizes",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("paths", metavar="LOG", nargs="+", help="log, directory of logs, or glob")
    parser.add_argument(
        "--top",
        metavar="N",
        type=positive,
        default=20,
        help="print at most N logs, kinds, authors, days and tags (default: 20)",
    )
    parser.add_argument("--skip-corrupt", action="store_true", help="continue after damage")


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Count; return the exit code."""
    with Progress("stats", enabled=not args.quiet) as progress:
        report = jobs.stats(
            spark,
            *args.paths,
            top=args.top,
            skip_corrupt=args.skip_corrupt,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
        return EXIT_OK
    if args.dry_run:
        out.talk(f"would count {count(len(report.logs), 'log')}, {size(report.bytes)}")
        return EXIT_OK
    records = f"{report.records:,}"
    rows = [("format", report.format), ("records", records), ("payloads", exact_size(report.bytes))]
    for line in table(rows):
        out.line(line)
    _section(out, "size", [(f"below {one.below:,}", one.records) for one in report.sizes])
    if len(report.logs) > 1:
        _section(out, "log", [(one.path, one.records) for one in report.logs[: args.top]])
    for what, found in report.top.items():
        _section(out, what, list(found.items()))
    out.flush()
    return EXIT_OK


def _section(out: Output, title: str, rows: list[tuple[str, int]]) -> None:
    out.line(f"by {title}")
    for line in table([(name, f"{number:,}") for name, number in rows]):
        out.line(f"  {line}")
