"""In a task: record batches into a staged file."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from deedbook import ContiguityError, InvalidArgumentError
from deedbook.jobs import StagedPart, Transactions
from deedbook.spark._write.sinks import Sink

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["stage"]

_UNNUMBERED: Final = 1 << 31
"""From here on, the number of a partition is a name: the order is the driver's."""


def stage(
    transactions: Transactions,
    batches: Iterator[pa.RecordBatch],
    job: str,
    sink: Sink,
    columns: Mapping[str, int],
) -> list[StagedPart]:
    """Stage the records of a task; returns nothing where there are none."""
    filled = (batch for batch in batches if batch.num_rows > 0)
    head = next(filled, None)
    if head is None:
        return []
    numbers = _Numbers(sink.numbered, columns)
    first = numbers.check(head)
    with transactions.stage(job, *_task(), first) as file:
        file.extend(_named(head, sink, columns))
        for batch in filled:
            numbers.check(batch)
            file.extend(_named(batch, sink, columns))
        return file.finish()


def _task() -> tuple[int, int]:
    """The task's partition and attempt.

    A task of Sail knows no partition, and takes a random number. The driver gets the messages in
    the order of the partitions, and commits in the order of the messages.
    """
    context = TaskContext.get()
    if context is None:
        return _UNNUMBERED | secrets.randbits(31), secrets.randbits(62)
    return context.partitionId(), context.taskAttemptId()


def _named(batch: pa.RecordBatch, sink: Sink, columns: Mapping[str, int]) -> pa.RecordBatch:
    """The columns under the names that the core knows."""
    import pyarrow as pa

    places = {name: place for name, place in columns.items() if name != sink.numbered}
    arrays = [batch.column(place) for place in places.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(places))


class _Numbers:
    """Checks that a column goes up by 1. The commit compares its begin with the log."""

    def __init__(self, name: str | None, columns: Mapping[str, int]) -> None:
        self._name = name
        self._place = None if name is None else columns.get(name)
        self._next: int | None = None

    def check(self, batch: pa.RecordBatch) -> int | None:
        """The first number of a batch, if there is such a column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._place is None:
            return None
        numbers: Any = batch.column(self._place)
        if numbers.null_count:
            raise InvalidArgumentError(f"column {self._name}: null; leave the column out")
        first = int(numbers[0].as_py())
        if self._next is not None and first != self._next:
            raise ContiguityError(
                f"column {self._name}: {first} after {self._next - 1} in one partition; records are"
                " written in the DataFrame's order, without a gap"
            )
        steps = pc.pairwise_diff(numbers)
        wrong = pc.index(
            pc.fill_null(pc.not_equal(steps, pa.scalar(1, steps.type)), False), True
        ).as_py()
        if wrong >= 0:
            raise ContiguityError(
                f"column {self._name}: {numbers[wrong].as_py()} after {numbers[wrong - 1].as_py()}"
                " in one partition; records are written in the DataFrame's order, without a gap"
            )
        self._next = first + len(numbers)
        return first
