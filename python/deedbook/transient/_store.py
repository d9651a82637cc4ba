"""The interface of a store of events that wait to be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook.transient._envelope import Sealed


@runtime_checkable
class Batch(Protocol):
    """Events to send together: a request body that any HTTP client reads like a file.

    A body begins at 0, ends after `content_length` bytes, and gives the same bytes again after
    ``seek(0)``. A body is an `io.RawIOBase` without a usable ``fileno``, because a client would
    take the length from the file. Only a single thread may read a body at a time.
    """

    @property
    def id(self) -> str:
        """The batch's name, in printable ASCII without spaces; the same after a restart."""

    @property
    def count(self) -> int:
        """The number of records, from 1 up."""

    @property
    def content_length(self) -> int:
        """Bytes of the body, header and footer included; ``len(batch)`` is the same."""

    @property
    def envelope(self) -> Sealed:
        """The body's header, footer and separator."""

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The payloads of the records from ``start`` to before ``stop`` (default: the end).

        The body's position stays.
        """

    def stream(self) -> AsyncBody:
        """The body for clients with asynchronous iterators, such as ``httpx.AsyncClient``."""

    def readinto(self, buffer: Any, /) -> int:
        """Fill ``buffer`` with the next bytes of the body; return the number, 0 at the end."""

    def read(self, size: int = -1, /) -> bytes | None:
        """The next ``size`` bytes of the body or fewer; by default all remaining bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a position in the body and return the position."""

    def tell(self) -> int:
        """The position of the next byte to read."""

    def close(self) -> None:
        """Release the batch's open files. The batch stays in the store."""

    def __len__(self) -> int: ...


class AsyncBody(Protocol):
    """A body for iteration only. Each iteration begins at the beginning."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True)
class DataResult:
    """The result of `DataStore.fetch`: the oldest batches, each with a token for `remove`."""

    data: Sequence[Batch]
    """The batches, oldest first."""
    removable: Sequence[Any]
    """The token for `remove` of each batch in ``data``, in the same order."""
    more: bool = False
    """Whether the limits of this fetch left out batches."""


@runtime_checkable
class DataStore(Protocol):
    """Events that wait to be sent, first in, first out.

    Several threads may call a store at once; `TransientDB` adds the lock to a store without a lock.
    A store may also have ``stats()`` (a `StoreStats`), ``sync()``, which returns once all appended
    events are on stable storage, ``release(items)``, which gives unsent batches back, and ``path``,
    a directory.
    """

    def append(self, data: Buffer, /) -> object:
        """Add an event. A full store raises `deedbook.IoError` with errno EDQUOT."""

    def append_many(self, data: Iterable[Buffer], /) -> object:
        """Add events, in order."""

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """The oldest batches, which stay in the store until `remove`; None if the store is empty.

        Events appended later come in later batches. At most ``count`` batches and ``max_bytes`` of
        payloads in all, but at least a batch.
        """

    def remove(self, items: Iterable[Any], /) -> None:
        """Remove batches by their ``removable``; a batch already removed is no error."""

    def has_data(self) -> bool:
        """Whether any event is in the store."""

    def reset(self) -> None:
        """Remove everything."""


@dataclass(frozen=True)
class StoreStats:
    """Counts of a store: events held, dropped and refused."""

    events: int
    """Events in the store."""
    bytes: int
    """Bytes of the payloads."""
    batches: int
    """Batches in the store, the unfinished batch included."""
    dropped_events: int = 0
    """Events dropped for newer events since the opening of the store."""
    dropped_bytes: int = 0
    """Bytes of the payloads."""
    rejected_events: int = field(default=0)
    """Events refused because the store was full."""

    def to_dict(self) -> dict[str, int]:
        """The values by name."""
        return asdict(self)
