"""What a close waits for, and what it lets go of, from asyncio."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Handle, Witness, note, turns, until
from deedbook import EventStore, Ledger
from deedbook.aio import AsyncEventStore, AsyncLedger
from test_close_files import held

pytestmark = pytest.mark.usefixtures("threads_end")


async def test_a_ledger_closes_after_the_calls_that_wait_for_its_files(path: Path) -> None:
    """A queued remove() met the closed ledger: what had been sent stayed, and was sent again."""
    witness: Any = Witness(Ledger.open(path), "has_data")
    ledger = AsyncLedger(witness)
    await ledger.append(b"1")
    result = await ledger.fetch()
    assert result is not None
    await closed_meanwhile(ledger, witness, ledger.has_data(), ledger.remove(result.removable))
    with Ledger.open(path) as ledger:
        assert not ledger.has_data()


async def test_a_store_closes_after_the_reads_that_wait(path: Path) -> None:
    """A query that was queued before the close raised ClosedError."""
    witness: Any = Witness(EventStore.create(path), "verify")
    store = AsyncEventStore(witness)
    await store.append(note(7))
    report, found = await closed_meanwhile(store, witness, store.verify(), store.query({}))
    assert report.live == 1 and [event.content for event in found] == ["7"]


async def closed_meanwhile(handle: Any, witness: Witness, waiting: Any, queued: Any) -> list[Any]:
    """What two calls give, of which the first is held up until the handle is being closed."""
    witness.may_go.clear()
    first = asyncio.ensure_future(waiting)
    await until(witness.count)
    second = asyncio.ensure_future(queued)
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(handle.close())
    await turns(4)
    witness.may_go.set()
    given = await asyncio.gather(first, second)
    await closing
    assert witness.plain.closed
    return given


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")
@pytest.mark.parametrize("end", ["aclose", "close"])
def test_a_follower_that_is_at_its_end_lets_go_of_the_files(
    tmp_path: Path, kind: Handle, end: str
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
    open_below = held(tmp_path)
    del follower
    assert open_below == []


async def test_a_reading_that_begins_after_the_end_reads_nothing(
    tmp_path: Path, kind: Handle
) -> None:
    """It gave records after aclose(), and took the log's files again."""
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
