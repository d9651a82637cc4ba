"""What a close waits for, and what it lets go of, from asyncio."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import PATIENCE, Kind, Witness, run, turns, until
from deedbook import EventStore, Ledger
from deedbook.aio import AsyncEventStore, AsyncLedger
from test_nostr import made

pytestmark = pytest.mark.usefixtures("threads_end")


class Held(Witness):
    """A handle of which one call waits for the test."""

    def __init__(self, plain: Any, held: str) -> None:
        super().__init__(plain)
        self.held = held
        self.may_go = threading.Event()

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name != self.held:
            return value

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((f"begun {name}", threading.get_ident()))
            assert self.may_go.wait(PATIENCE)
            return value(*args, **options)

        return call


def test_a_ledger_closes_after_the_calls_that_wait_for_its_files(tmp_path: Path) -> None:
    """A queued remove() met the closed ledger: what had been sent stayed, and was sent again."""

    async def main() -> None:
        witness: Any = Held(Ledger.open(tmp_path / "s"), "has_data")
        ledger = AsyncLedger(witness)
        await ledger.append(b"1")
        result = await ledger.fetch()
        assert result is not None
        asking = asyncio.ensure_future(ledger.has_data())
        await until(lambda: witness.count("begun has_data"))
        removing = asyncio.ensure_future(ledger.remove(result.removable))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(ledger.close())
        await turns(4)
        witness.may_go.set()
        assert await asking
        await removing
        await closing
        assert witness.plain.closed

    run(main)
    with Ledger.open(tmp_path / "s") as ledger:
        assert not ledger.has_data()


def test_a_store_closes_after_the_reads_that_wait(tmp_path: Path) -> None:
    """A query that was queued before the close raised ClosedError."""

    async def main() -> None:
        witness: Any = Held(EventStore.create(tmp_path / "s"), "verify")
        store = AsyncEventStore(witness)
        await store.append(made("event"))
        checking = asyncio.ensure_future(store.verify())
        await until(lambda: witness.count("begun verify"))
        asking = asyncio.ensure_future(store.query({}))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
        await turns(4)
        witness.may_go.set()
        assert (await checking).live == 1
        assert [event.content for event in await asking] == ["event"]
        await closing
        assert witness.plain.closed

    run(main)


def open_below(path: Path) -> list[str]:
    """The files below a directory that this process holds, by descriptor or mapped."""
    found = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if os.path.islink(fd)]
    maps = Path("/proc/self/maps").read_text().splitlines()
    found += [line.split(maxsplit=5)[5] for line in maps if line.count(str(path))]
    return [file for file in found if file.startswith(str(path))]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
@pytest.mark.parametrize("end", ["aclose", "close"])
def test_a_follower_that_is_at_its_end_lets_go_of_the_files(
    tmp_path: Path, kind: Kind, end: str
) -> None:
    """A log that was closed, and removed, took its place on the disk as long as its follower."""

    async def main() -> Any:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append(b"1")
            follower = log.follow()
            await anext(follower)
            if end == "aclose":
                await follower.aclose()
        if end == "close":
            with pytest.raises(StopAsyncIteration):
                await anext(follower)
        return follower

    follower = asyncio.run(main())
    gc.collect()
    held = open_below(tmp_path)
    del follower
    assert held == []


def test_a_reading_that_begins_after_the_end_reads_nothing(tmp_path: Path, kind: Kind) -> None:
    """It gave records after aclose(), and took the log's files again."""

    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append(b"1")
            follower: Any = log.follow()
            await anext(follower)
            await log.append(b"2")
            source = follower._source
            await follower.aclose()
            follower._read(source, 1 << 40)  # as a task does that was about to
            assert not follower._ready and follower._records is None
            with pytest.raises(StopAsyncIteration):
                await anext(follower)

    asyncio.run(main())
