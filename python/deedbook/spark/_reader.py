"""The batch reader: plans on the driver, reads on the executors, yields Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from deedbook import CorruptError, InvalidArgumentError
from deedbook.spark._format import Damaged, LogFormat, read_piece
from deedbook.spark._formats import formats
from deedbook.spark._options import ReadOptions, parse
from deedbook.spark._parts import LogPartition, Piece
from deedbook.spark._paths import find_logs, input_paths
from deedbook.spark._plan import Series, plan
from deedbook.spark._schema import CORRUPT_RECORD, bind, resolve
from deedbook.spark._worker import settle

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
    log, series = _detect(options, parsed)
    if parsed.columns is not None and schema.names != resolve(log.columns, parsed).names:
        raise InvalidArgumentError(
            f"option columns: {','.join(parsed.columns)!r} is not allowed beside the schema"
            f" {schema.simpleString()}; give one of the two"
        )
    return DeedbookReader(log.name, series, parsed, schema)


class DeedbookReader(DataSourceReader):
    """Reads logs of one format. Pickled to every task, so without the list of the logs.

    It has no ``pushFilters``: Spark (4.3.0) keeps the filters of one query for others on the same
    DataFrame, so that the union of ``df.where("event < 7")`` and ``df`` has 14 rows.
    """

    def __init__(
        self, log: str, series: Sequence[Series], options: ReadOptions, schema: StructType
    ) -> None:
        self._log = log
        self._series = tuple(series)
        self._options = options
        self._schema = schema
        self._bound = bind(self._format().columns, schema, options)

    def __getstate__(self) -> dict[str, Any]:
        """What a task needs."""
        return {**self.__dict__, "_series": ()}

    def partitions(self) -> list[LogPartition]:
        """Parts of the logs, in order. A snapshot: what is appended later is not read."""
        if self._options.empty:
            return []
        return plan(self._format(), self._series, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches that have the schema exactly, which Spark checks in the first one only."""
        if not isinstance(partition, LogPartition):  # what Spark makes of an empty list of them
            return
        schema = to_arrow_schema(self._schema, timezone="UTC")
        settle()
        for piece in partition.pieces:
            yield from self._read_piece(piece, schema)

    def _read_piece(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        log = self._format()
        constants = log.constants(piece)
        stored = [name for name in self._bound if name not in (CORRUPT_RECORD, *constants)]
        try:
            for item in read_piece(log, piece, stored, self._options):
                if isinstance(item, Damaged):
                    if self._options.mode == "PERMISSIVE":
                        yield self._damage_row(item, piece.path, constants, schema)
                elif item.num_rows > 0:
                    yield self._batch(item, constants, schema)
        except CorruptError as error:
            raise _failfast(error, piece.path) from error

    def _format(self) -> LogFormat:
        return next(log for log in formats() if log.name == self._log)

    def _batch(
        self, batch: pa.RecordBatch, constants: Mapping[str, object], schema: pa.Schema
    ) -> pa.RecordBatch:
        import pyarrow as pa

        arrays: list[Any] = []
        for name, field in zip(self._bound, schema, strict=True):
            if name == CORRUPT_RECORD:
                arrays.append(pa.nulls(batch.num_rows, field.type))
            elif name in constants:
                arrays.append(pa.repeat(pa.scalar(constants[name], field.type), batch.num_rows))
            else:
                array = batch.column(name)
                arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _damage_row(
        self, damaged: Damaged, file: str, constants: Mapping[str, object], schema: pa.Schema
    ) -> pa.RecordBatch:
        import pyarrow as pa

        where = f"bytes {damaged.offset} to {damaged.end}: " if damaged.end > damaged.offset else ""
        known = {
            CORRUPT_RECORD: f"{file}: {where}{damaged.reason}",
            # Where nothing else tells the row from an event, it has no number.
            "event": damaged.event if CORRUPT_RECORD in self._bound else None,
            **constants,
            "offset": damaged.offset,
            "lsn": damaged.offset,
            "length": damaged.end - damaged.offset,
        }
        arrays: list[Any] = [
            pa.array([known.get(name)], field.type)
            for name, field in zip(self._bound, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _detect(options: Mapping[str, str], parsed: ReadOptions) -> tuple[LogFormat, list[Series]]:
    """The format and the logs at the paths; `InvalidArgumentError` where they are of several."""
    candidates = [log for log in formats() if parsed.log in (None, log.name)]

    def expand(path: Path) -> list[tuple[LogFormat, Series]]:
        found = [(log, tuple(map(str, log.expand(path, parsed)))) for log in candidates]
        return [(log, Series(logs)) for log, logs in found if logs]

    found = find_logs(input_paths(options), expand)
    log, first = found[0]
    for other, series in found:
        if other is not log:
            raise InvalidArgumentError(
                f"option log: there are logs of several formats, {log.name} at {first.logs[0]} and"
                f" {other.name} at {series.logs[0]}; say which to read"
            )
    log.refuse(parsed)
    return log, [series for _, series in found]


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
