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

from deedbook import EventStore, LostRecordsError, MissingError, NotALogError, OutOfRangeError
from deedbook.jobs import Split
from deedbook.spark._logs.format import (
    Defaults,
    Limits,
    Place,
    Planned,
    Step,
    refuse_of_ledgers,
)
from deedbook.spark._logs.parts import Piece
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look
from deedbook.spark._options.schema import Column, on_request

__all__ = ["NOSTR", "NostrFormat"]

_WHOLE = 2**62
"""Bytes of a part, large enough that each segment is a single part."""


class NostrFormat(Defaults):
    """An event store: a directory with segments of Nostr events."""

    name = "nostr"
    position = "offset"
    in_sequence = False
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
            "1 if it is deleted, 2 if a newer version took its place, 3 for both; plus 64 if names"
            " of its tags are lost. 0 or 64 unless `include` is `all`.",
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

    def expand(self, path: Path | Look, options: ReadOptions) -> list[Path]:
        """The stores at a path: a directory, or a directory of directories."""
        look = Look.at(path)
        if not look.is_dir:
            return []
        if look.format == self.name:
            return [look.path]
        return [child.path for child in look.children if child.format == self.name]

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """Cut each segment at intact events. Needs no lock, and reads a page for each cut."""
        with EventStore.open(log) as store:
            splits = store.splits(split_size)
        return Planned(str(log), [split for split in splits if _is_within(split.path, options)])

    def begin(
        self, log: Path, position: str | int, options: ReadOptions, alone: bool = False
    ) -> Place:
        """Before the first segment, after the last intact event, or before a segment."""
        if isinstance(position, int):
            return {"segment": position, "byte": 0}
        if position == "earliest":
            return {}
        return self.advance(log, {}, Limits(), options).place

    def origin(self, place: Place) -> Place:
        """Before the first segment."""
        return {}

    def advance(self, log: Path, place: Place, limits: Limits, options: ReadOptions) -> Step:
        """To the end of an intact event, because the last segment may end with an unfinished event.

        A compaction puts visible events into segments with higher numbers. If the place's segment
        is gone, the step reads the higher segments. Raises `OutOfRangeError` and `NotALogError` for
        another store, `LostRecordsError` if a segment is missing.
        """
        rows = size = 0
        with EventStore.open(log) as store:
            parts = _parts(store, log, place, _WHOLE)
        for number, part in enumerate(parts):
            segment = _segment_of(part.path)
            assert segment is not None
            goal = None if limits.to is None else _key(limits.to)
            if goal is not None and (segment, part.offset) >= goal:
                break
            left = Limits(
                None if limits.rows is None else limits.rows - rows,
                None if limits.bytes is None else limits.bytes - size,
            )
            is_last = number == len(parts) - 1
            end, taken = _walk(part, left, is_last, one=rows == size == 0)
            if goal is not None and (segment, end) > goal:
                end = goal[1]
            if end == part.offset:
                break
            rows, size = rows + taken, size + end - part.offset
            place = {"segment": segment, "byte": end, "identity": part.identity or ""}
            if end < part.end:
                break
        return Step(place, rows, size)

    def between(
        self, log: Path, start: Place, stop: Place, options: ReadOptions, split_size: int
    ) -> list[Piece]:
        """The parts between two places. Events that a compaction moved meanwhile come later."""
        goal = _key(stop)
        with EventStore.open(log) as store:
            parts = _parts(store, log, start, split_size)
        pieces: list[Piece] = []
        for part in parts:
            segment = _segment_of(part.path) or 0
            if (segment, part.offset) < goal:
                end = part.end if segment < goal[0] else min(part.end, goal[1])
                pieces.append(_within(part, part.offset, end))
        return pieces

    def resume(self, log: Path, place: Place, options: ReadOptions) -> Place:
        """Before the first segment: the events of another store."""
        return {}

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The path and the segment's number, from the name."""
        return {"path": piece.path, "segment": _segment_of(piece.path)}

    def limits(self, options: ReadOptions) -> tuple[int | None, int | None]:
        """None: ``start`` and ``end`` are numbers of segments, used by planning."""
        return None, None

    def selection(self, options: ReadOptions) -> Mapping[str, Any]:
        """The choice of events to read."""
        return {"include": options.include, "filter": options.filter}

    def is_gone(self, error: MissingError, piece: Piece, options: ReadOptions) -> MissingError:
        """The error that names the missing segment."""
        gone = MissingError(
            error.errno,
            "the segment was removed since the query was planned, as a compaction does once its"
            " events are in another one; load again",
            piece.path,
        )
        gone.format, gone.path = self.name, piece.path
        return gone


