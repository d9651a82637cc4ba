"""Book as a Spark source: partitions are splits between deeds, rows are deeds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType

from deedbook import Book, CorruptError, Damage, UnsupportedError
from deedbook.spark._format import Damaged, SplitPartition, batches_and_damage
from deedbook.spark._options import ReadOptions
from deedbook.spark._paths import natural_key
from deedbook.spark._schema import Column, on_request

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BOOK", "BookFormat"]

_LOG = "book.log"
_HEADER_BYTES = 16
_LMDB = "data.mdb"


class LossPartition(InputPartition):
    """Damage found while planning where nothing can be read: a header, deeds cut off."""

    def __init__(self, path: str, offset: int, end: int, reason: str) -> None:
        super().__init__((path, offset, end, reason))

    def damaged(self) -> Damaged:
        """The damage."""
        _, offset, end, reason = self.value
        return Damaged(offset, end, reason)


class BookFormat:
    """Urbit's Book: a directory with ``book.log``."""

    name = "book"
    columns: Sequence[Column] = (
        Column(
            "event",
            LongType(),
            "Event number. Null where damage hid how many events it swallowed.",
            never_null=("FAILFAST",),
        ),
        Column("mug", IntegerType(), "The 32 bits of the mug, as stored."),
        Column("jam", BinaryType(), "The payload."),
        on_request("path", StringType(), "The file, `.../book.log`."),
        on_request(
            "offset",
            LongType(),
            "First byte of the deed in the file; in a row for damage, of the damage.",
        ),
        on_request(
            "length",
            LongType(),
            "Bytes of the deed with its framing; in a row for damage, of the damage.",
        ),
    )

    def expand(self, path: Path) -> list[Path]:
        """The books at a path: a book, its ``book.log``, a pier, or a directory of books.

        A directory of books is read in the order of their names, numbers by value, so the epochs
        ``0iN`` of a pier come in the order of their events. Raises `UnsupportedError` where an
        epoch is still in LMDB, because passing over it would lose its events.
        """
        if path.name == _LOG and not path.is_dir():
            return [path.parent]
        if not path.is_dir():
            return []
        if os.path.lexists(path / _LOG):
            return [path]
        pier = path / ".urb" / "log"
        if pier.is_dir():
            return self.expand(pier)
        children = sorted((child for child in path.iterdir() if child.is_dir()), key=natural_key)
        for child in children:
            if not os.path.lexists(child / _LOG) and (child / _LMDB).exists():
                raise _lmdb(child)
        return [child for child in children if os.path.lexists(child / _LOG)]

    def plan(self, log: Path, options: ReadOptions) -> list[InputPartition]:
        """Cut the book between deeds, leaving out what lies before ``start`` or from ``end`` on.

        What lies after damage is a part of its own, so a read never ends there as if that were
        the end of the book.
        """
        with Book.open(log) as book:
            report, path = book.recovery, book.path
            splits = book.splits(options.split_size, options.start, options.end)
        parts: list[InputPartition] = [
            SplitPartition(split)
            for split in splits
            if _meets(split.ordinal, split.records, options)
        ]
        damage = report.damage if report.verdict == "corrupt" else None
        if damage is not None and damage.offset < _HEADER_BYTES:
            parts.append(LossPartition(path, damage.offset, damage.end, _reason(damage)))
        return parts

    def file(self, partition: InputPartition) -> str:
        """Path of the partition's ``book.log``."""
        if isinstance(partition, LossPartition):
            return os.path.join(partition.value[0], _LOG)
        assert isinstance(partition, SplitPartition)
        return partition.split().path

    def read(
        self, partition: InputPartition, columns: Sequence[str], options: ReadOptions
    ) -> Iterator[pa.RecordBatch | Damaged]:
        """Read the deeds of a partition; see `LogFormat.read`."""
        if isinstance(partition, LossPartition):
            if options.mode == "FAILFAST":
                raise _corrupt(self.file(partition), partition.damaged())
            yield partition.damaged()
            return
        assert isinstance(partition, SplitPartition)
        stream = partition.split().batches(
            start=options.start,
            stop=options.end,
            columns=columns or ("event",),
            batch_rows=options.batch_rows,
            batch_bytes=options.batch_bytes,
            on_corrupt="raise" if options.mode == "FAILFAST" else "skip",
            verify=options.verify,
        )

        def describe(damage: Damage) -> Damaged | None:
            if not _meets(damage.first_lost, damage.records_lost, options):
                return None
            return Damaged(damage.offset, damage.end, _reason(damage))

        yield from batches_and_damage(stream, describe)


def _meets(first_event: int | None, events: int | None, options: ReadOptions) -> bool:
    """Whether events may lie in the range that the options ask for."""
    if first_event is None:
        return True
    if options.end is not None and first_event >= options.end:
        return False
    return options.start is None or events is None or first_event + events > options.start


def _reason(damage: Damage) -> str:
    first, lost = damage.first_lost, damage.records_lost
    if first is None or lost is None:
        return f"{damage.reason} (unknown how many events are lost)"
    return damage.reason if lost <= 1 else f"{damage.reason} (events {first} to {first + lost - 1})"


def _corrupt(file: str, damaged: Damaged) -> CorruptError:
    error = CorruptError(damaged.reason)
    error.format, error.path = "book", file
    error.offset, error.reason = damaged.offset, damaged.reason
    return error


def _lmdb(path: Path) -> UnsupportedError:
    error = UnsupportedError(
        f"{path} holds an epoch in LMDB ({_LMDB}), not a book; migrate it first,"
        " or name the books to read"
    )
    error.path = str(path)
    return error


BOOK = BookFormat()
