"""What the tests of asyncio share: the formats, a log that notes its calls, loops and followers."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deedbook import Book, Wal
from deedbook.aio import AsyncBook, AsyncWal

# What takes longer will never come.
PATIENCE = 30.0


@dataclass(frozen=True)
class Kind:
    """What differs between the formats."""

    aio: Any
    plain: Any
    payload: str
    # Paths of its files; whether a record is on stable storage; position of the last record.
    files: Callable[[Any], list[str]]
    reached: Callable[[Any, int], bool]
    last: Callable[[Any], int]

    def create(self, path: Path, **options: Any) -> Any:
        return self.aio.create(path / "log", **options)

    def durable(self, log: Any) -> bool:
        """Whether all records are on stable storage."""
        return self.reached(log, self.last(log))

    def payloads(self, log: Any) -> list[bytes]:
        return [getattr(record, self.payload) for record in log]


KINDS = {
    "book": Kind(
        AsyncBook,
        Book,
        "jam",
        lambda book: [os.path.join(book.path, "book.log")],
        lambda book, event: (book.durable_last or 0) >= event,
        lambda book: book.last,
    ),
    "wal": Kind(
        AsyncWal,
        Wal,
        "payload",
        lambda wal: wal.segment_paths,
        lambda wal, lsn: wal.durable_end > lsn,
        lambda wal: wal.bounds[1],
    ),
}


class Witness:
    """A log that notes which of its calls are made, and in which thread."""

    def __init__(self, log: Any) -> None:
        self.plain = log
        self.calls: list[tuple[str, int]] = []
        self.may_sync = threading.Event()
        self.may_sync.set()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.plain, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, threading.get_ident()))
            if name == "sync":
                assert self.may_sync.wait(PATIENCE)
            return value(*args, **options)

        return call

    def __len__(self) -> int:
        return len(self.plain)

    def count(self, name: str) -> int:
        return sum(called == name for called, _ in self.calls)


def own_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("deedbook-")]


def no_threads_are_left() -> bool:
    gc.collect()
    for thread in own_threads():
        thread.join(PATIENCE)
        if thread.is_alive():
            return False
    return True


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run in a loop of its own, which must hear of no exception that is left over."""
    left: list[Any] = []

    async def watched() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
        return await asyncio.wait_for(main(), PATIENCE)

    result = asyncio.run(watched())
    gc.collect()
    assert left == []
    return result


class Collected:
    """What a follower gives, in a task: so many records, or all until the log is closed."""

    def __init__(self, kind: Kind, log: Any, count: int | None = None) -> None:
        self.payloads: list[bytes] = []
        self.task = asyncio.ensure_future(self._collect(kind, log, count))

    async def _collect(self, kind: Kind, log: Any, count: int | None) -> list[bytes]:
        async for record in log.follow():
            self.payloads.append(getattr(record, kind.payload))
            if len(self.payloads) == count:
                break
        return self.payloads

    async def has(self, count: int) -> None:
        """Wait for so many."""
        await until(lambda: len(self.payloads) >= count or self.task.done())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def turns(count: int = 20) -> None:
    """Let followers find that there is nothing, several times."""
    for _ in range(count):
        await asyncio.sleep(0.005)
