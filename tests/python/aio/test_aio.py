"""Logs from asyncio: appended records, and no sync in the event loop."""

import asyncio
import doctest
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import deedbook.aio
from aio_kinds import LOGS, Collected, Handle, Witness, own_threads, until
from deedbook import Book, Durability, OutOfRangeError, Wal
from deedbook.aio import AsyncBook, AsyncWal
from logs import span

pytestmark = pytest.mark.usefixtures("threads_end")


def test_the_docstring_of_the_module_is_true() -> None:
    done = doctest.testmod(deedbook.aio)
    assert done.attempted > 0 and done.failed == 0


@pytest.mark.parametrize(
    "durability", ["always", Durability.bytes(1), timedelta(milliseconds=1), "manual", "none"]
)
async def test_syncing_calls_run_outside_the_event_loop_thread(
    tmp_path: Path, kind: Handle, durability: object
) -> None:
    witness = Witness(kind.plain.create(tmp_path / "log", durability=durability))
    async with kind.aio(witness) as log:
        for _ in range(3):
            await log.append(b"x")
            await log.commit(b"y")
            await log.append_many([b"z"])
            await log.sync()
    assert not own_threads()
    at_once = set() if isinstance(durability, Durability) else {"append"}
    calls = {"append_many", "append", "close", "commit", "sync"}
    assert witness.in_loop() & calls == at_once
    assert witness.count("sync") == (9 if durability == "always" else 6)
    assert witness.plain.closed


async def test_many_unsynced_segments_move_appends_to_a_thread(tmp_path: Path) -> None:
    """A log of segments syncs the oldest segment when 16 are unsynced."""
    witness = Witness(Wal.create(tmp_path / "log", segment_bytes=64))
    async with AsyncWal(witness) as log:
        for _ in range(100):
            await log.append(b"x" * 24)
        await log.sync()
        await log.append(b"y")
    threads = [thread for name, thread in witness.calls if name == "append"]
    loop = threading.get_ident()
    assert threads[:16] == [loop] * 16 and threads[-1] == loop
    assert loop not in threads[17:100]


async def test_append_that_may_wait_runs_in_a_thread(tmp_path: Path) -> None:
    """In layout `slots` an append waits for a running sync; earlier, the loop waited, too."""
    witness = Witness(Book.create(tmp_path / "log", layout="slots", durability="manual"))
    async with AsyncBook(witness) as book:
        assert [await book.append(b"%d" % n) for n in range(3)] == [1, 2, 3]
        assert await book.commit(b"3") == 4
    threads = [thread for name, thread in witness.calls if name == "append"]
    assert len(threads) == 4 and threading.get_ident() not in threads


@pytest.mark.parametrize(
    ("plain", "aio", "options"),
    [(Book, AsyncBook, {}), (Wal, AsyncWal, {}), (Wal, AsyncWal, {"single_file": True})],
)
async def test_first_append_after_close_runs_in_a_thread(
    tmp_path: Path, plain: Any, aio: Any, options: dict[str, Any]
) -> None:
    """The first append syncs the open state of the log; earlier, the loop waited for the disk."""
    options = {"durability": "manual", **options}
    with plain.create(tmp_path / "log", **options) as log:
        log.append(b"x")
    witness = Witness(plain.open(tmp_path / "log", "a", **options))
    async with aio(witness) as log:
        for _ in range(3):
            await log.append(b"y")
    threads = [thread for name, thread in witness.calls if name == "append"]
    loop = threading.get_ident()
    assert threads[0] != loop and threads[1:] == [loop] * 2


@pytest.mark.parametrize(
    "durability", ["manual", timedelta(milliseconds=100000), "none", Durability.bytes(1000000)]
)
async def test_an_append_that_need_not_sync_does_not(
    tmp_path: Path, kind: Handle, durability: object
) -> None:
    async with kind.create(tmp_path, durability=durability) as log:
        task = asyncio.ensure_future(log.append(b"x"))
        await asyncio.sleep(0)
        assert task.done() or isinstance(durability, Durability)
        await task
        assert len(log.log) == 1 and not kind.is_durable(log.log)
        await log.sync()
        assert kind.is_durable(log.log)


async def test_tasks_share_syncs(path: Path, handle: Handle) -> None:
    """The next sync makes all records durable that were appended during a sync."""
    witness = Witness(handle.make(path))
    async with handle.of(witness) as log:
        witness.may_go.clear()
        calls = [log.append, log.commit if handle.name in LOGS else log.append]
        tasks = [asyncio.ensure_future(calls[n % 2](handle.record(n))) for n in range(2000)]
        await until(lambda: handle.appended(witness.plain) == 2000)
        assert not any(task.done() for task in tasks)
        witness.may_go.set()
        await asyncio.gather(*tasks)
        assert 0 < witness.count() <= 3 and handle.is_durable(witness.plain)
    assert handle.found(path) == list(range(2000))


async def test_append_returns_after_its_own_record_is_durable(path: Path, handle: Handle) -> None:
    witness = Witness(handle.make(path))
    async with handle.of(witness) as log:

        async def write(task: int) -> None:
            for number in range(10 * task, 10 * task + 10):
                before = witness.count()
                position = await log.append(handle.record(number))
                assert witness.count() > before, "a sync that began after the call"
                if handle.name in LOGS:
                    assert handle.is_reached(witness.plain, position)
                await asyncio.sleep(0.001 * (task % 3))

        await asyncio.gather(*(write(task) for task in range(20)))
        assert handle.appended(witness.plain) == 200


async def test_many_are_appended_at_once(tmp_path: Path, kind: Handle) -> None:
    async with kind.create(tmp_path, durability="always") as log:
        follower = Collected(log, 1000)
        appended = await log.append_many(b"%d" % i for i in range(1000))
        assert kind.is_durable(log.log)
        assert await follower.task == [b"%d" % i for i in range(1000)]
        if kind.name == "book":
            assert span(appended) == (1, 1001)
            assert span(await log.append_many([b"a", b"b"], [7, 8])) == (1001, 1003)
            assert (await log.append(b"c", 9), log.book[1003].mug) == (1003, 9)
        else:
            assert span(appended) == (0, log.wal.end)
        with pytest.raises(TypeError):
            await log.append_many([b"fine", 1])
        with pytest.raises(TypeError):
            await log.append(1)


def test_append_with_sync_false_leaves_syncing_to_callers(tmp_path: Path, kind: Handle) -> None:
    with kind.plain.create(tmp_path / "log", durability="always") as log:
        first, second = log.append(b"1", sync=False), log.append(bytearray(b"2"), sync=False)
        assert not kind.is_reached(log, first)
        log.sync()
        assert kind.is_reached(log, second)
        assert kind.numbers(log) == [1, 2]
        with pytest.raises(TypeError):
            log.append("3", sync=False)
        if kind.plain is Book:
            assert log[log.append(b"3", 7, sync=False)].mug == 7


async def test_waiting_for_a_position_to_be_durable(tmp_path: Path, kind: Handle) -> None:
    async with kind.create(tmp_path, durability="manual") as log:
        position = await log.append(b"x")
        assert not kind.is_durable(log.log)
        await asyncio.gather(*(log.wait_durable(position) for _ in range(10)))
        assert kind.is_durable(log.log)
        with pytest.raises(OutOfRangeError):
            await log.wait_durable(position + 1000)
