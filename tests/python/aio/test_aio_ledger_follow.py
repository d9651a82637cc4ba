"""Following a ledger from asyncio: order, the end, cancellation, errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deedbook import ClosedError, Ledger, OutOfRangeError
from deedbook.aio import AsyncLedger

pytestmark = pytest.mark.usefixtures("threads_end")


async def test_a_follower_gives_each_event_once(tmp_path: Path) -> None:
    wanted = [b"%d" % number for number in range(40)]
    ledger = AsyncLedger.create(tmp_path / "spool", batch_records=7)
    found: list[bytes] = []

    async def collect() -> None:
        async for record in ledger.follow():
            found.append(record.payload)

    task = asyncio.create_task(collect())
    with Ledger.open(tmp_path / "spool", "a") as other:
        for number, payload in enumerate(wanted):
            if number % 2:
                await ledger.append(payload)
            else:
                other.append(payload)
            while len(found) <= number:
                await asyncio.sleep(0.001)
    await ledger.close()
    await task
    assert found == wanted
    with pytest.raises(ClosedError):
        ledger.follow()


async def test_a_cancelled_wait_loses_no_event(tmp_path: Path) -> None:
    async with AsyncLedger.create(tmp_path / "spool") as ledger:
        follower = ledger.follow()
        for payload in (b"1", b"2", b"3"):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(follower.__anext__(), 0.05)
            await ledger.append(payload)
            assert (await follower.__anext__()).payload == payload
        await follower.aclose()
        with pytest.raises(StopAsyncIteration):
            await follower.__anext__()


async def test_an_error_ends_the_follower(tmp_path: Path) -> None:
    async with AsyncLedger.create(tmp_path / "spool") as ledger:
        await ledger.append(b"1")
        fetched = await ledger.fetch()
        assert fetched is not None
        await ledger.remove(fetched.removable)
        follower = ledger.follow((0, 0))
        with pytest.raises(OutOfRangeError, match="removed before it was read"):
            await follower.__anext__()
        with pytest.raises(StopAsyncIteration):
            await follower.__anext__()
