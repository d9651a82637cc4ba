"""A store for many threads, with events as JSON values or bytes."""

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
    """Any store, shared by threads: the store gets a single call at a time.

    Events are bytes, kept unchanged, or a dict or list, kept as compact JSON in UTF-8. A
    `TransientDB` is a :class:`deedbook.transient.DataStore` itself, so a sender accepts a
    `TransientDB`.
    """

    def __init__(self, store: StoreT) -> None:
        self._store = store
        self._lock = threading.RLock()

    @property
    def store(self) -> StoreT:
        """The store itself."""
        return self._store

    def append(self, data: Buffer | dict[str, Any] | list[Any], /) -> None:
        """Add an event.

        A value that JSON does not know is a TypeError or ValueError. A string is an error, too,
        because a string may mean JSON text or a JSON string: encode strings yourself.
        """
        payload = _payload(data)
        with self._lock:
            self._store.append(payload)

    def append_many(
        self, data: Iterable[Buffer | dict[str, Any] | list[Any]], /, **options: Any
    ) -> None:
        """Add events, in order. ``options`` go to the store: a ledger has ``atomic``."""
        with self._lock:
            self._store.append_many(map(_payload, data), **options)

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """The oldest batches, which stay until `remove`; None if the store is empty."""
        with self._lock:
            return self._store.fetch(count, max_bytes)

    def remove(self, items: Iterable[Any], /) -> None:
        """Remove batches by the ``removable`` of a `fetch`."""
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
        """Close the store, if the store has ``close``."""
        close = getattr(self._store, "close", None)
        if close is not None:
            with self._lock:
                close()

    def __getattr__(self, name: str) -> Any:
        # Further members of a store. None changes the store without a lock of its own.
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
