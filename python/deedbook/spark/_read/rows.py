"""Rows of a partition, for batch reads and streams, on the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from deedbook import CorruptError
from deedbook.spark._logs.format import Damaged, LogFormat, read_piece
from deedbook.spark._logs.formats import format_named
from deedbook.spark._logs.parts import Archived, LogPartition, Piece
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.schema import CORRUPT_RECORD, bind
from deedbook.spark._worker import settle

if TYPE_CHECKING:
    import pyarrow as pa

    from deedbook.archive import Folder

__all__ = ["Rows"]


class Rows:
    """Reads partitions of logs of a format as batches of a schema. Pickled to every task."""

    def __init__(self, log: str, options: ReadOptions, schema: StructType) -> None:
        self._log = log
        self._options = options
        self._schema = schema
        self._bound = bind(self.format.columns, schema, options)

    @property
    def format(self) -> LogFormat:
        """The logs' format."""
        return format_named(self._log)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches with exactly the schema. Spark checks only the first batch."""
        if not isinstance(partition, LogPartition):  # what Spark makes of an empty list of them
            return
        schema = to_arrow_schema(self._schema, timezone="UTC")
        settle()
        batches = (
            batch
            for piece, wait in _ready(partition.pieces)
            for batch in self._read_piece(piece, wait, schema)
        )
        yield from _joined(batches, self._options.batch_rows, self._options.batch_bytes)

    def _read_piece(
        self, piece: Piece, wait: Callable[[], Folder] | None, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        log, options = self.format, self._options
        constants = log.constants(piece)
        stored = [name for name in self._bound if name not in (CORRUPT_RECORD, *constants)]
        try:
            if isinstance(piece, Archived) and wait is not None:
                from deedbook.spark._logs.archived import read_archived

                items = read_archived(log, piece, wait, stored, options)
            else:
                items = read_piece(log, piece, stored, options)
            for item in items:
                if isinstance(item, Damaged):
                    if options.mode == "PERMISSIVE":
                        yield self._damage_row(item, piece.path, constants, schema)
                elif item.num_rows > 0:
                    yield self._batch(item, constants, schema)
        except CorruptError as error:
            raise _failfast(error, piece.path) from error

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
            # If only the number distinguishes the row from an event, the row has no number.
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


def _ready(
    pieces: Sequence[Piece],
) -> Iterable[tuple[Piece, Callable[[], Folder] | None]]:
    """The pieces in order. The files of an archive come during the reading of the piece before."""
    if not any(isinstance(piece, Archived) for piece in pieces):
        return ((piece, None) for piece in pieces)
    from deedbook.spark._logs.archived import fetched  # needs the extra s3

    return fetched(pieces)


def _joined(
    batches: Iterable[pa.RecordBatch], rows_max: int, bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: consecutive small batches are merged.

    A batch costs the JVM a tenth of a millisecond, noticeable if a task reads many small logs. A
    batch of more than half a limit is not copied.
    """
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        length, weight = batch.num_rows, batch.get_total_buffer_size()
        is_small = 2 * length <= rows_max and 2 * weight <= bytes_max
        if small and not (is_small and rows + length <= rows_max and size + weight <= bytes_max):
            yield from _one(small)
            small, rows, size = [], 0, 0
        if is_small:
            small.append(batch)
            rows, size = rows + length, size + weight
        else:
            yield batch
    yield from _one(small)


def _one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The batches as a single batch, or as several if a column is too long."""
    import pyarrow as pa

    if len(batches) < 2:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _failfast(error: CorruptError, file: str) -> CorruptError:
    where = f"byte {error.offset}: " if error.offset is not None else ""
    wrapped = CorruptError(
        f"{error.path or file}: {where}{error.reason or error};"
        " mode DROPMALFORMED or PERMISSIVE reads on after it"
    )
    wrapped.format, wrapped.path = error.format, error.path or file
    wrapped.offset, wrapped.reason = error.offset, error.reason
    wrapped.next_intact = error.next_intact
    return wrapped
