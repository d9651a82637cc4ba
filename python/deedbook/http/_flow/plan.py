"""Dividing the records of a batch into requests."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deedbook._errors import InvalidArgumentError
from deedbook.transient import Batch, Envelope, Sealed


@dataclass(frozen=True)
class Limits:
    """The limits of an endpoint for a request; None: no limit."""

    batch_events_max: int | None = None
    """Events in a request."""
    batch_bytes_max: int | None = None
    """Bytes of the body, before compression."""
    event_bytes_max: int | None = None
    """Bytes of an event."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value < 1:
                raise InvalidArgumentError(f"{name} is {value}, not 1 or more")


@dataclass(frozen=True)
class Part:
    """Records ``start`` to before ``stop`` of a batch, for a single request."""

    batch: Batch
    start: int
    stop: int
    reason: str | None = None
    """The reason if the part can never be sent."""

    @property
    def count(self) -> int:
        """The number of records."""
        return self.stop - self.start

    @property
    def id(self) -> str:
        """The batch's id, with the range of a smaller part. Equal for all attempts."""
        if self.count == self.batch.count:
            return self.batch.id
        return f"{self.batch.id}.{self.start}-{self.stop}"

    def halves(self) -> tuple[Part, Part]:
        """The two halves of the part. The same range always has the same halves."""
        middle = (self.start + self.stop + 1) // 2
        return Part(self.batch, self.start, middle), Part(self.batch, middle, self.stop)


def plan(batch: Batch, envelope: Envelope | None, limits: Limits) -> list[Part]:
    """The parts of a batch, in order; together the parts hold each record once.

    Reads the records once if there are limits. `ValueError` if the batch's count is wrong.
    """
    if limits == Limits():
        return [Part(batch, 0, batch.count)] if batch.count else []
    sealed = batch.envelope if envelope is None else envelope.seal()
    # 8 bytes for each record: the sizes, not the payloads.
    sizes = array("Q", map(len, batch.records()))
    if len(sizes) != batch.count:
        raise ValueError(f"{batch!r} gave {len(sizes)} records")
    return list(_parts(batch, sizes, sealed, limits))


def _parts(batch: Batch, sizes: Iterable[int], sealed: Sealed, limits: Limits) -> Iterator[Part]:
    start = held_bytes = 0
    for number, size in enumerate(sizes):
        reason = _too_large(size, sealed, limits)
        count = number - start
        full = count == limits.batch_events_max or (
            limits.batch_bytes_max is not None
            and sealed.length(count + 1, held_bytes + size) > limits.batch_bytes_max
        )
        if count and (full or reason):
            yield Part(batch, start, number)
            start, held_bytes = number, 0
        if reason:
            yield Part(batch, number, number + 1, reason)
            start = number + 1
        else:
            held_bytes += size
    if start < batch.count:
        yield Part(batch, start, batch.count)


def _too_large(size: int, sealed: Sealed, limits: Limits) -> str | None:
    if limits.event_bytes_max is not None and size > limits.event_bytes_max:
        return f"an event of {size} bytes, the endpoint takes {limits.event_bytes_max}"
    body = sealed.length(1, size)
    if limits.batch_bytes_max is not None and body > limits.batch_bytes_max:
        return f"a body of {body} bytes with one event, the endpoint takes {limits.batch_bytes_max}"
    return None
