"""The sealed segments of a write-ahead log: every segment that ends at or before the durable end.

The records of a segment begin at LSNs in its bytes; the last one may end in the next segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from deedbook._core import Split, Wal
from deedbook._errors import UnsupportedError
from deedbook.archive._logs.sealed import INDEX_ENTRIES, Sealed, checked
from deedbook.archive._manifest import Piece

_SPLIT_BYTES_MIN: Final = 64 << 10


class _Run(NamedTuple):
    """Consecutive records, with the beginnings in one segment."""

    offset: int
    end: int
    records: int
    last: int | None
    """The last record, if its end may lie in another segment."""


class WalSource:
    """An open log, for an upload."""

    format = "wal"
    is_contiguous = True

    def __init__(self, wal: Wal) -> None:
        if wal.segment_bytes is None:
            raise UnsupportedError(
                f"{wal.path}: a log in a single file has no segments, and only sealed segments go"
                " to an archive"
            )
        self._wal, self._segment_bytes = wal, wal.segment_bytes

    @property
    def facts(self) -> dict[str, Any]:
        """The segment size, the limit of a record, and the first record."""
        wal = self._wal
        return {
            "segment_bytes": self._segment_bytes,
            "record_bytes_max": wal.record_bytes_max,
            "head": wal.head,
        }

    def sealed(self) -> list[Sealed]:
        """The segments before the durable end."""
        size, durable = self._segment_bytes, self._wal.durable_end
        if durable is None:
            raise UnsupportedError(
                f"{self._wal.path}: the log has no mark that says how far it is on stable storage;"
                " open the log for writing first"
            )
        first = self._wal.head // size
        return [
            Sealed(Path(file), Path(file).name, index * size, (index + 1) * size)
            for index, file in enumerate(self._wal.segment_paths, first)
            if (index + 1) * size <= durable
        ]

    def pieces(self, new: list[Sealed], after: Piece | None) -> Iterator[tuple[Sealed, Piece]]:
        """The segments with the checked records. Raises `CorruptError`."""
        border = self._wal.head if after is None else max(after.next, self._wal.head)
        runs = self._runs(border)
        run = next(runs, None)
        for segment in new:
            mine: list[_Run] = []
            while run is not None and run.offset < segment.end:
                mine.append(run)
                border = run.end
                run = next(runs, None)
            yield (
                segment,
                Piece(
                    path=segment.path,
                    begin=segment.begin,
                    end=segment.end,
                    next=border,
                    first=mine[0].offset if mine else None,
                    unfinished=mine[-1].last if mine and border > segment.end else None,
                    records=sum(one.records for one in mine),
                    bytes=self._segment_bytes,
                    sha256="",
                    index=[[one.offset, one.records, one.offset - segment.begin] for one in mine],
                ),
            )

    def hold(self, consumer: str, pieces: list[Piece]) -> None:
        """Let the log keep the last archived segment, and all that is not archived."""
        wal = self._wal
        begun = (piece.first for piece in reversed(pieces) if piece.first is not None)
        lsn = max(next(begun, 0), wal.head)
        if wal.consumers().get(consumer) != lsn:
            wal.set_consumer(consumer, lsn)

    def _runs(self, start: int) -> Iterator[_Run]:
        """The records from ``start`` on, cut at the segments' ends."""
        step = max(self._segment_bytes // INDEX_ENTRIES, _SPLIT_BYTES_MIN)
        for split in self._wal.splits(step, start):
            count = checked(split)
            if split.offset // self._segment_bytes == (split.end - 1) // self._segment_bytes:
                yield _Run(split.offset, split.end, count, None)
            else:
                yield from self._cut(split)

    def _cut(self, split: Split) -> Iterator[_Run]:
        first, last, count = split.offset, split.offset, 0
        for record in self._wal.iter(split.offset, split.end):
            if record.lsn // self._segment_bytes != first // self._segment_bytes:
                yield _Run(first, record.lsn, count, last)
                first, count = record.lsn, 0
            last, count = record.lsn, count + 1
        yield _Run(first, split.end, count, last)
