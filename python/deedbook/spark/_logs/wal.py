"""WAL as a Spark source: partitions are splits between records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql.types import BinaryType, LongType, StringType

from deedbook import Error, NotALogError, OutOfRangeError, Wal
from deedbook.jobs import Split
from deedbook.spark._logs.format import (
    Defaults,
    Place,
    Planned,
    refuse_of_ledgers,
    refuse_of_stores,
)
from deedbook.spark._logs.parts import Piece
from deedbook.spark._logs.steps import Steps
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look
from deedbook.spark._options.schema import Column, on_request

__all__ = ["WAL", "WalFormat"]


class WalFormat(Defaults, Steps):
    """A write-ahead log: a directory of segments, or a file."""

    name = "wal"
    position = "lsn"
    in_sequence = False
    columns: Sequence[Column] = (
        Column(
            "lsn",
            LongType(),
            "Log sequence number: the byte of the log at which the record begins; in a row for"
            " damage, the damage.",
            never_null=("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
        ),
        Column("payload", BinaryType(), "The payload."),
        on_request("path", StringType(), "The log: its directory, or its file."),
        on_request(
            "length",
            LongType(),
            "Bytes of the record with its header; in a row for damage, of the damage.",
        ),
    )

    def refuse(self, options: ReadOptions) -> None:
        """Options of ledgers and event stores."""
        refuse_of_ledgers(self, options)
        refuse_of_stores(self, options)

    def expand(self, path: Path | Look, options: ReadOptions) -> list[Path]:
        """The logs at a path: a directory of segments, a file, or a directory of directories."""
        look = Look.at(path)
        if not look.is_dir:
            return [look.path] if self._is_single(look) else []
        if look.format == self.name:
            return [look.path]
        return [child.path for child in look.children if child.format == self.name]

    def _is_single(self, look: Look) -> bool:
        """Whether a file is a log. Other files fail at the opening."""
        try:
            if look.format != self.name:
                return False
            Wal.open(look.path).close()
        except NotALogError:
            return False
        except Error:
            return True  # a log, and planning reports why it does not open
        return True

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """Cut the log between records, across its segments, with a separate part after damage.

        Raises `deedbook.OutOfRangeError` for a ``start`` or ``end`` inside of a record, and for a
        dropped ``start``, because the reader expects the dropped records.
        """
        with Wal.open(log) as wal:
            if options.start is not None and options.start < wal.head:
                error = OutOfRangeError(
                    f"option start: lsn {options.start} was dropped, {log} begins at {wal.head}"
                )
                error.format, error.path = "wal", str(log)
                raise error
            splits = wal.splits(split_size, options.start, options.end)
        return Planned(str(log), [split for split in splits if _meets(split, options)])

    def open_log(self, log: Path) -> Wal:
        """Open a log for reading."""
        return Wal.open(log)

    def keep(self, log: Path, place: Place, consumer: str) -> None:
        """Set the consumer, from this process that only reads."""
        with self.open_log(log) as wal:
            wal.set_consumer(consumer, int(place["byte"]))

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The path."""
        return {"path": piece.path}


def _meets(split: Split, options: ReadOptions) -> bool:
    """Whether records of a part may lie in the range of the options."""
    start, end = options.start or 0, options.end
    return split.end > start and (end is None or split.offset < end)


WAL = WalFormat()
