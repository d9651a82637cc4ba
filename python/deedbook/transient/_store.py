"""What a store of events that wait to be sent gives, whatever keeps them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook.transient._envelope import Sealed


@runtime_checkable
class Batch(Protocol):
    """Events that are sent together: a request body, which any HTTP client reads like a file.

    A body begins at 0, ends after `content_length` bytes, and can be read again after ``seek(0)``,
    always with the same bytes. It is an `io.RawIOBase` without a usable ``fileno``, so that no
    client takes its length from a file. One thread reads it at a time.
    """

    @property
    def id(self) -> str:
        """The batch's name, in printable ASCII without spaces; the same after a restart."""

    @property
    def count(self) -> int:
        """How many records it holds, from 1 up."""

    @property
    def content_length(self) -> int:
        """Bytes of the body, header and footer included; ``len(batch)`` is the same."""

    @property
    def envelope(self) -> Sealed:
        """Header, footer and separator as they are in this body."""

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The payloads of the records from ``start`` to before ``stop`` (default: the end).

        It leaves the body's position alone.
        """

    def stream(self) -> AsyncBody:
        """The body for clients that want an asynchronous iterator, as ``httpx.AsyncClient``."""

    def readinto(self, buffer: Any, /) -> int:
        """Fill ``buffer`` with the next bytes of the body; return how many, 0 at its end."""

    def read(self, size: int = -1, /) -> bytes | None:
        """The next ``size`` bytes of the body or fewer; by default all that is left."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a byte of the body and return it."""

    def tell(self) -> int:
        """The byte of the body that is read next."""

    def close(self) -> None:
        """Release what the batch holds open; it stays in its store."""

    def __len__(self) -> int: ...


class AsyncBody(Protocol):
    """A body that can only be iterated, again from the beginning each time."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...


@dataclass(frozen=True)
class DataResult:
    """What `DataStore.fetch` found: the oldest batches, and what to give to `remove` for each."""

    data: Sequence[Batch]
    """The batches, oldest first."""
    removable: Sequence[Any]
    """For each batch in ``data``, in the same order, what removes it from the store."""
    more: bool = False
    """Whether there are batches that this fetch did not give, by its limits."""


@runtime_checkable
class DataStore(Protocol):
    """Events that wait to be sent, first in, first out.

    A store may be called by several threads at once; `TransientDB` makes one so that is not. A
    store may also have ``stats()`` (a `StoreStats`), ``sync()``, which returns once everything
    appended is on stable storage, ``release(items)``, which gives back what will not be sent now,
    and ``path``, its directory.
    """

    def append(self, data: Buffer, /) -> object:
        """Add one event."""

    def append_many(self, data: Iterable[Buffer], /) -> object:
        """Add events, in their order."""

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """The oldest batches, which stay in the store until they are removed; None if it is empty.

        Events appended later come in later batches. At most ``count`` batches, and no more than
        ``max_bytes`` of payloads in all, but one batch at least.
        """

    def remove(self, items: Iterable[Any], /) -> None:
        """Remove batches by their ``removable``; one that is gone already is no error."""

    def has_data(self) -> bool:
        """Whether any event is in the store."""

    def reset(self) -> None:
        """Remove everything."""


@dataclass(frozen=True)
class StoreStats:
    """What a store holds, and what it did not take or keep."""

    events: int
    """Events in the store."""
    bytes: int
    """Bytes of their payloads."""
    batches: int
    """Batches in which they lie, the one that is being filled included."""
    dropped_events: int = 0
    """Events that made room for newer ones since the store was opened."""
    dropped_bytes: int = 0
    """Bytes of their payloads."""
    rejected_events: int = field(default=0)
    """Events that were refused because the store was full."""

    def to_dict(self) -> dict[str, int]:
        """The values by name."""
        return asdict(self)
