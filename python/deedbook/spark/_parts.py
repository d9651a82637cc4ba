"""What a Spark partition is: a list of pieces of logs, packed to about one size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from pyspark.sql.datasource import InputPartition

from deedbook import Split

__all__ = ["LOG_COST_BYTES", "LogPartition", "Loss", "Piece", "pack"]

LOG_COST_BYTES = 256 << 10
"""What opening a log costs an executor, in bytes that it could have read meanwhile."""


class Loss(NamedTuple):
    """Damage found while planning where nothing can be read: a header, a log that does not open.

    All that is needed to report it is in it, because an executor reads nothing there.
    """

    path: str
    """The file, or the log."""
    offset: int
    end: int
    reason: str


Piece: TypeAlias = "Split | Loss"
"""What an executor reads at one go. Pickled with the partition, so numbers and a path only."""


class LogPartition(InputPartition):
    """Pieces of one or several logs, in reading order."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(tuple(pieces))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces."""
        pieces: tuple[Piece, ...] = self.value
        return pieces


def pack(pieces: Iterable[Piece], size: int, log_cost: int = LOG_COST_BYTES) -> list[LogPartition]:
    """Put pieces together, in order, into partitions of at most ``size`` bytes.

    A larger piece is a partition of its own. A log counts for ``log_cost`` more than its bytes, so
    that a task that opens a thousand tiny logs is not taken for a small one.
    """
    packed: list[list[Piece]] = []
    filled = 0
    for piece in pieces:
        before = packed[-1][-1] if packed else None
        opened = before is not None and before.path == piece.path
        weight = piece.end - piece.offset
        more = weight if opened else weight + log_cost
        if before is not None and filled + more <= size:
            packed[-1].append(piece)
            filled += more
        else:
            packed.append([piece])
            filled = weight + log_cost
    return [LogPartition(part) for part in packed]
