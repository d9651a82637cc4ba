"""Book as a Spark source: partitions are splits between deeds, rows are deeds."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType

from deedbook import Book, ContiguityError, UnsupportedError
from deedbook.reports import Damage
from deedbook.spark._logs.format import (
    Damaged,
    Defaults,
    Place,
    Planned,
    refuse_of_ledgers,
    refuse_of_stores,
)
from deedbook.spark._logs.parts import Loss, Piece
from deedbook.spark._logs.steps import Steps
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look
from deedbook.spark._options.schema import Column, on_request

__all__ = ["BOOK", "BookFormat"]

_LOG = "book.log"
_LMDB = "data.mdb"
_FIRST_BYTES = (16, 8192)
"""Possible places of the first deed: after a header, or after two slots."""


class BookFormat(Defaults, Steps):
    """Urbit's Book: a directory with ``book.log``."""

    name = "book"
    position = "event"
    in_sequence = True
    columns: Sequence[Column] = (
        Column(
            "event",
            LongType(),
            "Event number; in a row for damage the first one that it hides. Null where damage hid"
            " how many events it swallowed.",
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

    def refuse(self, options: ReadOptions) -> None:
        """Options of ledgers and event stores."""
        refuse_of_ledgers(self, options)
        refuse_of_stores(self, options)

    def expand(self, path: Path | Look, options: ReadOptions) -> list[Path]:
        """The books at a path: a book, its ``book.log``, a pier, or a directory of books.

        The books of a directory are in the order of their names, numbers by value, so the epochs
        ``0iN`` of a pier are in the order of their events. Raises `UnsupportedError` if an epoch is
        still in LMDB, because skipping the epoch would lose events.
        """
        look = Look.at(path)
        path = look.path
        if path.name == _LOG and not look.is_dir:
            return [path.parent]
        if not look.is_dir:
            return []
        if os.path.lexists(path / _LOG):
            return [path]
        pier = path / ".urb" / "log"
        if pier.is_dir():
            return self.expand(pier, options)
        books: list[Path] = []
        for child in look.children:
            if os.path.lexists(child.path / _LOG):
                books.append(child.path)
            elif (child.path / _LMDB).exists():
                raise _lmdb(child.path)
        return books

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """Cut the book between deeds, without the deeds before ``start`` or from ``end`` on.

        The bytes after damage are a part of their own, so a read never takes damage for the end of
        the book.
        """
        with Book.open(log) as book:
            splits = book.splits(split_size, options.start, options.end)
            corrupt = book.recovery.verdict == "corrupt"
            bounds = None if corrupt else (book.epoch + 1, book.last + 1)
            pieces: list[Piece] = [
                split for split in splits if _meets(split.ordinal, split.records, options)
            ]
            pieces += _header_loss(book)
        return Planned(str(log), pieces, bounds)

    def open_log(self, log: Path) -> Book:
        """Open a book for reading."""
        return Book.open(log)

    def between(
        self, log: Path, start: Place, stop: Place, options: ReadOptions, split_size: int
    ) -> list[Piece]:
        """The parts between two bookmarks; damage of the header is with the first ones."""
        pieces = super().between(log, start, stop, options, split_size)
        if start["byte"] in _FIRST_BYTES:
            with self.open_log(log) as book:
                if start["byte"] == book.bookmark().offset:
                    pieces += _header_loss(book)
        return pieces

    def was_read(self, log: Path, place: Place, others: Sequence[Path]) -> bool:
        """Whether the events before the next epoch were read; False if unknown.

        A pier drops whole epochs. ``others`` includes dropped epochs: the number of each is the
        last event of the epoch before.
        """
        own, number = _epoch_of(log), place.get("number")
        epochs = [_epoch_of(other) for other in others if other.parent == log.parent]
        if own is None or number is None:
            return False
        later = [epoch for epoch in epochs if epoch is not None and epoch > own]
        # Epoch N begins with event N + 1. If all events before were read, event N + 1 is the next
        # event.
        return bool(later) and int(number) > min(later)

    def check(self, logs: Sequence[Planned], options: ReadOptions) -> None:
        """Refuse epochs that leave a gap or overlap, with both numbers.

        Raises `deedbook.ContiguityError`, in every mode, because a gap is no damage in a file, and
        because nothing decides between two epochs with the same event. An epoch with a damaged or
        unknown end reports the damage itself.
        """
        for before, after in pairwise(log for log in logs if _epoch_of(Path(log.path)) is not None):
            if before.bounds is None or after.bounds is None:
                continue
            (_, wanted), (first, _) = before.bounds, after.bounds
            missing = first > wanted
            low, high = (wanted, first) if missing else (first, wanted)
            if low < high and _meets(low, high - low, options):
                what = "are missing" if missing else "are in both"
                error = ContiguityError(
                    f"{after.path} begins with event {first}, but {before.path} ends with event"
                    f" {wanted - 1}: events {low} to {high - 1} {what}; name the epochs to read"
                    " them as they are"
                )
                error.format, error.path = "book", after.path
                raise error

    def describe(self, damage: Damage, options: ReadOptions) -> Damaged | None:
        """Damage of events in the range of the options."""
        if not _meets(damage.first_lost, damage.records_lost, options):
            return None
        return Damaged(damage.offset, damage.end, _reason(damage), damage.first_lost)

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The path."""
        return {"path": piece.path}


def _epoch_of(path: Path) -> int | None:
    """The last event before an epoch, by the epoch's name; None for other books."""
    named = re.fullmatch(r"0i(0|[1-9][0-9]*)", path.name)
    return None if named is None else int(named[1])


def _meets(first_event: int | None, events: int | None, options: ReadOptions) -> bool:
    """Whether events may lie in the range of the options."""
    if first_event is None:
        return True
    if options.end is not None and first_event >= options.end:
        return False
    return options.start is None or events is None or first_event + events > options.start


def _header_loss(book: Book) -> list[Piece]:
    """Damage of the header, where nothing can be read; the layout gives the length."""
    damage = book.recovery.damage if book.recovery.verdict == "corrupt" else None
    if damage is None or damage.offset >= book.bookmark().offset:
        return []
    return [Loss(os.path.join(book.path, _LOG), damage.offset, damage.end, _reason(damage))]


def _reason(damage: Damage) -> str:
    first, lost = damage.first_lost, damage.records_lost
    if first is None or lost is None:
        return f"{damage.reason} (unknown how many events are lost)"
    return damage.reason if lost <= 1 else f"{damage.reason} (events {first} to {first + lost - 1})"


def _lmdb(path: Path) -> UnsupportedError:
    error = UnsupportedError(
        f"{path} holds an epoch in LMDB ({_LMDB}), not a book; migrate it first ('deedbook"
        " migrate', or 'deedbook spark migrate'), or name the books to read"
    )
    error.path = str(path)
    return error


BOOK = BookFormat()
