"""What the tests of HTTP share: events, a clock of their own, both senders under one face."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from deedbook.http import AsyncSender, Clock, Policy, Sender
from deedbook.transient import DataResult, MemoryStore

QUICK = Policy(delay_seconds=0.001, delay_seconds_max=0.01)


def events(count: int, size: int = 0, start: int = 0) -> list[bytes]:
    """Different events, as JSON objects of at least so many bytes."""
    return [
        b'{"n":%d,"fill":"%s"}' % (n, b"x" * max(size - 18 - len(str(n)), 0))
        for n in range(start, start + count)
    ]


def store_of(items: Iterable[bytes], **options: Any) -> MemoryStore:
    store = MemoryStore(**options)
    store.append_many(items)
    return store


class SkippingClock(Clock):
    """A clock that never waits: what a sender would wait is added to the time, and noted."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_700_000_000.0 + self.now

    def wait_seconds(self, seconds: float) -> float:
        with self._lock:
            self.waits.append(seconds)
            self.now += seconds
        return 0.0


class Highest(random.Random):
    """Chance that always takes the longest delay, so that bounds can be seen."""

    def uniform(self, a: float, b: float) -> float:
        return b


class DiskStore:
    """A store whose batches keep their ids when it is opened again, as a spool on disk does."""

    def __init__(self, folder: Path, name: str = "spool") -> None:
        self.memory = MemoryStore()
        self.path = folder
        self._name = name
        self._batches: list[tuple[str, list[bytes]]] = []
        self._next = 0

    def add_batch(self, items: list[bytes]) -> None:
        self._batches.append((f"{self._name}-{self._next}", items))
        self._next += 1

    def append(self, data: bytes, /) -> None:
        self.add_batch([data])

    def append_many(self, data: Iterable[bytes], /) -> None:
        self.add_batch(list(data))

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        from deedbook.transient import BatchBody, Envelope

        chosen = self._batches[:count]
        if not chosen:
            return None
        bodies = [
            BatchBody(id, _of(items), len(items), sum(map(len, items)), Envelope().seal())
            for id, items in chosen
        ]
        return DataResult(bodies, [id for id, _ in chosen])

    def remove(self, items: Iterable[str], /) -> None:
        gone = set(items)
        self._batches = [batch for batch in self._batches if batch[0] not in gone]

    def has_data(self) -> bool:
        return bool(self._batches)

    def reset(self) -> None:
        self._batches.clear()


def _of(items: list[bytes]) -> Callable[[int, int], Any]:
    return lambda start, stop: iter(items[start:stop])


class Both:
    """A sender of either kind, called alike: the asynchronous one has a loop in a thread."""

    def __init__(self, kind: str, *args: Any, **options: Any) -> None:
        options.setdefault("policy", QUICK)
        self._loop: asyncio.AbstractEventLoop | None = None
        if kind == "threads":
            self.sender: Any = Sender(*args, **options)
            return
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.sender = AsyncSender(*args, **options)

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Call a method, in the loop if there is one, and return what comes of it."""
        method = getattr(self.sender, name)
        if self._loop is None:
            return method(*args, **options)

        async def go() -> Any:
            made = method(*args, **options)
            return await made if asyncio.iscoroutine(made) else made

        return asyncio.run_coroutine_threadsafe(go(), self._loop).result(60)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **options: self.call(name, *args, **options)

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *args: object) -> None:
        try:
            self.call("close", 0)
        finally:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
