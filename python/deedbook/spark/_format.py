"""What a log format gives to the data source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import InputPartition

from deedbook import BatchStream, Damage, Split
from deedbook.spark._options import ReadOptions
from deedbook.spark._schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Damaged", "LogFormat", "SplitPartition", "batches_and_damage"]


class SplitPartition(InputPartition):
    """The values of a `deedbook.Split`: all that an executor needs to read it."""

    def __init__(self, split: Split) -> None:
        super().__init__(split.__getnewargs__())

    def split(self) -> Split:
        """The split again."""
        return Split(*self.value)


@dataclass(frozen=True)
class Damaged:
    """A damaged stretch that a read passed over: bytes ``offset`` to before ``end`` of the file."""

    offset: int
    end: int
    reason: str


class LogFormat(Protocol):
    """A log format as the reader sees it. Stateless, and imported on driver and executors."""

    @property
    def name(self) -> str:
        """The value of option ``log``."""

    @property
    def columns(self) -> Sequence[Column]:
        """All columns; ``path``, ``offset``, ``lsn``, ``length`` are known for damage as well."""

    def expand(self, path: Path) -> list[Path]:
        """The logs of this format at an existing path, in reading order; none if none."""

    def plan(self, log: Path, options: ReadOptions) -> list[InputPartition]:
        """On the driver: cut a log into partitions, a snapshot of what is in it now."""

    def file(self, partition: InputPartition) -> str:
        """The file that a partition reads, for the column ``path`` and for messages."""

    def read(
        self, partition: InputPartition, columns: Sequence[str], options: ReadOptions
    ) -> Iterator[pa.RecordBatch | Damaged]:
        """On an executor: record batches that have ``columns``, and damage passed over.

        ``columns`` names what the format stores, so not ``path``, and may be empty: then batches
        need the right number of rows only. `deedbook.CorruptError` at damage with ``FAILFAST``.
        """


def batches_and_damage(
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
