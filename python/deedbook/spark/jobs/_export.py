"""``export``: logs into a table of Parquet files or a Delta table; a later run adds new records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deedbook import InvalidArgumentError, UnsupportedError
from deedbook._spark_session import in_utc
from deedbook._system.lock import alone
from deedbook.spark._options.paths import local_path
from deedbook.spark.jobs._engine.run import Tell, runs_on
from deedbook.spark.jobs._engine.sail import is_sail
from deedbook.spark.jobs._engine.tasks import functions_of
from deedbook.spark.jobs._input.batches import Batches
from deedbook.spark.jobs._input.ingest import BATCH_BYTES, Counted
from deedbook.spark.jobs._input.stream import (
    Checkpoint,
    Ended,
    options_of_logs,
    run_sink,
    run_stream,
)
from deedbook.spark.jobs._tables import DeltaTable, ParquetTable, TableKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ExportReport", "export"]


@dataclass(frozen=True)
class ExportReport:
    """The result of `export`, or with ``dry_run`` the plan."""

    source: str
    """The source log."""
    table: str
    """The target table."""
    kind: TableKind
    """The kind of the table."""
    checkpoint: str
    """The directory with the progress of the export."""
    columns: tuple[str, ...]
    """The columns of the table, in order."""
    batches: int
    """Batches added in this run."""
    rows: int
    """Rows read in this run."""
    last_batch: int | None
    """The last batch of this source in the table, from 0; None without a batch."""
    seconds: float
    """The duration of the run."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {**asdict(self), "columns": list(self.columns)}


@runs_on("spark", "sail")
def export(
    spark: SparkSession,
    source: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    kind: TableKind = "parquet",
    columns: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    batch_bytes: int = BATCH_BYTES,
    consumer: str | None = None,
    fail_on_data_loss: bool = True,
    dry_run: bool = False,
    progress: Tell | None = None,
) -> ExportReport:
    """Add the records of a log, a directory of logs or a glob to a table.

    ``columns`` are columns of reading the logs, all by default. ``partition_by`` names the table's
    partition columns, or makes new columns: ``"day=date(created_at)"`` is a name and an expression
    of Spark, with days and hours in UTC. A later run adds the new records.

    After a kill, begin the run again: it goes on at the same place. The ``checkpoint``, by default
    in ``TABLE.jobs``, has the position in the source, and the table has the number of the last
    batch. A batch reads about ``batch_bytes``. A Delta table shows a whole batch or nothing to any
    reader. Plain Parquet files are those of Spark's file sink: to Spark, the table shows a whole
    batch or nothing; other readers also see the files of a killed batch.

    All runs of a table have the same columns and partitions. Several sources may share a Delta
    table; a directory of Parquet files has one source.

    Raises `InvalidArgumentError` for a missing checkpoint, a missing column, columns or partitions
    that differ from the table, and a Delta table without its library; `UnsupportedError` for plain
    Parquet on Sail; `LockedError` if another process exports the same source, or to the same
    directory of Parquet files; `JobFailedError`, and the errors of opening a log.
    """
    given = str(local_path(os.fspath(source)))
    path = local_path(os.fspath(to))
    known = Checkpoint.of("export", given, path, checkpoint)
    made = [_partition(text) for text in partition_by]
    by = [name for name, _ in made]
    on_sail = is_sail(spark)
    if on_sail and kind == "parquet":
        raise UnsupportedError("plain Parquet needs a stream, and Sail has none: choose Delta")
    work = _work(path, known.app if kind == "delta" else "parquet")
    delta = DeltaTable(path, by, known.app, work) if kind == "delta" else None
    target = delta or ParquetTable(path, by, spark)
    of_logs = options_of_logs(batch_bytes, consumer, fail_on_data_loss)
    # Two runs would write a batch into the same folders, and remove each other's files. Also, a run
    # would see the other run's batch in the table and in the checkpoint at different moments.
    lock = alone(work / "lock", f"exports {given} to {path}")
    with nullcontext() if dry_run else lock:
        if isinstance(target, ParquetTable) and known.begun is None:
            target.refuse_others()
        known.check(target.committed())
        if columns:
            of_logs["columns"] = ",".join(columns)
        batches = None
        if on_sail:
            batches = Batches(
                spark, {"path": given, **{name: str(of) for name, of in of_logs.items()}}
            )
            rows = batches.none()
        else:
            rows = spark.readStream.format("deedbook").options(**of_logs).load(given)
        with in_utc(spark):
            rows = _with_columns(rows, made)
        target.check(rows.schema)
        if not dry_run:  # else Spark writes times in a form unknown to Delta
            spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        counted = Counted(spark)
        tell = (counted.look, progress)

        def write(frame: DataFrame, query: str, batch: int) -> None:
            assert delta is not None, "only a Delta table takes batches"
            frame = frame if batches is None else _with_columns(frame, made)
            delta.add(frame.mapInArrow(counted.pass_on, frame.schema), query, batch)

        ended = Ended(0, 0.0)
        if batches is not None and not dry_run:
            ended = batches.run("export", known, write, *tell)
        elif delta is not None and not dry_run:
            ended = run_stream(spark, "export", rows, known, write, *tell)
        elif not dry_run:
            rows = rows.mapInArrow(counted.pass_on, rows.schema)
            ended = run_sink(spark, "export", rows, known, path, by, *tell)
    return ExportReport(
        given,
        str(path),
        kind,
        str(known.path),
        tuple(rows.columns),
        ended.batches,
        counted.rows,
        target.committed(),
        round(ended.seconds, 3),
    )


def _work(path: Path, app: str) -> Path:
    """The other files of the job, on the disk of the table."""
    return path.parent / f"{path.name}.jobs" / f"{app}.work"


def _partition(text: str) -> tuple[str, str | None]:
    """A column's name, and the column's expression."""
    name, is_made, expression = text.partition("=")
    if not name.strip() or (is_made and not expression.strip()):
        raise InvalidArgumentError(f"partition by {text!r}: a column, or NAME=EXPRESSION")
    return name.strip(), expression.strip() if is_made else None


def _with_columns(rows: DataFrame, made: Sequence[tuple[str, str | None]]) -> DataFrame:
    for name, expression in made:
        rows = _with_column(rows, name, expression)
    return rows


def _with_column(rows: DataFrame, name: str, expression: str | None) -> DataFrame:
    from pyspark.errors import PySparkException

    if expression is None:
        if name not in rows.columns:
            raise InvalidArgumentError(
                f"partition by {name!r}: no such column among {', '.join(rows.columns)}"
            )
        return rows
    try:
        rows = rows.withColumn(name, functions_of(rows.sparkSession).expr(expression))
        _ = rows.schema  # Sail looks at the expression only now
    except PySparkException as error:
        first = str(error).splitlines()[0]
        raise InvalidArgumentError(f"partition by {name}={expression}: {first}") from error
    return rows
