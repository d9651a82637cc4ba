"""Following logs from asyncio: threads, order, the end, cancellation, damage."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Collected, Handle, Witness, own_threads, turns, until
from deedbook import Book, ClosedError, CorruptError, Ledger, OutOfRangeError
from deedbook.aio import AsyncLedger

pytestmark = pytest.mark.usefixtures("threads_end")


class Counting(ThreadPoolExecutor):
    jobs = 0

    def submit(self, *args: Any, **options: Any) -> Any:
        self.jobs += 1
        return super().submit(*args, **options)


def handle_of(log: Any, mode: str) -> Any:
    return log if mode == "a" else type(log).open(log.log.path, mode)


@pytest.mark.parametrize("mode", ["a", "r"])
async def test_idle_followers_hold_no_threads(tmp_path: Path, kind: Handle, mode: str) -> None:
    default = Counting()
    asyncio.get_running_loop().set_default_executor(default)
    async with kind.create(tmp_path, durability="manual") as log:
        followed = handle_of(log, mode)
        before = threading.active_count()
        followers = [Collected(followed) for _ in range(100)]
        await turns()
        # With an external writer, a few threads look at the files for all followers.
        assert threading.active_count() - before <= (0 if mode == "a" else 4)
        for count, payload in enumerate([b"seen", b"by all"], 1):
            await log.append(payload)
            for follower in followers:
                await follower.has(count)
        await followed.close()
        for follower in followers:
            assert await follower.task == [b"seen", b"by all"]
    assert default.jobs == 0


async def test_one_refresh_serves_all_followers_of_a_log(tmp_path: Path, kind: Handle) -> None:
    """A refresh may read much, so it must not run in the loop."""
    kind.plain.create(tmp_path / "log").close()
    witness = Witness(kind.plain.open(tmp_path / "log", "r"))
    async with kind.aio(witness) as log:
        followers = [Collected(log) for _ in range(100)]
        await until(lambda: witness.count("refresh") >= 3)
    for follower in followers:
        assert await follower.task == []
    refreshed = [thread for name, thread in witness.calls if name == "refresh"]
    assert threading.get_ident() not in refreshed and len(refreshed) < 100


async def test_threads_that_read_for_followers_end_when_unused(
    tmp_path: Path, kind: Handle
) -> None:
    async with kind.create(tmp_path, durability="manual") as log:
        await log.append(b"read in a thread")
        follower = Collected(log)
        await follower.has(1)
        await until(lambda: not own_threads())
        await log.append(b"in the loop")
        await follower.has(2)
        assert not own_threads()
        await log.append_many([b"in a thread" * 10_000])
        await follower.has(3)
    payloads = [b"read in a thread", b"in the loop", b"in a thread" * 10_000]
    assert await follower.task == payloads


@pytest.mark.parametrize("mode", ["a", "r"])
async def test_followers_see_what_others_append(tmp_path: Path, kind: Handle, mode: str) -> None:
    """In order and once each: small and large, few records and more than one read returns."""
    sizes = [1] * 2000 + [0, 70_000, 3, 2_000_000, 5] + [300] * 700
    payloads = [b"%d" % i + b"." * size for i, size in enumerate(sizes)]
    log = kind.create(tmp_path, durability="manual")
    followed = handle_of(log, mode)
    followers = [Collected(followed, len(sizes)) for _ in range(3)]
    await turns(3)

    def write() -> None:
        for i, payload in enumerate(payloads):
            log.log.append(payload)
            if i % 500 == 0:
                threading.Event().wait(0.03)

    writer = threading.Thread(target=write)
    writer.start()
    followers.append(Collected(followed, len(sizes)))
    for follower in followers:
        assert await follower.task == payloads
    writer.join()
    await log.close()
    await followed.close()


async def test_following_begins_where_it_is_asked_to(tmp_path: Path, kind: Handle) -> None:
    async with kind.create(tmp_path, durability="manual") as log:
        positions = [await log.append(b"%d" % i) for i in range(5)]
        middle, end = log.follow(positions[3]), log.follow(positions[4])
        await anext(end)
        task = asyncio.ensure_future(anext(end))
        assert kind.payload(await anext(middle)) == b"3"
        next_one = await log.append(b"5")
        assert kind.payload(await task) == b"5"
        assert kind.payload(await anext(log.follow(next_one))) == b"5"


async def test_a_follower_from_beyond_the_end(tmp_path: Path, kind: Handle) -> None:
    """A Book may reach the event later; a WAL has no such record."""
    async with kind.create(tmp_path, durability="manual") as log:
        await log.append(b"1")
        task = asyncio.ensure_future(anext(log.follow(3)))
        await turns(3)
        if kind.name == "wal":
            with pytest.raises(OutOfRangeError):
                await task
            return
        await log.append(b"2")
        await turns(3)
        assert not task.done()
        await log.append(b"3")
        assert (await task).jam == b"3"


async def test_closing_ends_followers(tmp_path: Path, kind: Handle) -> None:
    """Before the first record, between two records, and during a read in a thread."""
    async with kind.create(tmp_path, durability="manual") as log:
        await log.append_many([b"x"] * 2000)
        waiting = [Collected(log) for _ in range(3)]
        slow = log.follow()
        await anext(slow)
        begun = log.follow()
        reading = asyncio.ensure_future(anext(begun))
        await asyncio.sleep(0)
    for follower in waiting:
        assert set(await follower.task) <= {b"x"}
    # Records read before the close still come, and then the end, repeatedly.
    assert [kind.payload(record) async for record in slow] == [b"x"] * 511
    with suppress(StopAsyncIteration):
        await reading
    with pytest.raises(StopAsyncIteration):
        while True:
            await anext(begun)
    with pytest.raises(StopAsyncIteration):
        await anext(slow)


@pytest.mark.parametrize("mode", ["a", "r"])
async def test_closing_the_plain_log_ends_followers_too(
    tmp_path: Path, kind: Handle, mode: str
) -> None:
    async with kind.create(tmp_path, durability="manual") as log:
        await log.append(b"x")
        followed = handle_of(log, mode)
        follower = Collected(followed)
        await follower.has(1)
        await turns()
        followed.log.close()
        assert await follower.task == [b"x"]


@pytest.mark.parametrize("mode", ["a", "r"])
async def test_a_cancelled_follower_loses_nothing(tmp_path: Path, kind: Handle, mode: str) -> None:
    """Cancelled during a wait, during a read in a thread, and in between."""
    payloads = [b"%d" % i for i in range(3000)]
    log = kind.create(tmp_path, durability="manual")
    followed = handle_of(log, mode)

    async def write() -> None:
        for first in range(0, len(payloads), 100):
            await log.append_many(payloads[first : first + 100])
            await asyncio.sleep(0.001)

    writer = asyncio.ensure_future(write())
    got: list[bytes] = []
    follower = followed.follow()
    patience = 0
    while len(got) < len(payloads):
        task = asyncio.ensure_future(anext(follower))
        for _ in range(patience % 7):
            await asyncio.sleep(0)
        patience += 1
        task.cancel()
        with suppress(asyncio.CancelledError):
            got.append(kind.payload(await task))
        if patience % 20 == 0 and len(got) < len(payloads):
            got.append(kind.payload(await anext(follower)))
    await writer
    assert got == payloads
    await follower.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(follower)
    await followed.close()
    await log.close()


async def test_a_follower_serves_one_task(tmp_path: Path, kind: Handle) -> None:
    async with kind.create(tmp_path, durability="manual") as log:
        follower = log.follow()
        task = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(follower)
        await follower.aclose()
        with pytest.raises(StopAsyncIteration):
            await task


async def test_a_follower_finds_damage_after_the_last_record(tmp_path: Path, kind: Handle) -> None:
    """The log does not grow, so nothing wakes the follower: it looks at intervals."""
    single = {} if kind.plain is Book else {"single_file": True}
    whole = kind.plain.create(tmp_path / "whole", **single)
    whole.append(b"first")
    end = whole.end
    whole.append_many([b"second", b"third"])
    name = whole.path if single else os.path.join(whole.path, "book.log")
    whole.close()
    log = bytearray(Path(name).read_bytes())
    log[log.index(b"second")] ^= 1
    file = tmp_path / "copy"
    if kind.plain is Book:
        file.mkdir()
        file /= "book.log"
    file.write_bytes(log[:end])
    async with kind.aio.open(tmp_path / "copy", "r") as reader:
        follower = reader.follow()
        assert kind.payload(await anext(follower)) == b"first"
        task = asyncio.ensure_future(anext(follower))
        await turns()
        file.write_bytes(log)
        with pytest.raises(CorruptError):
            await task
        with pytest.raises(StopAsyncIteration):
            await anext(follower)


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
