"""Handles of asyncio: the handles of each log, a handle that notes its calls, followers."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deedbook
from deedbook import Book, Deed, EventStore, Ledger, Pier, Wal
from deedbook.aio import AsyncBook, AsyncEventStore, AsyncLedger, AsyncPier, AsyncWal
from ledgers import payloads
from nostr_events import made

# A wait longer than this means an error.
PATIENCE = 30.0


@dataclass(frozen=True)
class Handle:
    name: str
    plain: Any
    aio: Any
    # The numbers of the records in a plain handle, and the count of appended records.
    numbers: Callable[[Any], list[int]]
    appended: Callable[[Any], int] = len
    record: Callable[[int], Any] = b"%d".__mod__

    def make(self, path: Path) -> Any:
        """A plain handle for an asyncio handle with a sync per append; opens or creates the log."""
        if self.name == "ledger":
            return Ledger.open(path, "a", durability="always")
        return self.plain.open(path, "a", durability="manual" if self.name == "nostr" else "always")

    def of(self, plain: Any) -> Any:
        return self.aio(plain, always=True) if self.name == "nostr" else self.aio(plain)

    def create(self, path: Path, **options: Any) -> Any:
        return self.aio.create(path / "log", **options)

    @staticmethod
    def payload(record: Any) -> bytes:
        return record.jam if isinstance(record, Deed) else record.payload

    @staticmethod
    def is_durable(plain: Any) -> bool:
        report = deedbook.report(plain)
        return 0 in (report.lag_bytes, report.unsynced_records)

    @staticmethod
    def is_reached(log: Any, position: int) -> bool:
        if isinstance(log, Book):
            return (log.durable_last or 0) >= position
        return log.durable_end > position

    def found(self, path: Path) -> list[int]:
        with self.make(path) as plain:
            return self.numbers(plain)


def note(number: int) -> dict[str, Any]:
    return made(str(number), created_at=1_700_000_000 + number)


def numbers_of(ledger: Ledger) -> list[int]:
    """The events of a ledger without a writer; the events stay in the ledger."""
    return [int(event) for event in payloads(ledger)]


LOGS = {
    "book": Handle("book", Book, AsyncBook, lambda book: [int(deed.jam) for deed in book]),
    "wal": Handle("wal", Wal, AsyncWal, lambda wal: [int(record.payload) for record in wal]),
}
HANDLES = LOGS | {
    "pier": Handle("pier", Pier, AsyncPier, lambda pier: [int(deed.jam) for deed in pier]),
    "ledger": Handle(
        "ledger",
        Ledger,
        AsyncLedger,
        numbers_of,
        lambda ledger: ledger.stats().log.records,
    ),
    "nostr": Handle(
        "nostr",
        EventStore,
        AsyncEventStore,
        lambda store: [int(event.content) for event in store],
        lambda store: sum(1 for _ in store),
        note,
    ),
}


class Witness:
    """A handle with notes about calls and threads; a test can hold up a call."""

    def __init__(self, plain: Any, held: str = "sync") -> None:
        self.plain = plain
        self.calls: list[tuple[str, int]] = []
        self.held = held
        self.may_go = threading.Event()
        self.may_go.set()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.plain, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, threading.get_ident()))
            if name == self.held:
                assert self.may_go.wait(PATIENCE)
            return value(*args, **options)

        return call

    def __len__(self) -> int:
        return len(self.plain)

    def count(self, name: str | None = None) -> int:
        return sum(called == (name or self.held) for called, _ in self.calls)

    def in_loop(self) -> set[str]:
        return {name for name, thread in self.calls if thread == threading.get_ident()}


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
    """Run in a new loop, and check that no exception is left over."""
    left: list[Any] = []

    async def watched() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
        return await asyncio.wait_for(main(), PATIENCE)

    result = asyncio.run(watched())
    gc.collect()
    assert left == []
    return result


class Collected:
    """The records of a follower, in a task: ``count`` records, or all until the log is closed."""

    def __init__(self, log: Any, count: int | None = None) -> None:
        self.payloads: list[bytes] = []
        self.task = asyncio.ensure_future(self._collect(log, count))

    async def _collect(self, log: Any, count: int | None) -> list[bytes]:
        async for record in log.follow():
            self.payloads.append(Handle.payload(record))
            if len(self.payloads) == count:
                break
        return self.payloads

    async def has(self, count: int) -> None:
        await until(lambda: len(self.payloads) >= count or self.task.done())


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.005)
