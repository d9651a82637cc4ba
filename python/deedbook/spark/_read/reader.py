"""The batch reader: plans on the driver, reads on the executors, yields Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from deedbook import InvalidArgumentError
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.formats import format_named
from deedbook.spark._logs.parts import LogPartition
from deedbook.spark._options.options import ReadOptions, parse
from deedbook.spark._options.schema import as_struct, resolve
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._read.plan import Series, plan
from deedbook.spark._read.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DeedbookReader", "check_columns", "default_schema", "detected", "make_reader"]


Detected: TypeAlias = "tuple[str, list[Series]]"
"""A format's name, and the logs at the paths."""


def detected(options: Mapping[str, str]) -> Detected:
    """The logs at the paths. Raises for bad options and missing logs."""
    log, series = detect_logs(options, parse(options, scope=None))
    return log.name, series


def default_schema(options: Mapping[str, str], found: Detected | None = None) -> StructType:
    """The schema if the user gives none. Raises for bad options and missing logs."""
    name, _ = found or detected(options)
    return resolve(format_named(name).columns, parse(options, scope=None))


def make_reader(
    options: Mapping[str, str], schema: StructType | pa.Schema, found: Detected | None = None
) -> DeedbookReader:
    """A reader of ``schema``: the user's schema, or the result of `default_schema`.

    ``found`` has the logs found for the schema a moment before.
    """
    parsed = parse(options, scope="read")
    name, series = found or detected(options)
    fields = as_struct(schema)
    check_columns(format_named(name), fields, parsed)
    return DeedbookReader(name, series, parsed, fields)


def check_columns(log: LogFormat, schema: StructType, options: ReadOptions) -> None:
    """Refuse a schema that differs from the option ``columns``."""
    if options.columns is not None and schema.names != resolve(log.columns, options).names:
        raise InvalidArgumentError(
            f"option columns: {','.join(options.columns)!r} is not allowed beside the schema"
            f" {schema.simpleString()}; give one of the two"
        )


class DeedbookReader(DataSourceReader):
    """Reads logs of one format. Pickled to every task, so without the list of the logs.

    The reader has no ``pushFilters``: Spark (4.3.0) keeps the filters of a query for other queries
    on the same DataFrame, so the union of ``df.where("event < 7")`` and ``df`` has 14 rows.
    """

    def __init__(
        self, log: str, series: Sequence[Series], options: ReadOptions, schema: StructType
    ) -> None:
        self._rows = Rows(log, options, schema)
        self._series = tuple(series)
        self._options = options

    def __getstate__(self) -> dict[str, Any]:
        """The state for a task."""
        return {**self.__dict__, "_series": ()}

    def partitions(self) -> list[LogPartition]:
        """Parts of the logs, in order. A snapshot: later records are not read."""
        if self._options.empty:
            return []
        return plan(self._rows.format, self._series, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches with exactly the schema."""
        return self._rows.read(partition)
