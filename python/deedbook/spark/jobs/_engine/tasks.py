"""A job's tasks, counters and functions of columns, for the engine of the job's session."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from deedbook.spark.jobs._engine import sail

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Counter", "cores_of", "counter_of", "functions_of", "rows_of", "spread"]

T = TypeVar("T")
R = TypeVar("R")


class Counter(Protocol):
    """A number that tasks add to, and the driver reads."""

    @property
    def value(self) -> Any:
        """The sum so far."""

    def add(self, more: int) -> Any:
        """Add to the number."""


def cores_of(spark: SparkSession) -> int:
    """The tasks that run at the same time."""
    if sail.is_sail(spark):
        return os.cpu_count() or 1
    return spark.sparkContext.defaultParallelism


def counter_of(spark: SparkSession) -> Counter:
    """A new counter, at 0."""
    return sail.Counter() if sail.is_sail(spark) else spark.sparkContext.accumulator(0)


def functions_of(spark: SparkSession) -> Any:
    """The module with the functions of columns, which Spark Connect has in a place of its own."""
    if sail.is_sail(spark):
        from pyspark.sql.connect import functions as of_connect

        return of_connect
    from pyspark.sql import functions

    return functions


def spread(
    spark: SparkSession, tasks: Sequence[T], do: Callable[[Iterable[T]], Iterator[R]]
) -> Iterator[R]:
    """The results of ``do`` for each task, in the order of the tasks."""
    if not sail.is_sail(spark):
        return iter(spark.sparkContext.parallelize(tasks, len(tasks)).mapPartitions(do).collect())

    def run(given: Iterator[bytes]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for pickled in given:
            number, task = pickle.loads(pickled)
            found = pickle.dumps((number, list(do([task]))))
            yield pa.RecordBatch.from_arrays([pa.array([found], pa.binary())], names=["found"])

    rows = rows_of(spark, list(enumerate(tasks)), run, "found binary").collect()
    results = dict(pickle.loads(row.found) for row in rows)
    return (one for number in range(len(tasks)) for one in results[number])


def rows_of(
    spark: SparkSession,
    tasks: Sequence[Any],
    run: Callable[[Iterator[Any]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The rows of tasks on Sail. ``run`` gets some of the tasks, pickled."""
    import pyarrow as pa

    if not tasks:
        return spark.createDataFrame([], schema)

    def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return run(task for batch in batches for task in batch["task"].to_pylist())

    given = pa.table({"task": pa.array([pickle.dumps(task) for task in tasks], pa.binary())})
    return spark.createDataFrame(given).repartition(len(tasks)).mapInArrow(of_batches, schema)
