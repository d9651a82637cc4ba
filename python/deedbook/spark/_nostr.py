"""Event store as a Spark source: partitions are parts of segments, rows are Nostr events."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from deedbook import Damage, EventStore, MissingError
from deedbook.formats import detect
from deedbook.spark._format import Damaged, Planned, refuse_of_ledgers
from deedbook.spark._options import ReadOptions
from deedbook.spark._parts import Piece
from deedbook.spark._paths import natural_key
from deedbook.spark._schema import Column, on_request

__all__ = ["NOSTR", "NostrFormat"]


class NostrFormat:
    """An event store: a directory with segments of Nostr events."""

    name = "nostr"
    position = "offset"
    columns: Sequence[Column] = (
        Column("id", BinaryType(), "Id, 32 bytes."),
        Column("pubkey", BinaryType(), "Public key of the author, 32 bytes."),
        Column("created_at", TimestampType(), "When it was created, to the second."),
        Column("kind", IntegerType(), "Kind, 0 to 65,535."),
        Column("tags", ArrayType(ArrayType(StringType())), "Tags, the name of each first."),
        Column("content", StringType(), "Content."),
        Column("sig", BinaryType(), "Signature of the id, 64 bytes."),
        Column(
            "flags",
            IntegerType(),
            "1 if it is deleted, 2 if a newer version took its place, 3 for both. 0 unless"
            " `include` is `all`.",
        ),
        on_request("path", StringType(), "The segment's file."),
        on_request("segment", LongType(), "Number of the segment."),
        on_request(
            "offset",
            LongType(),
            "First byte of the event in the segment; in a row for damage, of the damage.",
        ),
        on_request(
            "length",
            LongType(),
            "Bytes of the event's pages; in a row for damage, of the damage.",
        ),
    )

    def refuse(self, options: ReadOptions) -> None:
        """Options of ledgers."""
        refuse_of_ledgers(self, options)

    def expand(self, path: Path, options: ReadOptions) -> list[Path]:
        """The stores at a path: a directory, or a directory of directories."""
        if not path.is_dir():
            return []
        if detect(path) == self.name:
            return [path]
        children = sorted((child for child in path.iterdir() if child.is_dir()), key=natural_key)
        return [child for child in children if detect(child) == self.name]

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """Cut each segment at intact events. Needs no lock, and reads one page for each cut."""
        with EventStore.open(log) as store:
            splits = store.splits(split_size)
        return Planned(str(log), [split for split in splits if _is_within(split.path, options)])

    def check(self, logs: Sequence[Planned], options: ReadOptions) -> None:
        """Nothing: no store goes on where another ends."""

    def describe(self, damage: Damage, options: ReadOptions) -> Damaged | None:
        """Damage, wherever the read met it."""
        return Damaged(damage.offset, damage.end, damage.reason)

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The path and the segment's number, which its name has."""
        return {"path": piece.path, "segment": _segment_of(piece.path)}

    def limits(self, options: ReadOptions) -> tuple[int | None, int | None]:
        """None: ``start`` and ``end`` are numbers of segments, and planning goes by them."""
        return None, None

    def selection(self, options: ReadOptions) -> Mapping[str, Any]:
        """Which events are read."""
        return {"include": options.include, "filter": options.filter}

    def is_gone(self, error: MissingError, piece: Piece, options: ReadOptions) -> MissingError:
        """Which segment it was."""
        gone = MissingError(
            error.errno,
            "the segment was removed since the query was planned, as a compaction does once its"
            " events are in another one; load again",
            piece.path,
        )
        gone.format, gone.path = self.name, piece.path
        return gone


def _segment_of(path: str) -> int | None:
    """The number in ``data.N.seg``; None for a store that does not open."""
    number = os.path.basename(path).removeprefix("data.").removesuffix(".seg")
    return int(number) if number.isdecimal() else None


def _is_within(path: str, options: ReadOptions) -> bool:
    segment = _segment_of(path) or 0
    return segment >= (options.start or 0) and (options.end is None or segment < options.end)


NOSTR = NostrFormat()
