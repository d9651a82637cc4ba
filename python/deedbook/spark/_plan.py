"""Planning on the driver: from logs to Spark partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from deedbook import Error, OutOfRangeError
from deedbook.spark._format import LogFormat, Planned, not_opened
from deedbook.spark._options import ReadOptions
from deedbook.spark._parts import LogPartition, Piece, pack

__all__ = ["Series", "partitions_of", "plan"]

_BLOCK_BYTES = 64 << 10
"""The index knows about one place between records in so many bytes; logs are cut at these."""
_PIECES = 4
"""For ``minPartitions``: so many pieces of a partition's size, which then fit it well."""


class Series(NamedTuple):
    """The logs that one path led to, in reading order."""

    logs: tuple[str, ...]


def plan(log: LogFormat, series: Sequence[Series], options: ReadOptions) -> list[LogPartition]:
    """Cut and pack the logs into partitions of about ``splitSize``, a snapshot of them now.

    At least ``minPartitions`` of them if there is one, as far as the logs can be cut.

    In mode FAILFAST it raises what opening a log raises; in the others such a log is a `Loss`, or
    is passed over with a warning. Raises `deedbook.ContiguityError` as `LogFormat.check` does.
    """
    return partitions_of(lambda size: _pieces(log, series, options, size), options)


def partitions_of(cut: Callable[[int], list[Piece]], options: ReadOptions) -> list[LogPartition]:
    """Pack what ``cut`` gives for a size of pieces, finer if there must be more partitions."""
    pieces = cut(options.split_size)
    packed = pack(pieces, options.split_size)
    least = options.min_partitions or 0
    if len(packed) >= least or not pieces:
        return packed
    size = max(1, sum(piece.end - piece.offset for piece in pieces) // least)
    finer = cut(max(_BLOCK_BYTES, size // _PIECES))
    return pack(finer, size, log_cost=0)


def _pieces(
    log: LogFormat, series: Sequence[Series], options: ReadOptions, split_size: int
) -> list[Piece]:
    pieces: list[Piece] = []
    for one in series:
        planned = list(_open_all(log, one, options, split_size))
        log.check(planned, options)
        pieces += [piece for opened in planned for piece in opened.pieces]
    return pieces


def _open_all(
    log: LogFormat, series: Series, options: ReadOptions, split_size: int
) -> Iterator[Planned]:
    for path in series.logs:
        try:
            yield log.plan(Path(path), options, split_size)
        except OutOfRangeError:
            raise  # of the option start or end
        except Error as error:
            yield Planned(path, not_opened(path, error, options))