def _key(place: Place) -> tuple[int, int]:
    return int(place.get("segment", -1)), int(place.get("byte", 0))


def _within(part: Split, offset: int, end: int) -> Split:
    """A part of a part. Both ends lie between events."""
    identity = part.identity
    return Split("nostr", part.path, None, None, offset, end, identity=identity)


def _parts(store: EventStore, log: Path, place: Place, split_size: int) -> list[Split]:
    """The events of a store after a place, cut into parts."""
    segment, byte = _key(place)
    all_parts = store.splits(split_size)
    of_place = [part for part in all_parts if _segment_of(part.path) == segment]
    # A segment without events has no part. A compaction of deleted events leaves an empty segment.
    segments = [number for number, _ in store.segments]
    last = max(segments, default=-1)
    end = of_place[-1].end if of_place else 0
    if last < segment or (segment in segments and end < byte):
        error = OutOfRangeError(
            f"the store was read up to byte {byte} of segment {segment}, and goes only up to"
            f" byte {end} of it now"
            if segment in segments
            else f"the store was read up to segment {segment}, and has segments up to {last} now"
        )
        error.format, error.path = "nostr", str(log)
        raise error
    identity = place.get("identity")
    if of_place and identity and of_place[0].identity != identity:
        other = NotALogError(
            f"another store than the one that was read up to byte {byte} of segment {segment}: that"
            f" segment had {identity} (header and first event by byte and checksum), here is"
            f" {of_place[0].identity}"
        )
        other.format, other.path = "nostr", str(log)
        raise other
    parts: list[Split] = []
    for part in all_parts:
        number = _segment_of(part.path) or 0
        if number > segment:
            parts.append(part)
        elif number == segment and part.end > byte:
            parts.append(_within(part, max(part.offset, byte), part.end))
    _refuse_missing(log, {part.path for part in parts if not os.path.exists(part.path)})
    return parts


def _refuse_missing(log: Path, paths: set[str]) -> None:
    """Raises `LostRecordsError` if the store still names one of these segments.

    Otherwise a stream would end before the segment, without an error. After a compaction, the store
    no longer names the old segments.
    """
    if not paths:
        return
    with EventStore.open(log) as store:
        lost = sorted(paths & {part.path for part in store.splits()})
    if lost:
        error = LostRecordsError(
            f"segment {_segment_of(lost[0])} is missing, and its events with it"
        )
        error.format, error.path = "nostr", lost[0]
        raise error


def _walk(part: Split, limits: Limits, is_last: bool, one: bool) -> tuple[int, int]:
    """The end of a step through a part of a segment, and the number of events in the step.

    The step stays within the limits, but with ``one`` has at least an event.
    """
    if limits.rows is None and limits.bytes is None and not is_last:
        return part.end, 0
    import pyarrow as pa

    end, rows = part.offset, 0
    columns = ["offset", "length"]
    for batch in part.batches(columns=columns, on_corrupt="skip", include="all", verify="none"):
        table = pa.record_batch(batch)
        for offset, length in zip(*(column.to_pylist() for column in table.columns), strict=True):
            is_over = limits.rows is not None and rows >= limits.rows
            is_over = is_over or (
                limits.bytes is not None and offset + length - part.offset > limits.bytes
            )
            if is_over and not (one and rows == 0):
                return end, rows
            end, rows = offset + length, rows + 1
    return (end if is_last else part.end), rows


def _segment_of(path: str) -> int | None:
    """The number in ``data.N.seg``; None for a store that does not open."""
    number = os.path.basename(path).removeprefix("data.").removesuffix(".seg")
    return int(number) if number.isdecimal() else None


def _is_within(path: str, options: ReadOptions) -> bool:
    segment = _segment_of(path) or 0
    return segment >= (options.start or 0) and (options.end is None or segment < options.end)


NOSTR = NostrFormat()
