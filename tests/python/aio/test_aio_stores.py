"""Ledgers and event stores from asyncio: no wait for the disk in the loop, order, a sender."""

from __future__ import annotations

import asyncio
import io
import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import deedbook.aio
from aio_kinds import HANDLES, PATIENCE, Collected, Witness, note, own_threads, turns, until
from deedbook import (
    ClosedError,
    Durability,
    EventStore,
    InvalidArgumentError,
    Ledger,
    OutOfRangeError,
    Pier,
)
from deedbook.aio import AsyncEventStore, AsyncLedger, AsyncPier
from deedbook.http import AsyncSender
from endpoint import Endpoint
from logs import span

pytestmark = pytest.mark.usefixtures("threads_end")

numbers = HANDLES["ledger"].found
DURABILITIES = ["always", timedelta(milliseconds=1), Durability.bytes(200), "manual", "none"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_ledger_calls_that_block_run_in_a_thread(path: Path, durability: Any) -> None:
    witness: Any = Witness(
        Ledger.open(path, "a", durability=durability, batch_records=7, max_bytes=1 << 20)
    )
    async with AsyncLedger(witness) as ledger:
        for number in range(50):
            await ledger.append(b"%d" % number)
        await ledger.append_many([b"50", b"51"])
        await ledger.append_many([b"52", b"53"], atomic=True)
        await ledger.sync()
        assert await ledger.has_data()
        result = await ledger.fetch()
        assert result is not None and sum(batch.count for batch in result.data) == 54
        await ledger.remove(result.removable)
        await ledger.append(b"more")
        await ledger.reset()
        assert not await ledger.has_data()
    assert not own_threads() and witness.plain.closed
    assert witness.in_loop() == {"try_append"}


@pytest.mark.parametrize("durability", ["always", timedelta(milliseconds=1)])
async def test_loop_continues_during_slow_syncs_fetches_and_locks(
    path: Path, durability: Any
) -> None:
    """The test holds up each call for a thousand turns of the loop."""
    fcntl = pytest.importorskip("fcntl", reason="needs POSIX")
    may_fetch = threading.Event()

    def header() -> bytes:
        assert may_fetch.wait(PATIENCE)
        return b"["

    plain = Ledger.open(path, "a", durability=durability, header=header, batch_records=2)
    witness: Any = Witness(plain)
    async with AsyncLedger(witness) as ledger:
        await ledger.append(b"0")
        witness.may_go.clear()
        syncing = asyncio.ensure_future(ledger.sync())
        await until(lambda: witness.count("sync") == (2 if durability == "always" else 1))
        fetching = asyncio.ensure_future(ledger.fetch())
        await until(lambda: witness.count("fetch"))
        for _ in range(1000):
            await asyncio.sleep(0)
        held = os.open(path, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)  # as another process with the lock
        appending = [asyncio.ensure_future(ledger.append(b"%d" % n)) for n in range(1, 4)]
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not any(task.done() for task in (syncing, fetching, *appending))
        os.close(held)
        witness.may_go.set()
        may_fetch.set()
        await asyncio.gather(syncing, fetching, *appending)
    assert numbers(path) == [0, 1, 2, 3]


@pytest.mark.parametrize("durability", ["always", "none"])
async def test_events_are_in_the_order_of_the_calls(path: Path, durability: Any) -> None:
    """An append in the thread, for a new file, comes before the later appends in the loop."""
    async with AsyncLedger.open(path, "a", durability=durability, batch_records=7) as ledger:
        await asyncio.gather(*(ledger.append(b"%d" % n) for n in range(1500)))
    assert numbers(path) == list(range(1500))


async def test_an_endless_iterable_holds_up_no_fetch(path: Path) -> None:
    may_end = threading.Event()

    def endless() -> Any:
        yield b"first" * 100_000
        assert may_end.wait(PATIENCE)

    async with AsyncLedger.open(path, "a") as ledger:
        appending = asyncio.ensure_future(ledger.append_many(endless()))
        while (result := await ledger.fetch()) is None:
            await asyncio.sleep(0.001)
        await ledger.remove(result.removable)
        may_end.set()
        await appending
    assert numbers(path) == []


async def test_a_cancelled_task_closes_its_ledger(path: Path) -> None:
    opened: list[AsyncLedger] = []

    async def work() -> None:
        async with AsyncLedger.open(path, "a", durability="always") as ledger:
            opened.append(ledger)
            for number in range(1_000_000):
                await ledger.append(b"%d" % number)

    task = asyncio.ensure_future(work())
    await until(lambda: opened and opened[0].ledger.stats().log.records > 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert opened[0].ledger.closed
    assert numbers(path) == list(range(len(numbers(path))))


@pytest.mark.parametrize("which", ["plain", "asynchronous"])
async def test_a_sender_takes_either_kind_of_ledger(
    path: Path, endpoint: Endpoint, which: str
) -> None:
    pytest.importorskip("aiohttp")
    async with AsyncLedger.open(path, "a", durability="always") as ledger:
        store = ledger if which == "asynchronous" else ledger.ledger
        async with AsyncSender(store, endpoint.url, interval_seconds=0.01) as sender:
            await asyncio.gather(*(ledger.append(b"%d" % n) for n in range(300)))
            assert await sender.drain(PATIENCE)
        assert not await ledger.has_data()
    assert sorted(map(int, endpoint.events)) == list(range(300))


@pytest.mark.parametrize(
    "durability", [None, "always", timedelta(milliseconds=1), "manual", "none"]
)
async def test_the_loop_makes_no_call_that_may_wait(path: Path, durability: Any) -> None:
    witness: Any = Witness(EventStore.create(path, durability=durability))
    async with AsyncEventStore(witness, always=durability == "always") as store:
        for number in range(20):
            assert (await store.append(note(number))).what == "stored"
        outcomes = await store.append_many([note(number) for number in range(15, 30)])
        assert [outcome.stored for outcome in outcomes] == [False] * 5 + [True] * 10
        await store.sync()
        found = await store.get(note(3)["id"])
        assert found is not None and found.location is not None
        assert (await store.read(found.location)).content == "3"
        assert (await store.get(found.location)) == found
        assert [e.content for e in await store.query({"limit": 2})] == ["29", "28"]
        await store.set_flags(found.location, deleted=True)
        assert await store.get(note(3)["id"]) is None
        report = await store.import_json(io.BytesIO(json.dumps(note(30)).encode()))
        assert report.stored == 1
        await store.checkpoint()
        calls: list[tuple[int, int]] = []
        tell = lambda done, total: calls.append((done, total))  # noqa: E731
        assert await store.compaction_due() is False
        assert (await store.fragmentation(progress=tell))[0].deleted == 1
        assert (await store.compact(0, progress=tell)).deleted == 1
        assert await store.reindex(progress=tell) == 30
        assert (await store.verify(progress=tell)).live == 30
        assert [done == total for done, total in calls].count(True) == 4
    assert not own_threads() and witness.plain.closed
    assert witness.in_loop() == set()
    with EventStore.open(path) as store:
        contents = [event.content for event in store]
    assert contents == [str(number) for number in range(31) if number != 3]


async def test_flags_and_imports_are_synced_as_appends_are(path: Path) -> None:
    async with AsyncEventStore.open(path, "x", durability="always") as store:
        outcome = await store.append(note(0))
        assert outcome.location is not None and store.store.unsynced_bytes == 0
        await store.set_flags(outcome.location, deleted=True)
        assert store.store.unsynced_bytes == 0
        report = await store.import_json(io.BytesIO(json.dumps(note(1)).encode()))
        assert report.stored == 1 and store.store.unsynced_bytes == 0


async def test_refused_event_raises_in_its_own_task(path: Path) -> None:
    async with AsyncEventStore.open(path, "x", durability="always") as store:
        good, bad = await asyncio.gather(
            store.append(note(0)),
            store.append({**note(1), "id": "00" * 32}),
            return_exceptions=True,
        )
        assert isinstance(bad, InvalidArgumentError) and not isinstance(good, BaseException)
        assert store.store.get(note(0)["id"]) is not None


async def test_deeds_are_appended_across_epochs(tmp_path: Path) -> None:
    async with AsyncPier.create(tmp_path / "zod") as pier:
        assert await pier.append(b"1", 7) == 1
        assert span(await pier.append_many([b"2", b"3"], [8, 9])) == (2, 4)
        assert await pier.roll() == 3
        assert await pier.commit(b"4") == 4
        await pier.wait_durable(4)
        assert pier.pier.durable_last == 4 and pier.pier is pier.log
        assert [deed.mug for deed in pier.pier] == [7, 8, 9, 0]
        with pytest.raises(OutOfRangeError):
            await pier.wait_durable(5)
    with pytest.raises(ClosedError):
        pier.follow()


async def test_the_loop_makes_no_call_that_waits(tmp_path: Path) -> None:
    witness = Witness(Pier.create(tmp_path / "zod", durability="manual"), "roll")
    async with AsyncPier(witness) as pier:  # type: ignore[arg-type]
        follower = Collected(pier)
        await pier.append(b"1")
        await follower.has(1)
        witness.may_go.clear()
        rolling = asyncio.ensure_future(pier.roll())
        await until(witness.count)
        appending = asyncio.ensure_future(pier.append(b"2"))
        await turns()
        assert not appending.done()
        witness.may_go.set()
        assert (await rolling, await appending) == (1, 2)
        await follower.has(2)
    assert await follower.task == [b"1", b"2"]
    assert witness.in_loop() <= {"follow"}
    loop = threading.get_ident()
    assert all(thread != loop for name, thread in witness.calls if name != "follow")


@pytest.mark.parametrize("mode", ["a", "r"])
async def test_followers_go_on_into_new_epochs(tmp_path: Path, mode: str) -> None:
    """The deeds come through the handle of asyncio and through its plain pier."""
    pier = AsyncPier.create(tmp_path / "zod", durability="manual")
    followed = pier if mode == "a" else AsyncPier.open(tmp_path / "zod")
    followers = [Collected(followed, 6) for _ in range(3)]
    for number in range(3):
        await pier.append(b"%d" % (2 * number))
        await asyncio.to_thread(pier.pier.append, b"%d" % (2 * number + 1))
        await pier.roll()
    for follower in followers:
        assert await follower.task == [b"%d" % number for number in range(6)]
    rest = Collected(followed)
    await rest.has(6)
    await followed.close()
    assert len(await rest.task) == 6
    await pier.close()


async def test_open_finds_a_pier(tmp_path: Path) -> None:
    Pier.create(tmp_path / "zod").close()
    for options in ({}, {"format": "pier"}):
        async with deedbook.aio.open(tmp_path / "zod", "a", **options) as pier:  # type: ignore[arg-type]
            assert isinstance(pier, AsyncPier)
            await pier.append(b"1")
    assert repr(pier).startswith("<AsyncPier of <deedbook.Pier")
