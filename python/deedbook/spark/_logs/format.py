"""The interface between a log format and the data source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from deedbook import CorruptError, Error, InvalidArgumentError, MissingError
from deedbook.jobs import BatchStream
from deedbook.reports import Damage
from deedbook.spark._logs.parts import Archived, Loss, Piece
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look
from deedbook.spark._options.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Damaged",
    "Defaults",
    "Limits",
    "LogFormat",
    "Place",
    "Planned",
    "Step",
    "not_opened",
    "read_piece",
    "refuse_of_ledgers",
    "refuse_of_stores",
]

_log = logging.getLogger("deedbook")


@dataclass(frozen=True)
class Damaged:
    """A damaged stretch that a read skipped: bytes ``offset`` to before ``end`` of the file."""

    offset: int
    end: int
    reason: str
    event: int | None = None
    """The first event lost there, if known."""


class Planned(NamedTuple):
    """A log at the time of planning."""

    path: str
    pieces: Sequence[Piece]
    """The pieces to read, in order."""
    bounds: tuple[int, int] | None = None
    """The first event and the next event, if both are known."""


Place: TypeAlias = "dict[str, int | str]"
"""The place of a stream in a log, for the checkpoint."""


class Limits(NamedTuple):
    """The limits of a stream's batch."""

    rows: int | None = None
    bytes: int | None = None
    to: Place | None = None


class Step(NamedTuple):
    """How far a stream goes."""

    place: Place
    rows: int
    """Records on the way, if a limit needs the number. Records hidden by damage are not counted."""
    bytes: int
    more: bool = False
    """For logs in sequence: whether the step ended before the log's end, at a limit or at damage.
    """


class LogFormat(Protocol):
    """A log format for the reader. Stateless, and imported on driver and executors."""

    @property
    def name(self) -> str:
        """The value of option ``log``."""

    @property
    def columns(self) -> Sequence[Column]:
        """All columns; ``offset``, ``lsn``, ``length``, constant ones are known for damage, too."""

    @property
    def position(self) -> str:
        """The column of a record's position, also used to count rows for a read without columns."""

    @property
    def in_sequence(self) -> bool:
        """Whether logs at a path may follow one another, for a stream to read in order."""

    def refuse(self, options: ReadOptions) -> None:
        """Raise `InvalidArgumentError` for an option of other formats."""

    def expand(self, path: Path | Look, options: ReadOptions) -> list[Path]:
        """The logs of this format at an existing path, in reading order; none if none."""

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """On the driver: cut a snapshot of a log into pieces of about ``split_size`` bytes."""

    def check(self, logs: Sequence[Planned], options: ReadOptions) -> None:
        """Refuse logs of a directory with a gap in their sequence."""

    def begin(
        self, log: Path, position: str | int, options: ReadOptions, alone: bool = False
    ) -> Place:
        """The place at which a stream of a log begins: ``earliest``, ``latest`` or a number.

        A number outside of the log means the nearest end, or with ``alone``
        `deedbook.OutOfRangeError`.
        """

    def origin(self, place: Place) -> Place:
        """The beginning of a log at the time when a stream without a place came to a place."""

    def advance(self, log: Path, place: Place, limits: Limits, options: ReadOptions) -> Step:
        """How far a stream can go on from a place.

        Raises `deedbook.OutOfRangeError` and `deedbook.NotALogError` if the place is of another
        log.
        """

    def between(
        self, log: Path, start: Place, stop: Place, options: ReadOptions, split_size: int
    ) -> list[Piece]:
        """Cut what lies between two places. Raises as `advance` does."""

    def resume(self, log: Path, place: Place, options: ReadOptions) -> Place:
        """The place at which a stream goes on, if the old place is lost."""

    def was_read(self, log: Path, place: Place, others: Sequence[Path]) -> bool:
        """Whether a missing log was read to its end, by the other logs of the sequence."""

    def keep(self, log: Path, place: Place, consumer: str) -> None:
        """Let a log keep the records after a place for a consumer of this name."""

    def describe(self, damage: Damage, options: ReadOptions) -> Damaged | None:
        """Damage in words; None for damage outside of the read's range."""

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The columns with the same value in all rows of a piece."""

    def limits(self, options: ReadOptions) -> tuple[int | None, int | None]:
        """The filter of ``start`` and ``end`` within a piece."""

    def selection(self, options: ReadOptions) -> Mapping[str, Any]:
        """The format's own arguments of `deedbook.jobs.Split.batches`."""

    def is_gone(
        self, error: MissingError, piece: Piece, options: ReadOptions
    ) -> MissingError | None:
        """The error of a missing piece; None to skip the piece."""


