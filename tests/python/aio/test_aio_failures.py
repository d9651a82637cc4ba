"""Every handle from asyncio: failed syncs, cancelled tasks, closing and what it lets go of."""

import asyncio
import gc
import os
import time
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Handle, Witness, note, turns, until
from deedbook import ClosedError, Error, EventStore, InvalidArgumentError, Ledger, PoisonedError
from deedbook.aio import AsyncBook, AsyncEventStore, AsyncLedger, AsyncLog
from this_process import held

pytestmark = pytest.mark.usefixtures("threads_end")


def appends(handle: Handle, log: Any, numbers: range) -> list[asyncio.Future[Any]]:
    return [asyncio.ensure_future(log.append(handle.record(number))) for number in numbers]


def later_calls(handle: Handle, log: Any) -> list[Any]:
    calls = [log.append(handle.record(1)), log.commit(handle.record(1))]
    return [*calls, log.append_many([handle.record(2)]), log.sync()]


async def test_a_cancelled_waiter_disturbs_no_other(path: Path, handle: Handle) -> None:
    """Its record stays appended."""
    witness = Witness(handle.make(path))
    async with handle.of(witness) as log:
        witness.may_go.clear()
        tasks = appends(handle, log, range(10))
        await asyncio.sleep(0)
        tasks[3].cancel()  # before the sync
        await until(witness.count)
        tasks[4].cancel()  # while it runs
        witness.may_go.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        cancelled = [isinstance(one, asyncio.CancelledError) for one in done]
        assert [i for i, one in enumerate(cancelled) if one] == [3, 4]
        assert not [one for one in done if isinstance(one, Exception)]
        await log.append(handle.record(10))
    assert handle.found(path) == list(range(11))


async def test_log_syncs_again_after_all_waiters_were_cancelled(path: Path, handle: Handle) -> None:
    plain = handle.make(path)
    async with handle.of(plain) as log:
        for first in range(0, 15, 5):
            tasks = appends(handle, log, range(first, first + 5))
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await log.append(handle.record(15))
        assert handle.is_durable(plain)
    assert handle.found(path) == list(range(16))


@pytest.mark.parametrize("handle", ["book", "wal", "ledger"], indirect=True)
async def test_failed_sync_raises_for_waiters_and_later_calls(path: Path, handle: Handle) -> None:
    plain = handle.make(path)
    log = handle.of(plain)
    await log.append(b"fine")
    tasks = appends(handle, log, range(20))
    await asyncio.sleep(0)
    for file in path.iterdir():
        if file.is_file() and handle.name == "ledger":
            file.unlink()
        elif file.is_file():
            os.truncate(file, 3)
    tasks[7].cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done.pop(7), asyncio.CancelledError)
    assert all(isinstance(error, Error) for error in done)
    for call in later_calls(handle, log):
        with pytest.raises(PoisonedError):
            await call
    if isinstance(plain, Ledger):
        assert await log.fetch() is None, "what there is can still be sent"
    with pytest.raises(KeyError, match="what is raised"):
        async with log:
            raise KeyError("what is raised")
    if isinstance(log, AsyncLog):
        with pytest.raises(PoisonedError):
            await log.close()
    assert plain.closed


async def test_a_closed_handle_refuses_every_call(path: Path, handle: Handle) -> None:
    plain = handle.make(path)
    async with handle.of(plain) as log:
        await log.append(handle.record(1))
        for wrong in (1, b"") if isinstance(plain, Ledger) else (1,):
            with pytest.raises((TypeError, InvalidArgumentError)):
                await log.append(wrong)
    calls = later_calls(handle, log)
    if isinstance(log, AsyncLedger):
        calls += [log.remove([]), log.reset(), log.fetch(), log.has_data()]
    if isinstance(log, AsyncEventStore):
        calls += [log.get("00" * 32), log.query({}), log.sync()]
    for call in calls:
        with pytest.raises(ClosedError):
            await call
    if isinstance(log, AsyncLog):
        with pytest.raises(ClosedError):
            log.follow()
    await log.close()
    assert repr(log) == f"<{type(log).__name__} of {plain!r}>"


async def test_closing_serves_the_tasks_that_wait(path: Path, handle: Handle) -> None:
    witness = Witness(handle.make(path))
    log = handle.of(witness)
    witness.may_go.clear()
    first = appends(handle, log, range(1))
    await until(witness.count)
    rest = appends(handle, log, range(1, 50))
    await asyncio.sleep(0)
    closing = [asyncio.ensure_future(log.close()) for _ in range(2)]
    await asyncio.sleep(0)
    witness.may_go.set()
    await asyncio.gather(*first, *rest, *closing)
    assert witness.plain.closed
    assert handle.found(path) == list(range(50))


@pytest.mark.parametrize("seconds", [0, 0.2], ids=["waiting", "done"])
@pytest.mark.parametrize("handle", ["book", "ledger", "nostr"], indirect=True)
async def test_closing_serves_appends_in_a_thread(
    path: Path, handle: Handle, seconds: float
) -> None:
    is_book = handle.name == "book"
    log = AsyncBook.create(path, layout="slots") if is_book else handle.of(handle.make(path))
    tasks = appends(handle, log, range(50))
    await asyncio.sleep(0)
    time.sleep(seconds)  # the loop stands still
    await log.close()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert [error for error in done if isinstance(error, Exception)] == []


async def test_a_cancelled_close_closes(path: Path, handle: Handle) -> None:
    witness = Witness(handle.make(path))
    log = handle.of(witness)
    witness.may_go.clear()
    (append,) = appends(handle, log, range(1))
    await until(witness.count)
    closing = asyncio.ensure_future(log.close())
    await turns(2)
    closing.cancel()
    await asyncio.sleep(0)
    witness.may_go.set()
    await append
    with pytest.raises(asyncio.CancelledError):
        await closing
    await until(lambda: witness.plain.closed)


async def test_ledger_closes_after_pending_file_calls(path: Path) -> None:
    witness: Any = Witness(Ledger.open(path, "a"), "has_data")
    ledger = AsyncLedger(witness)
    await ledger.append(b"1")
    result = await ledger.fetch()
    assert result is not None
    await closed_meanwhile(ledger, witness, ledger.has_data(), ledger.remove(result.removable))
    with Ledger.open(path, "a") as ledger:
        assert not ledger.has_data()


async def test_a_store_closes_after_the_reads_that_wait(path: Path) -> None:
    witness: Any = Witness(EventStore.create(path), "verify_log")
    store = AsyncEventStore(witness)
    await store.append(note(7))
    damages, found = await closed_meanwhile(store, witness, store.verify_log(), store.query({}))
    assert damages == [] and [event.content for event in found] == ["7"]


async def closed_meanwhile(handle: Any, witness: Witness, waiting: Any, queued: Any) -> list[Any]:
    """Give the results of two calls; the first is held up until the handle is being closed."""
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
def test_finished_async_follower_closes_its_files(tmp_path: Path, kind: Handle, end: str) -> None:
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


async def test_late_read_after_a_followers_end_reads_nothing(tmp_path: Path, kind: Handle) -> None:
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
