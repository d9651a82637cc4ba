"""WAL as a Spark source: partitions are splits between records, none longer than a segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StringType

from deedbook import Wal, WalSplit
from deedbook.formats import detect
from deedbook.spark._format import Damaged
from deedbook.spark._options import ReadOptions
from deedbook.spark._paths import natural_key
from deedbook.spark._schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["WAL", "WalFormat", "WalPartition"]


class WalPartition(InputPartition):
    """The numbers of a `deedbook.WalSplit`: all that an executor needs to read it."""

    def __init__(self, split: WalSplit) -> None:
        super().__init__((split.path, split.lsn, split.end, split.records))

    def split(self) -> WalSplit:
        """The split again."""
        return WalSplit(*self.value)


class WalFormat:
    """A write-ahead log: a directory of segments, or one file."""

    name = "wal"
    columns: Sequence[Column] = (
        Column(
            "lsn",
            LongType(),
            "Log sequence number: the byte of the log at which the record begins.",
        ),
        Column("payload", BinaryType(), "The payload."),
        Column(
            "path",
            StringType(),
            "The log: its directory, or its file.",
            default=False,
            never_null=("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
        ),
        Column(
            "length",
            LongType(),
            "Bytes of the record with its header; in a row for damage, of the damage.",
            default=False,
            never_null=("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
        ),
    )

    def expand(self, path: Path) -> list[Path]:
        """The logs at a path: a directory of segments, a file, or a directory of such."""
        if not path.is_dir():
            return [path] if detect(path) == "wal" else []
        if detect(path) == "wal":
            return [path]
        children = sorted((child for child in path.iterdir() if child.is_dir()), key=natural_key)
        return [child for child in children if detect(child) == "wal"]

    def plan(self, log: Path, options: ReadOptions) -> list[InputPartition]:
        """Cut the log between records; what lies behind damage is a part of its own.

        Raises `deedbook.OutOfRangeError` for a ``start`` or ``end`` inside of a record.
        """
        with Wal.open(log) as wal:
            splits = wal.splits(options.split_size, options.start, options.end)
        return [WalPartition(split) for split in splits]

    def file(self, partition: InputPartition) -> str:
        """Path of the log."""
        return str(partition.value[0])

    def read(
        self, partition: InputPartition, columns: Sequence[str], options: ReadOptions
    ) -> Iterator[pa.RecordBatch | Damaged]:
        """Read the records of a partition; see `LogFormat.read`."""
        import pyarrow as pa

        assert isinstance(partition, WalPartition)
        stream = partition.split().batches(
            columns=columns or ("lsn",),
            batch_rows=options.batch_rows,
            batch_bytes=options.batch_bytes,
            on_corrupt="raise" if options.mode == "FAILFAST" else "skip",
            verify=options.verify,
        )
        reported = 0
        while True:
            batch = next(stream, None)
            damages = stream.damages[reported:]
            reported += len(damages)
            for damage in damages:
                yield Damaged(damage.offset, damage.end, damage.reason)
            if batch is None:
                return
            yield pa.record_batch(batch)


WAL = WalFormat()