class Defaults:
    """The answers of a format whose logs stand alone, and that knows no consumers."""

    name: ClassVar[str]

    def check(self, logs: Sequence[Planned], options: ReadOptions) -> None:
        """Nothing: no log goes on where another ends."""

    def was_read(self, log: Path, place: Place, others: Sequence[Path]) -> bool:
        """False: no log goes on where another ends."""
        return False

    def keep(self, log: Path, place: Place, consumer: str) -> None:
        """Raises `InvalidArgumentError`, because the format has no consumers."""
        raise InvalidArgumentError(f"option consumer: is for WALs, there is a {self.name}")

    def describe(self, damage: Damage, options: ReadOptions) -> Damaged | None:
        """Damage anywhere in the read."""
        return Damaged(damage.offset, damage.end, damage.reason)

    def limits(self, options: ReadOptions) -> tuple[int | None, int | None]:
        """Both, because each record has its own position."""
        return options.start, options.end

    def selection(self, options: ReadOptions) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def is_gone(
        self, error: MissingError, piece: Piece, options: ReadOptions
    ) -> MissingError | None:
        """The error itself, because a log in use is never removed."""
        return error


def refuse_of_ledgers(log: LogFormat, options: ReadOptions) -> None:
    """Refuse the options that only ledgers have."""
    given = {"base": options.base is not None, "ignoreMissingFiles": options.ignore_missing_files}
    _refuse(log, "ledgers", given)


def refuse_of_stores(log: LogFormat, options: ReadOptions) -> None:
    """Refuse the options that only event stores have."""
    given = {"filter": options.filter is not None, "include": options.include != "live"}
    _refuse(log, "event stores", given)


def _refuse(log: LogFormat, owners: str, given: Mapping[str, bool]) -> None:
    for name, is_given in given.items():
        if is_given:
            raise InvalidArgumentError(f"option {name}: is for {owners}, there is a {log.name}")


def not_opened(path: str, error: Error, options: ReadOptions) -> tuple[Piece, ...]:
    """The pieces to read instead of a log, or a file, that does not open.

    Raises the error in mode FAILFAST, returns a `Loss` in PERMISSIVE, and otherwise only warns.
    """
    if options.mode == "FAILFAST":
        raise error
    if options.mode == "DROPMALFORMED":
        _log.warning("passed over %s, which does not open: %s", path, error)
        return ()
    at = error.offset or 0
    return (Loss(error.path or path, at, at, f"the log does not open: {error}"),)


def read_piece(
    log: LogFormat, piece: Piece, columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch | Damaged]:
    """On an executor: record batches that have ``columns``, and damage passed over.

    ``columns`` names stored columns, never constant columns, and may be empty. Batches without
    columns only need the right number of rows.

    Raises `deedbook.CorruptError` at damage with FAILFAST. In every mode, raises
    `deedbook.NotALogError` for another log than planned, and `deedbook.MissingError` for a missing
    log.
    """
    if isinstance(piece, Loss):
        if options.mode == "FAILFAST":
            error = CorruptError(piece.reason)
            error.format, error.path = log.name, piece.path
            error.offset, error.reason = piece.offset, piece.reason
            raise error
        yield Damaged(piece.offset, piece.end, piece.reason)
        return
    assert not isinstance(piece, Archived), "read_archived reads these"
    start, stop = log.limits(options)
    try:
        stream = piece.batches(
            start=start,
            stop=stop,
            columns=columns or (log.position,),
            batch_rows=options.batch_rows,
            batch_bytes=options.batch_bytes,
            on_corrupt="raise" if options.mode == "FAILFAST" else "skip",
            verify=options.verify,
            **log.selection(options),
        )
    except MissingError as error:
        gone = log.is_gone(error, piece, options)
        if gone is not None:
            raise gone from error
        _log.warning("passed over %s, which was removed since the read was planned", piece.path)
        return
    yield from _batches_and_damage(stream, lambda damage: log.describe(damage, options))


def _batches_and_damage(
    stream: BatchStream, describe: Callable[[Damage], Damaged | None]
) -> Iterator[pa.RecordBatch | Damaged]:
    """The batches of a stream, each after the damage skipped on the way to the batch's end.

    ``describe`` returns None for damage outside of the read's range.
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
