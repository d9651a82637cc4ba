"""What a log format gives to the data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from deedbook import BatchStream, CorruptError, Damage
from deedbook.spark._options import ReadOptions
from deedbook.spark._parts import Loss, Piece
from deedbook.spark._schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Damaged", "LogFormat", "Planned", "read_piece"]


@dataclass(frozen=True)
class Damaged:
    """A damaged stretch that a read passed over: bytes ``offset`` to before ``end`` of the file."""

    offset: int
    end: int
    reason: str
    event: int | None = None
    """The first event lost there, where it is known."""


class Planned(NamedTuple):
    """A log as planning found it."""

    path: str
    pieces: Sequence[Piece]
    """What is to be read of it, in order."""
    bounds: tuple[int, int] | None = None
    """Its first event and the one to come, where both are known."""


class LogFormat(Protocol):
    """A log format as the reader sees it. Stateless, and imported on driver and executors."""

    @property
    def name(self) -> str:
        """The value of option ``log``."""

    @property
    def columns(self) -> Sequence[Column]:
        """All columns; ``path``, ``offset``, ``lsn``, ``length`` are known for damage as well."""

    @property
    def position(self) -> str:
        """The column of a record's position: it counts the rows where no column is asked for."""

    def expand(self, path: Path) -> list[Path]:
        """The logs of this format at an existing path, in reading order; none if none."""

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """On the driver: cut a log into pieces of about ``split_size`` bytes, as it is now."""

    def check(self, logs: Sequence[Planned], options: ReadOptions) -> None:
        """Refuse logs of one directory that should follow one another and do not."""

    def describe(self, damage: Damage, options: ReadOptions) -> Damaged | None:
        """Damage in words; None for damage that the read did not ask for."""


def read_piece(
    log: LogFormat, piece: Piece, columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch | Damaged]:
    """On an executor: record batches that have ``columns``, and damage passed over.

    ``columns`` names what the format stores, so not ``path``, and may be empty: then batches
    need the right number of rows only.

    Raises `deedbook.CorruptError` at damage with FAILFAST, and `deedbook.NotALogError` for another
    log than the one that was planned, whatever the mode.
    """
    if isinstance(piece, Loss):
        if options.mode == "FAILFAST":
            error = CorruptError(piece.reason)
            error.format, error.path = log.name, piece.path
            error.offset, error.reason = piece.offset, piece.reason
            raise error
        yield Damaged(piece.offset, piece.end, piece.reason)
        return
    stream = piece.batches(
        start=options.start,
        stop=options.end,
        columns=columns or (log.position,),
        batch_rows=options.batch_rows,
        batch_bytes=options.batch_bytes,
        on_corrupt="raise" if options.mode == "FAILFAST" else "skip",
        verify=options.verify,
    )
    yield from _batches_and_damage(stream, lambda damage: log.describe(damage, options))


def _batches_and_damage(
    stream: BatchStream, describe: Callable[[Damage], Damaged | None]
) -> Iterator[pa.RecordBatch | Damaged]:
    """The batches of a stream, each after the damage passed over on the way to its end.

    ``describe`` gives None for damage that the read did not ask for.
    """
    import pyarrow as pa

    reported = 0
    while True:
        batch = next(stream, None)
        damages = stream.damages[reported:]
        reported += len(damages)
        for damage in damages:
            described = describe(damage)
            if described is not None:
                yield described
        if batch is None:
            return
        yield pa.record_batch(batch)
