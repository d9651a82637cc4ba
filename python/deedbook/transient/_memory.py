"""A store in memory, for tests and for events that may end with the process."""

from __future__ import annotations

import errno
import threading
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from deedbook._errors import Error, InvalidArgumentError, IoError, TooLargeError
from deedbook.transient._body import BatchBody
from deedbook.transient._envelope import Envelope, Text
from deedbook.transient._store import DataResult, StoreStats

if TYPE_CHECKING:
    from typing_extensions import Buffer


class MemoryStore:
    """Events in memory: a :class:`deedbook.transient.DataStore`, empty after a crash.

    ``header``, ``footer`` and ``separator`` make the body of a batch; by default a JSON array. A
    batch ends at ``batch_bytes`` of payloads, at ``batch_records`` events, and at a fetch.
    ``max_bytes`` bounds the payloads in the store. A full store refuses an append (`IoError` with
    errno EDQUOT, as `deedbook.Ledger` does), or with ``on_full="drop_oldest"`` drops the oldest
    batches; `stats` counts both. Threads may share a store.
    """

    def __init__(
        self,
        *,
        header: Text = b"[",
        footer: Text = b"]",
        separator: bytes = b",",
        batch_bytes: int = 475_000,
        batch_records: int | None = None,
        record_bytes_max: int = 1 << 20,
        max_bytes: int | None = None,
        on_full: Literal["reject", "drop_oldest"] = "reject",
    ) -> None:
        for name, value in (
            ("batch_bytes", batch_bytes),
            ("batch_records", batch_records),
            ("record_bytes_max", record_bytes_max),
            ("max_bytes", max_bytes),
        ):
            if value is not None and value < 1:
                raise InvalidArgumentError(f"{name} is {value}, not 1 or more")
        if on_full not in ("reject", "drop_oldest"):
            raise InvalidArgumentError(f"on_full is {on_full!r}, not 'reject' or 'drop_oldest'")
        self._envelope = Envelope(header, footer, separator)
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._record_bytes_max = record_bytes_max
        self._max_bytes = max_bytes
        self._drops = on_full == "drop_oldest"
        self._lock = threading.Lock()
        self._batches: dict[str, _Records] = {}
        self._active: _Records | None = None
        self._bytes = 0
        self._dropped_events = self._dropped_bytes = self._rejected = 0

    def append(self, data: Buffer, /) -> None:
        """Add an event: at least one byte, in any object with a buffer.

        `TooLargeError` if the event is longer than ``record_bytes_max`` or ``max_bytes``; `IoError`
        with errno EDQUOT if the store is full.
        """
        payload = self._checked(data)
        with self._lock:
            self._append(payload)

    def append_many(self, data: Iterable[Buffer], /) -> None:
        """Add events. If the store refuses an event, the events before are in the store."""
        for payload in data:
            self.append(payload)

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """The oldest batches: at most ``count`` and ``max_bytes`` of payloads, at least a batch."""
        with self._lock:
            self._active = None
            chosen: list[tuple[str, _Records]] = []
            size = 0
            for id, records in self._batches.items():
                size += records.bytes
                full = max_bytes is not None and size > max_bytes and chosen
                if full or (count is not None and len(chosen) >= count):
                    break
                chosen.append((id, records))
        if not chosen:
            return None
        data = [
            BatchBody(id, records, len(records.items), records.bytes, self._envelope.seal())
            for id, records in chosen
        ]
        return DataResult(data, [id for id, _ in chosen])

    def remove(self, items: Iterable[str], /) -> None:
        """Remove batches by their ``removable``; unknown ones are no error."""
        with self._lock:
            for id in items:
                self._drop(id)

    def has_data(self) -> bool:
        """Whether any event is in the store."""
        with self._lock:
            return bool(self._batches)

    def reset(self) -> None:
        """Remove everything; the counters of dropped events stay."""
        with self._lock:
            self._batches.clear()
            self._active, self._bytes = None, 0

    def stats(self) -> StoreStats:
        """Counts of the held, dropped and refused events."""
        with self._lock:
            events = sum(len(records.items) for records in self._batches.values())
            return StoreStats(
                events,
                self._bytes,
                len(self._batches),
                self._dropped_events,
                self._dropped_bytes,
                self._rejected,
            )

    def __repr__(self) -> str:
        stats = self.stats()
        return f"<MemoryStore of {stats.events} events, {stats.bytes} bytes>"

    def _checked(self, data: Buffer) -> bytes:
        payload = data if type(data) is bytes else bytes(memoryview(data))
        if not payload:
            raise InvalidArgumentError("an event has at least one byte")
        if len(payload) > self._record_bytes_max:
            raise TooLargeError(
                f"an event of {len(payload)} bytes, at most {self._record_bytes_max} are allowed"
            )
        return payload

    def _append(self, payload: bytes) -> None:
        self._make_room(len(payload))
        active = self._active
        if active is None:
            self._active = active = self._batches[uuid.uuid4().hex] = _Records()
        active.items.append(payload)
        active.bytes += len(payload)
        self._bytes += len(payload)
        if active.bytes >= self._batch_bytes or len(active.items) == self._batch_records:
            self._active = None

    def _make_room(self, size: int) -> None:
        limit = self._max_bytes
        if limit is None or self._bytes + size <= limit:
            return
        if size > limit or not self._drops:
            self._rejected += 1
            raise self._refusal(size, limit)
        while self._bytes + size > limit:
            oldest = next(iter(self._batches))
            records = self._batches[oldest]
            self._dropped_events += len(records.items)
            self._dropped_bytes += records.bytes
            self._drop(oldest)

    def _refusal(self, size: int, limit: int) -> Error:
        error: Error
        if size > limit:
            error = TooLargeError(f"{size} bytes at once, max_bytes={limit}")
        else:
            text = f"the store is full: {self._bytes} of max_bytes={limit}, and {size} bytes more"
            error = IoError(errno.EDQUOT, text)
        error.durable = "no"
        return error

    def _drop(self, id: str) -> None:
        records = self._batches.pop(id, None)
        if records is not None:
            self._bytes -= records.bytes
            if records is self._active:
                self._active = None


class _Records:
    """The events of a batch. A fetched batch never grows, so bodies read without a lock."""

    def __init__(self) -> None:
        self.items: list[bytes] = []
        self.bytes = 0

    def __call__(self, start: int, stop: int, /) -> Iterator[bytes]:
        return iter(self.items[start:stop])
