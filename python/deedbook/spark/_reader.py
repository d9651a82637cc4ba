"""The batch reader: plans on the driver, reads on the executors, yields Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from deedbook import CorruptError, InvalidArgumentError
from deedbook.spark._format import Damaged, LogFormat
from deedbook.spark._formats import formats
from deedbook.spark._options import ReadOptions, parse
from deedbook.spark._paths import find_logs, input_paths
from deedbook.spark._schema import CORRUPT_RECORD, bind, resolve

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DeedbookReader", "default_schema", "make_reader"]


def default_schema(options: Mapping[str, str]) -> StructType:
    """The schema where the user gives none. Raises for bad options and missing logs."""
    parsed = parse(options)
    log, _ = _detect(options, parsed)
    return resolve(log.columns, parsed)


def make_reader(options: Mapping[str, str], schema: StructType) -> DeedbookReader:
    """A reader of ``schema``, which is the user's or the one that `default_schema` gave."""
    parsed = parse(options)
    log, paths = _detect(options, parsed)
    if parsed.columns is not None and schema.names != resolve(log.columns, parsed).names:
        raise InvalidArgumentError(
            f"option columns: {','.join(parsed.columns)!r} is not allowed beside the schema"
            f" {schema.simpleString()}; give one of the two"
        )
    return DeedbookReader(log.name, [str(path) for path in paths], parsed, schema)


class DeedbookReader(DataSourceReader):
    """Reads logs of one format. Pickled to every task, so it holds names and numbers only.

    It has no ``pushFilters``: Spark (4.3.0) keeps the partitions of the last filtered query for
    all queries of a DataFrame, so that after ``df.where("event < 5").count()`` also
    ``df.count()`` sees four events.
    """

    def __init__(
        self, log: str, paths: list[str], options: ReadOptions, schema: StructType
    ) -> None:
        self._log = log
        self._paths = paths
        self._options = options
        self._schema = schema
        self._bound = bind(self._format().columns, schema, options)

    def partitions(self) -> list[InputPartition]:
        """Parts of the logs, in order. A snapshot: what is appended later is not read."""
        if self._options.empty:
            return []
        log = self._format()
        return [part for path in self._paths for part in log.plan(Path(path), self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches that have the schema exactly, which Spark checks in the first one only."""
        log = self._format()
        if partition.value is None:  # what Spark makes of an empty list of partitions
            return
        schema = to_arrow_schema(self._schema, timezone="UTC")
        file = log.file(partition)
        stored = [name for name in self._bound if name not in (CORRUPT_RECORD, "path")]
        try:
            for item in log.read(partition, stored, self._options):
                if isinstance(item, Damaged):
                    if self._options.mode == "PERMISSIVE":
                        yield self._damage_row(item, file, schema)
                elif item.num_rows > 0:
                    yield self._batch(item, file, schema)
        except CorruptError as error:
            raise _failfast(error, file) from error

    def _format(self) -> LogFormat:
        return next(log for log in formats() if log.name == self._log)

    def _batch(self, batch: pa.RecordBatch, file: str, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        arrays: list[Any] = []
        for name, field in zip(self._bound, schema, strict=True):
            if name == CORRUPT_RECORD:
                arrays.append(pa.nulls(batch.num_rows, field.type))
            elif name == "path":
                arrays.append(pa.repeat(pa.scalar(file, field.type), batch.num_rows))
            else:
                array = batch.column(name)
                arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _damage_row(self, damaged: Damaged, file: str, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        known = {
            CORRUPT_RECORD: f"{file}: bytes {damaged.offset} to {damaged.end}: {damaged.reason}",
            "path": file,
            "offset": damaged.offset,
            "lsn": damaged.offset,
            "length": damaged.end - damaged.offset,
        }
        arrays: list[Any] = [
            pa.array([known.get(name)], field.type)
            for name, field in zip(self._bound, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _detect(options: Mapping[str, str], parsed: ReadOptions) -> tuple[LogFormat, list[Path]]:
    """The format and the logs at the paths; `InvalidArgumentError` where they are of several."""
    candidates = [log for log in formats() if parsed.log in (None, log.name)]

    def expand(path: Path) -> list[tuple[LogFormat, Path]]:
        return [(log, found) for log in candidates for found in log.expand(path)]

    found = find_logs(input_paths(options), expand)
    log, first = found[0]
    for other, path in found:
        if other is not log:
            raise InvalidArgumentError(
                f"option log: there are logs of several formats, {log.name} at {first} and"
                f" {other.name} at {path}; say which to read"
            )
    return log, [path for _, path in found]


def _failfast(error: CorruptError, file: str) -> CorruptError:
    where = f"byte {error.offset}" if error.offset is not None else "unknown byte"
    wrapped = CorruptError(
        f"{error.path or file}: {where}: {error.reason or error};"
        " mode DROPMALFORMED or PERMISSIVE reads on after it"
    )
    wrapped.format, wrapped.path = error.format, error.path or file
    wrapped.offset, wrapped.reason = error.offset, error.reason
    wrapped.next_intact = error.next_intact
    return wrapped
