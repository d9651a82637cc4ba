"""One store for many threads, with events as JSON values or bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from deedbook.transient._store import DataResult, DataStore

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

StoreT = TypeVar("StoreT", bound=DataStore)

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class TransientDB(Generic[StoreT]):
    """A store that threads share, whatever the store: one call of it at a time.

    Events are bytes, taken as they are, or a dict or list, kept as compact JSON in UTF-8. A
    `TransientDB` is a :class:`deedbook.transient.DataStore` itself, so that a sender takes it.
    """

    def __init__(self, store: StoreT) -> None:
        self._store = store
        self._lock = threading.RLock()

    @property
    def store(self) -> StoreT:
        """The store itself."""
        return self._store

    def append(self, data: Buffer | dict[str, Any] | list[Any], /) -> None:
        """Add one event.

        A value that JSON does not know is a TypeError or ValueError, and so is a string, which
        might be meant as JSON text or as a JSON string: encode it.
        """
        payload = _payload(data)
        with self._lock:
            self._store.append(payload)

    def append_many(
        self, data: Iterable[Buffer | dict[str, Any] | list[Any]], /, **options: Any
    ) -> None:
        """Add events, in their order; ``options`` as the store's own: ``atomic`` of a ledger."""
        with self._lock:
            self._store.append_many(map(_payload, data), **options)

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """The oldest batches, which stay until they are removed; None if the store is empty."""
        with self._lock:
            return self._store.fetch(count, max_bytes)

    def remove(self, items: Iterable[Any], /) -> None:
        """Remove batches by what `fetch` gave as ``removable``."""
        with self._lock:
            self._store.remove(items)

    def has_data(self) -> bool:
        """Whether any event is in the store."""
        with self._lock:
            return self._store.has_data()

    def reset(self) -> None:
        """Remove everything."""
        with self._lock:
            self._store.reset()

    def close(self) -> None:
        """Close the store, if it can be closed."""
        close = getattr(self._store, "close", None)
        if close is not None:
            with self._lock:
                close()

    def __getattr__(self, name: str) -> Any:
        # What a store may have besides: they do not change it, or lock by themselves.
        if name in ("base", "path", "release", "stats", "sync"):
            return getattr(self._store, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TransientDB({self._store!r})"


def _payload(data: Buffer | dict[str, Any] | list[Any]) -> Buffer:
    if isinstance(data, dict | list):
        return _encode(data).encode()
    if isinstance(data, str):
        raise TypeError("an event is bytes, a dict or a list; encode a string first")
    return data
