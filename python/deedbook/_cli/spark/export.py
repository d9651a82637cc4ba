"""``deedbook spark export``: logs into a table of Parquet files or a Delta table."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import add_batches, add_reading
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TEXTS", "add_arguments", "run"]

TEXTS: Final = {
    "help": "export logs to a table of Parquet files or a Delta table",
    "description": "Add the records of LOG (a log, a directory of logs or a glob) to TABLE. Run "
    "the job again to add only new records.",
    "epilog": "examples:\n"
    "  deedbook spark export events.book table/\n"
    "  deedbook spark export notes/ table/ --format delta --partition-by 'day=date(created_at)'\n"
    "  deedbook spark export events.wal table/ --columns lsn,payload,path\n\n"
    "A Delta table shows a whole batch or nothing of the batch. A table of plain Parquet files\n"
    "does so to Spark; other readers also see the files of a killed batch.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the job."""
    parser.add_argument("log", metavar="LOG", help="log, directory of logs, or glob")
    parser.add_argument("table", metavar="TABLE", help="directory of the table")
    parser.add_argument(
        "--format",
        choices=("parquet", "delta"),
        default="parquet",
        help="choose the kind of table (default: parquet)",
    )
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="write only the columns NAMES, separated by commas (default: all stored)",
    )
    parser.add_argument(
        "--partition-by",
        metavar="COLUMN",
        action="append",
        default=[],
        help="partition the table by a column, or by NAME=EXPRESSION of Spark; may be repeated",
    )
    add_batches(parser, "TABLE")
    add_reading(parser)


def run(args: argparse.Namespace, out: Output, spark: SparkSession, jobs: Any) -> int:
    """Export; return the exit code."""
    with Progress("export", enabled=not args.quiet) as progress:
        report = jobs.export(
            spark,
            args.log,
            args.table,
            kind=args.format,
            columns=args.columns.split(",") if args.columns else (),
            partition_by=args.partition_by,
            checkpoint=args.checkpoint,
            batch_bytes=args.batch_size,
            consumer=args.consumer,
            fail_on_data_loss=not args.go_on_after_loss,
            dry_run=args.dry_run,
            progress=progress.update,
        )
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
    elif args.dry_run:
        after = "" if report.last_batch is None else f", after batch {report.last_batch}"
        columns = ", ".join(report.columns)
        out.talk(f"would add {columns} of {report.source} to {report.table}{after}")
    else:
        rows = count(report.rows, "row")
        out.talk(f"added {rows} to {report.table} in {report.seconds:.0f} s")
    return EXIT_OK
