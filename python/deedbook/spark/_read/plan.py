"""Planning on the driver: from logs to Spark partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from deedbook import Error, OutOfRangeError
from deedbook.spark._logs.format import LogFormat, Planned, not_opened
from deedbook.spark._logs.parts import LogPartition, Piece, pack
from deedbook.spark._options.options import ReadOptions

__all__ = ["Series", "partitions_of", "pieces_of", "plan"]

_BLOCK_BYTES = 64 << 10
"""The index knows about a place between records in so many bytes. Cuts are at these places."""
_PIECES = 4
"""For ``minPartitions``: the number of pieces for a partition, to fill partitions well."""


class Series(NamedTuple):
    """The logs of a path, in reading order."""

    logs: tuple[str, ...]
    is_archive: bool = False
    """Whether the only log is the URL of an archive, or of a catalog of archives."""


def plan(log: LogFormat, series: Sequence[Series], options: ReadOptions) -> list[LogPartition]:
    """Cut and pack a snapshot of the logs into partitions of about ``splitSize``.

    The result has at least ``minPartitions`` partitions, if the logs have enough places to cut.

    A log that does not open raises the error in mode FAILFAST. In other modes, the log is a `Loss`,
    or skipped with a warning. Raises `deedbook.ContiguityError` as `LogFormat.check` does.
    """
    return partitions_of(lambda size: pieces_of(log, series, options, size), options)


def partitions_of(cut: Callable[[int], list[Piece]], options: ReadOptions) -> list[LogPartition]:
    """Pack the pieces of ``cut`` for a size, finer if more partitions are needed."""
    pieces = cut(options.split_size)
    packed = pack(pieces, options.split_size)
    least = options.min_partitions or 0
    if len(packed) >= least or not pieces:
        return packed
    size = max(1, sum(piece.end - piece.offset for piece in pieces) // least)
    finer = cut(max(_BLOCK_BYTES, size // _PIECES))
    return pack(finer, size, log_cost=0)


def pieces_of(
    log: LogFormat, series: Sequence[Series], options: ReadOptions, split_size: int
) -> list[Piece]:
    """The pieces of a snapshot of the logs, in order. Raises as `plan`."""
    pieces: list[Piece] = []
    for one in series:
        if one.is_archive:
            from deedbook.spark._read.archives import pieces_at  # needs the extra s3

            pieces += pieces_at(one.logs[0], log, options, split_size)
            continue
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
