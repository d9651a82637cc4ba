"""``deedbook spark verify``: the check of ``deedbook verify``, by many tasks at once."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import size
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.keep.check import show_failure, show_outcome
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "check every record of many or huge logs",
    "description": "Check every record of the logs at each PATH: a log of any format, a pier, a "
    "directory of logs, or a glob. Many tasks check the parts of large logs at once. The result "
    "is the result of 'deedbook verify'. The job changes nothing. The job reports logs that "
    "cannot be opened, and checks the other logs.",
    "epilog": "examples:\n"
    "  deedbook spark verify pier/ --master spark://host:7077\n"
    "  deedbook spark verify 'logs/*' events.book --json\n"
    "  deedbook spark verify store/ --check signature\n\n"
    "exit codes: 0 all logs are fine, 1 a log is damaged, lost or torn, 2 a log cannot be opened",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("paths", metavar="PATH", nargs="+", help="log, pier, directory, or glob")
    parser.add_argument(
        "--part-size",
        metavar="BYTES",
        type=size,
        default=512 << 20,
        help="read at most BYTES in a task (default: 512m)",
    )
    parser.add_argument(
        "--check",
        choices=("none", "id", "signature"),
        default="id",
        help="for event stores: check only checksums, also the id of each event (default), or "
        "also the signature",
    )


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Check, and print as ``deedbook verify`` does; return the worst exit code."""
    with Progress("verify", enabled=not args.quiet) as progress:
        checked = jobs.verify(
            spark,
            *args.paths,
            part_bytes=args.part_size,
            check=args.check,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    worst = EXIT_OK
    for one in checked:
        if one.error is not None:
            code = show_failure(one.path, one.error, out, args.json)
        else:
            code = show_outcome(one.path, one.format, one.outcome, out, args.json)
        worst = max(worst, code)
    return worst
