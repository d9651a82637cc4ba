"""Senders over HTTP: events, a special clock, both senders with one interface."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deedbook.http import AsyncSender, Clock, Policy, Sender
from deedbook.transient import MemoryStore

QUICK = Policy(delay_seconds=0.001, delay_seconds_max=0.01)


def events(count: int, size: int = 0, start: int = 0) -> list[bytes]:
    """Different events, as JSON objects of at least ``size`` bytes."""
    return [
        b'{"n":%d,"fill":"%s"}' % (n, b"x" * max(size - 18 - len(str(n)), 0))
        for n in range(start, start + count)
    ]


def store_of(items: Iterable[bytes], **options: Any) -> MemoryStore:
    store = MemoryStore(**options)
    store.append_many(items)
    return store


class SkippingClock(Clock):
    """A clock that never waits: a wait is added to the time, and noted."""

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
    def uniform(self, a: float, b: float) -> float:
        return b


def spool_of(items: Iterable[bytes], folder: Path) -> MemoryStore:
    """A store with a folder and a constant batch id, like a store on disk."""
    store: Any = store_of(items)
    store._batches = {f"spool-{n}": batch for n, batch in enumerate(store._batches.values())}
    store.path = folder
    return store


class Both:
    """Either kind of sender with the same calls; the asynchronous sender has a loop in a thread."""

    def __init__(self, kind: str, *args: Any, **options: Any) -> None:
        options.setdefault("policy", QUICK)
        self._loop: asyncio.AbstractEventLoop | None = None
        if kind == "threads":
            pytest.importorskip("urllib3")
            self.sender: Any = Sender(*args, **options)
            return
        pytest.importorskip("aiohttp")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.sender = AsyncSender(*args, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.sender, name)
        if self._loop is None:
            return method

        async def go(*args: Any, **options: Any) -> Any:
            made = method(*args, **options)
            return await made if asyncio.iscoroutine(made) else made

        def call(*args: Any, **options: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(go(*args, **options), self._loop).result(60)

        return call

    def __enter__(self) -> "Both":
        return self

    def __exit__(self, *args: object) -> None:
        try:
            self.close(0)
        finally:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()


MakeSender = Callable[..., Both]


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with suppress(OSError):  # a client may leave after reading enough
                answer(self)
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
