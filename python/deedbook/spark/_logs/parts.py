"""Spark partitions: lists of pieces of logs, packed to about the same size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pyspark.sql.datasource import InputPartition

from deedbook.jobs import Split

if TYPE_CHECKING:
    from deedbook.archive import Manifest, Window

__all__ = ["LOG_COST_BYTES", "Archived", "LogPartition", "Loss", "Piece", "group", "pack"]

LOG_COST_BYTES = 256 << 10
"""The cost of opening a log on an executor, in bytes that could be read meanwhile."""


class Loss(NamedTuple):
    """Damage found while planning where nothing can be read: a header, a log that does not open.

    The loss has all facts for the report, because an executor reads nothing there.
    """

    path: str
    """The file, or the log."""
    offset: int
    end: int
    reason: str


class Archived(NamedTuple):
    """A window of an archive. An executor fetches the bytes, and reads them as a log."""

    root: str
    """The URL of the catalog, or of the archive alone; all pieces below share the connections."""
    log: str
    """The archive below the root; empty for the root itself."""
    manifest: Manifest
    """The archive without the pieces."""
    window: Window
    start: int | None
    """The limits of a read within the window; None for a ledger."""
    stop: int | None

    @property
    def url(self) -> str:
        """The URL of the archive."""
        return f"{self.root}/{self.log}" if self.log else self.root

    @property
    def path(self) -> str:
        """The column ``path``: the file, or of a WAL the archive."""
        is_wal = self.manifest.format == "wal"
        return self.url if is_wal else f"{self.url}/{self.window.pieces[0].path}"

    @property
    def offset(self) -> int:
        """With ``end``, the bytes to fetch."""
        return 0

    @property
    def end(self) -> int:
        """The bytes to fetch."""
        return self.window.bytes


Piece: TypeAlias = "Split | Loss | Archived"
"""A piece for an executor to read. Pickled with the partition, so only numbers and a path."""


Item = TypeVar("Item")


class LogPartition(InputPartition):
    """Pieces of logs, in reading order."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(tuple(pieces))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces."""
        pieces: tuple[Piece, ...] = self.value
        return pieces


def pack(pieces: Iterable[Piece], size: int, log_cost: int = LOG_COST_BYTES) -> list[LogPartition]:
    """Put pieces together, in order, into partitions of about ``size`` bytes.

    A larger piece is a partition of its own. At most two partitions more than the bytes need are
    made: if many pieces nearly fill a partition, some partitions are longer. A log counts for
    ``log_cost`` more than its bytes, because a task that opens a thousand tiny logs is not small.
    The files of a ledger count as a single log.
    """
    return [LogPartition(part) for part in group(pieces, size, log_cost, _measure)]


def group(
    items: Iterable[Item],
    size: int,
    log_cost: int,
    measure: Callable[[Item], tuple[str, int]],
) -> list[list[Item]]:
    """Pack readers of logs as `pack` does; ``measure`` returns the log and the bytes."""
    packed: list[list[Item]] = []
    filled, total, before = 0, -log_cost, None  # one log costs nothing: it must be opened
    for item in items:
        log, weight = measure(item)
        more = weight if log == before else weight + log_cost
        total += more
        if packed and (filled + more <= size or len(packed) - 1 > total / size):
            packed[-1].append(item)
            filled += more
        else:
            packed.append([item])
            filled = weight + log_cost
        before = log
    return packed


def _measure(piece: Piece) -> tuple[str, int]:
    is_of_ledger = isinstance(piece, Split) and piece.format == "ledger"
    log = os.path.dirname(piece.path) if is_of_ledger else piece.path
    return log, piece.end - piece.offset
