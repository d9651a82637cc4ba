"""Logs from asyncio: syncs and followers stay out of the loop, whatever the format."""

from __future__ import annotations

import asyncio
import doctest
import gc
import inspect
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import deedbook.aio
from deedbook import Book, ClosedError, Error, OutOfRangeError, PoisonedError, Wal
from deedbook.aio import AsyncBook, AsyncWal

# What takes longer will never come.
PATIENCE = 30.0


@dataclass(frozen=True)
class Kind:
    """What differs between the formats."""

    aio: Any
    plain: Any
    payload: str
    files: Callable[[Any], list[str]]
    durable: Callable[[Any], bool]

    def create(self, path: Path, **options: Any) -> Any:
        return self.aio.create(path / "log", **options)

    def payloads(self, log: Any) -> list[bytes]:
        return [getattr(record, self.payload) for record in log]


KINDS = {
    "book": Kind(
        AsyncBook,
        Book,
        "jam",
        lambda book: [os.path.join(book.path, "book.log")],
        lambda book: (book.durable_last or 0) == book.last,
    ),
    "wal": Kind(
        AsyncWal,
        Wal,
        "payload",
        lambda wal: wal.segment_paths,
        lambda wal: wal.durable_end == wal.end,
    ),
}
ALL = sorted(KINDS)


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


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


@pytest.fixture(autouse=True)
def threads_end(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Every test leaves no thread, and nothing in the logs of the libraries below."""
    yield
    assert no_threads_are_left()
    below = ("asyncio", "concurrent.futures")
    assert [record for record in caplog.records if record.name in below] == []


def run_strictly(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONASYNCIODEBUG": "1"},
    )


async def collect(kind: Kind, log: Any, count: int | None = None) -> list[bytes]:
    """What a follower gives: so many, or all until the log is closed."""
    got = []
    async for record in log.follow():
        got.append(getattr(record, kind.payload))
        if len(got) == count:
            break
    return got


async def turns(count: int = 20) -> None:
    """Let followers find that there is nothing, several times."""
    for _ in range(count):
        await asyncio.sleep(0.005)


def test_the_docstring_of_the_module_is_true() -> None:
    done = doctest.testmod(deedbook.aio)
    assert done.attempted > 0 and done.failed == 0


# -- syncs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["append", "commit"])
@pytest.mark.parametrize("durability", ["always", "bytes:1"])
def test_an_append_that_has_to_sync_does_not_do_it_in_the_loop(
    tmp_path: Path, kind: Kind, durability: str, call: str
) -> None:
    """`always` synced in the loop: 2,000 commits held it for 4 seconds. So did `bytes:N`."""

    async def main() -> None:
        async with kind.create(tmp_path, durability=durability) as log:
            task = asyncio.ensure_future(getattr(log, call)(b"x"))
            await asyncio.sleep(0)  # the task runs until it waits
            assert not task.done()
            if durability == "always":
                assert len(log.log) == 1 and not kind.durable(log.log)
            await task
            assert len(log.log) == 1 and kind.durable(log.log)

    run(main)


@pytest.mark.parametrize("durability", ["always", "bytes:1", "interval:1", "manual", "none"])
def test_no_call_that_syncs_is_made_in_the_thread_of_the_loop(
    tmp_path: Path, kind: Kind, durability: str
) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability=durability))
        async with kind.aio(witness) as log:
            for _ in range(3):
                await log.append(b"x")
                await log.commit(b"y")
                await log.append_many([b"z"])
                await log.sync()
        in_loop = {name for name, thread in witness.calls if thread == threading.get_ident()}
        syncing = {"append_many", "close", "commit", "sync"}
        if durability == "always" or durability.startswith("bytes"):
            syncing.add("append")
        assert not in_loop & syncing
        assert witness.count("sync") == (9 if durability == "always" else 6)
        assert witness.plain.closed

    run(main)


LOGGING = [
    name for name in ALL if "slow_sync" in inspect.signature(KINDS[name].plain.open).parameters
]


@pytest.mark.parametrize("name", LOGGING)
@pytest.mark.parametrize("durability", ["always", "bytes:1", "interval:1", "manual"])
def test_every_sync_that_is_logged_ran_outside_of_the_loop(
    tmp_path: Path, name: str, durability: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind = KINDS[name]

    async def main() -> None:
        async with kind.create(tmp_path, durability=durability, slow_sync=0.0) as log:
            for _ in range(3):
                await log.append(b"x")
            await log.commit(b"y")
            await log.append_many([b"z"])

    with caplog.at_level(logging.WARNING, "deedbook"):
        run(main)
    told = [record for record in caplog.records if "slow sync" in record.getMessage()]
    assert told and threading.get_ident() not in {record.thread for record in told}


def test_a_log_with_many_unsynced_segments_appends_outside_of_the_loop(tmp_path: Path) -> None:
    """A log of segments syncs the oldest by itself when 16 are unsynced."""

    async def main() -> None:
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

    run(main)


@pytest.mark.parametrize("durability", ["manual", "interval:100000", "none", "bytes:1000000"])
def test_an_append_that_need_not_sync_does_not(tmp_path: Path, kind: Kind, durability: str) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability=durability) as log:
            task = asyncio.ensure_future(log.append(b"x"))
            await asyncio.sleep(0)
            assert task.done() or durability.startswith("bytes")
            await task
            assert len(log.log) == 1 and not kind.durable(log.log)
            await log.sync()
            assert kind.durable(log.log)

    run(main)


@pytest.mark.parametrize(("tasks", "each", "most"), [(2000, 1, 20), (100, 20, 60)])
@pytest.mark.parametrize("call", ["append", "commit"])
def test_tasks_share_syncs(
    tmp_path: Path, kind: Kind, call: str, tasks: int, each: int, most: int
) -> None:
    """2,000 commits of a log opened with `always` took 2,000 syncs."""

    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        async with kind.aio(witness) as log:

            async def write() -> None:
                for _ in range(each):
                    await getattr(log, call)(b"x")

            await asyncio.gather(*(write() for _ in range(tasks)))
            assert len(log.log) == tasks * each and kind.durable(log.log)
            assert 0 < witness.count("sync") <= most
            if hasattr(log.log, "stats"):
                assert log.log.stats().syncs <= most

    run(main)


def test_an_append_returns_when_its_own_record_is_durable(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="always") as log:

            async def write(i: int) -> None:
                for j in range(5):
                    count = len(log.log)
                    await log.append(b"%d-%d" % (i, j))
                    copy = kind.plain.open(log.log.path)
                    durable = copy.recovery.durable_end
                    copy.close()
                    assert durable is not None and len(log.log) > count
                    payloads = kind.payloads(log.log)
                    assert b"%d-%d" % (i, j) in payloads
                    await asyncio.sleep(0.001 * (i % 3))

            await asyncio.gather(*(write(i) for i in range(10)))
            assert kind.durable(log.log)

    run(main)


def test_many_are_appended_at_once(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="always") as log:
            follower = asyncio.ensure_future(collect(kind, log, 1000))
            appended = await log.append_many(b"%d" % i for i in range(1000))
            assert kind.durable(log.log)
            assert await follower == [b"%d" % i for i in range(1000)]
            if kind is KINDS["book"]:
                assert appended == range(1, 1001)
                assert await log.append_many([b"a", b"b"], [7, 8]) == range(1001, 1003)
                assert (await log.append(b"c", 9), log.book[1003].mug) == (1003, 9)
            else:
                assert appended == (0, log.wal.end)
            with pytest.raises(TypeError):
                await log.append_many([b"fine", 1])
            with pytest.raises(TypeError):
                await log.append(1)

    run(main)


def test_the_plain_log_is_at_hand(tmp_path: Path) -> None:
    book, wal = Book.create(tmp_path / "book"), Wal.create(tmp_path / "wal")
    assert AsyncBook(book).log is AsyncBook(book).book is book
    assert AsyncWal(wal).log is AsyncWal(wal).wal is wal
    assert repr(AsyncWal(wal)) == f"<AsyncWal of {wal!r}>"
    book.close()
    wal.close()


def test_waiting_for_a_position_to_be_durable(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            position = await log.append(b"x")
            if not hasattr(log.log, "wait_durable"):
                with pytest.raises(AttributeError):
                    await log.wait_durable(position)
                return
            assert not kind.durable(log.log)
            await asyncio.gather(*(log.wait_durable(position) for _ in range(10)))
            assert kind.durable(log.log)
            with pytest.raises(OutOfRangeError):
                await log.wait_durable(position + 1000)

    run(main)


# -- failures -------------------------------------------------------------------------------------


def test_a_cancelled_waiter_disturbs_nobody(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        async with kind.aio(witness) as log:
            witness.may_sync.clear()
            tasks = [asyncio.ensure_future(log.append(b"%d" % i)) for i in range(10)]
            await asyncio.sleep(0)
            tasks[3].cancel()  # before the sync
            while not witness.count("sync"):
                await asyncio.sleep(0.001)
            tasks[4].cancel()  # while it runs
            witness.may_sync.set()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            cancelled = [isinstance(one, asyncio.CancelledError) for one in done]
            assert [i for i, one in enumerate(cancelled) if one] == [3, 4]
            assert isinstance(await log.append(b"more"), int)
            assert len(log.log) == 11

    run(main)


def test_all_waiters_cancelled_leave_a_log_that_syncs_again(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="always") as log:
            for _ in range(3):
                tasks = [asyncio.ensure_future(log.append(b"x")) for _ in range(5)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            await log.append(b"y")
            assert len(log.log) == 16 and kind.durable(log.log)

    run(main)


def test_a_failed_sync_reaches_every_waiter_and_all_later_calls(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        log = kind.create(tmp_path, durability="always")
        await log.append(b"fine")
        tasks = [asyncio.ensure_future(log.append(b"x")) for _ in range(20)]
        await asyncio.sleep(0)
        for file in kind.files(log.log):
            os.truncate(file, 3)
        tasks[7].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(done.pop(7), asyncio.CancelledError)
        assert all(isinstance(error, Error) for error in done)
        later = [log.append(b"x"), log.commit(b"x"), log.append_many([b"x"]), log.sync()]
        for call in later:
            with pytest.raises(PoisonedError):
                await call
        with pytest.raises(KeyError, match="what is raised"):
            async with log:
                raise KeyError("what is raised")
        with pytest.raises(PoisonedError):
            await log.close()
        assert log.log.closed

    run(main)


def test_a_closed_log_refuses_every_call(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path) as log:
            await log.append(b"x")
        calls = [log.append(b"x"), log.commit(b"x"), log.append_many([b"x"]), log.sync()]
        for call in calls:
            with pytest.raises(ClosedError):
                await call
        with pytest.raises(ClosedError):
            log.follow()
        await log.close()

    run(main)


def test_closing_serves_those_who_wait(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        log = kind.aio(witness)
        witness.may_sync.clear()
        first = asyncio.ensure_future(log.append(b"1"))
        while not witness.count("sync"):
            await asyncio.sleep(0.001)
        second = asyncio.ensure_future(log.append(b"2"))
        await asyncio.sleep(0)
        closing = [asyncio.ensure_future(log.close()) for _ in range(2)]
        await asyncio.sleep(0)
        witness.may_sync.set()
        await asyncio.gather(first, second, *closing)
        assert witness.plain.closed
        with kind.plain.open(tmp_path / "log") as copy:
            assert kind.payloads(copy) == [b"1", b"2"]

    run(main)


def test_a_cancelled_close_closes(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        log = kind.aio(witness)
        witness.may_sync.clear()
        append = asyncio.ensure_future(log.append(b"1"))
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(log.close())
        await turns(2)
        closing.cancel()
        await asyncio.sleep(0)
        witness.may_sync.set()
        await append
        with pytest.raises(asyncio.CancelledError):
            await closing
        while not witness.plain.closed:
            await asyncio.sleep(0.001)

    run(main)


# -- followers ------------------------------------------------------------------------------------


class Counting(ThreadPoolExecutor):
    """A default executor that counts what it is given."""

    jobs = 0

    def submit(self, *args: Any, **options: Any) -> Any:
        self.jobs += 1
        return super().submit(*args, **options)


@pytest.mark.parametrize("mode", ["a", "r"])
def test_idle_followers_hold_no_threads(tmp_path: Path, kind: Kind, mode: str) -> None:
    """Six idle followers filled the default executor: a commit of another log took 124 ms."""

    async def main() -> None:
        default = Counting()
        asyncio.get_running_loop().set_default_executor(default)
        async with kind.create(tmp_path, durability="manual") as log:
            followed = log if mode == "a" else kind.aio.open(tmp_path / "log", "r")
            before = threading.active_count()
            tasks = [asyncio.ensure_future(collect(kind, followed)) for _ in range(100)]
            await turns()
            # Of a log that others write, one thread looks at the files for all its followers.
            assert len(own_threads()) <= (0 if mode == "a" else 4)
            assert threading.active_count() - before == len(own_threads())
            await log.append(b"seen")
            await turns()
            await log.append(b"by all")
            await turns()
            await followed.close()
            assert await asyncio.gather(*tasks) == [[b"seen", b"by all"]] * 100
        assert default.jobs == 0

    run(main)


def test_threads_that_read_for_followers_end_when_unused(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append(b"read in a thread")
            task = asyncio.ensure_future(collect(kind, log))
            while not own_threads():
                await asyncio.sleep(0.001)
            while own_threads():
                await asyncio.sleep(0.01)
            await log.append(b"and in the loop")
            await turns()
            await log.append_many([b"x" * 100_000])
            await turns()
        assert await task == [b"read in a thread", b"and in the loop", b"x" * 100_000]

    run(main)


@pytest.mark.parametrize("mode", ["a", "r"])
def test_followers_see_what_others_append(tmp_path: Path, kind: Kind, mode: str) -> None:
    """In order and once each: small and large, few and more than are read at a time."""
    sizes = [1] * 2000 + [0, 70_000, 3, 2_000_000, 5] + [300] * 700
    payloads = [b"%d" % i + b"." * size for i, size in enumerate(sizes)]

    async def main() -> None:
        log = kind.create(tmp_path, durability="manual")
        followed = log if mode == "a" else kind.aio.open(tmp_path / "log", "r")
        followers = [asyncio.ensure_future(collect(kind, followed, len(sizes))) for _ in range(3)]
        await turns(3)

        def write() -> None:
            for i, payload in enumerate(payloads):
                log.log.append(payload)
                if i % 500 == 0:
                    threading.Event().wait(0.03)

        writer = threading.Thread(target=write)
        writer.start()
        assert await asyncio.gather(*followers) == [payloads] * 3
        assert await collect(kind, followed, len(sizes)) == payloads
        writer.join()
        await log.close()
        await followed.close()

    run(main)


def test_following_begins_where_it_is_asked_to(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            positions = [await log.append(b"%d" % i) for i in range(5)]
            middle, end = log.follow(positions[3]), log.follow(positions[4])
            await anext(end)
            task = asyncio.ensure_future(anext(end))
            assert getattr(await anext(middle), kind.payload) == b"3"
            next_one = await log.append(b"5")
            assert getattr(await task, kind.payload) == b"5"
            behind = asyncio.ensure_future(anext(log.follow(next_one)))
            assert getattr(await behind, kind.payload) == b"5"

    run(main)


def test_a_follower_from_beyond_the_end(tmp_path: Path, kind: Kind) -> None:
    """A Book gets to its event some day; a WAL has no such record."""

    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append(b"1")
            task = asyncio.ensure_future(anext(log.follow(3)))
            await turns(3)
            if kind is KINDS["wal"]:
                with pytest.raises(OutOfRangeError):
                    await task
                return
            await log.append(b"2")
            await turns(3)
            assert not task.done()
            await log.append(b"3")
            assert (await task).jam == b"3"

    run(main)


def test_closing_ends_followers(tmp_path: Path, kind: Kind) -> None:
    """Closing raised `ClosedError` in tasks that nothing awaits any more: followers now just end.

    They are caught here before their first record, between two, and while a thread reads for them.
    """

    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append_many([b"x"] * 2000)
            waiting = [asyncio.ensure_future(collect(kind, log)) for _ in range(3)]
            slow = log.follow()
            await anext(slow)
            begun = log.follow()
            reading = asyncio.ensure_future(anext(begun))
            await asyncio.sleep(0)
        for got in await asyncio.gather(*waiting):
            assert set(got) <= {b"x"}
        # What was read before the close is there, and then the end, again and again.
        assert [getattr(record, kind.payload) async for record in slow] == [b"x"] * 511
        with suppress(StopAsyncIteration):
            await reading
        with pytest.raises(StopAsyncIteration):
            while True:
                await anext(begun)
        with pytest.raises(StopAsyncIteration):
            await anext(slow)

    run(main)


@pytest.mark.parametrize("mode", ["a", "r"])
def test_closing_the_plain_log_ends_followers_too(tmp_path: Path, kind: Kind, mode: str) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            await log.append(b"x")
            followed = log if mode == "a" else kind.aio.open(tmp_path / "log", "r")
            task = asyncio.ensure_future(collect(kind, followed))
            await turns()
            followed.log.close()
            assert await task == [b"x"]

    run(main)


@pytest.mark.parametrize("mode", ["a", "r"])
def test_a_cancelled_follower_loses_nothing(tmp_path: Path, kind: Kind, mode: str) -> None:
    """Cancelled while it waits, while a thread reads for it, and in between."""
    payloads = [b"%d" % i for i in range(3000)]

    async def main() -> None:
        log = kind.create(tmp_path, durability="manual")
        followed = log if mode == "a" else kind.aio.open(tmp_path / "log", "r")

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
                got.append(getattr(await task, kind.payload))
            if patience % 20 == 0:
                got.append(getattr(await anext(follower), kind.payload))
        await writer
        assert got == payloads
        await follower.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(follower)
        await followed.close()
        await log.close()

    run(main)


def test_a_follower_serves_one_task(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        async with kind.create(tmp_path, durability="manual") as log:
            follower = log.follow()
            task = asyncio.ensure_future(anext(follower))
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="another task"):
                await anext(follower)
            await follower.aclose()
            with pytest.raises(StopAsyncIteration):
                await task

    run(main)


def test_a_follower_finds_damage_behind_the_last_record(tmp_path: Path, kind: Kind) -> None:
    """Nothing grows there that could wake a follower: it looks by itself now and then."""
    single = {} if kind.plain is Book else {"single_file": True}
    whole = kind.plain.create(tmp_path / "whole", **single)
    whole.append(b"first")
    end = whole.end
    whole.append_batch([b"second", b"third"])
    [name] = kind.files(whole)
    whole.close()
    log = bytearray(Path(name).read_bytes())
    log[log.index(b"second")] ^= 1
    if kind.plain is Book:
        (tmp_path / "copy").mkdir()
        file = tmp_path / "copy" / "book.log"
    else:
        file = tmp_path / "copy"
    file.write_bytes(log[:end])

    async def main() -> None:
        async with kind.aio.open(tmp_path / "copy", "r") as reader:
            follower = reader.follow()
            assert getattr(await anext(follower), kind.payload) == b"first"
            task = asyncio.ensure_future(anext(follower))
            await turns()
            file.write_bytes(log)
            with pytest.raises(deedbook.CorruptError):
                await task
            with pytest.raises(StopAsyncIteration):
                await anext(follower)

    run(main)


# -- several logs, several loops ------------------------------------------------------------------


def test_logs_do_not_wait_for_each_other(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        slow = Witness(kind.plain.create(tmp_path / "slow", durability="always"))
        async with kind.aio(slow) as one, kind.create(tmp_path, durability="always") as other:
            slow.may_sync.clear()
            waits = asyncio.ensure_future(one.append(b"x"))
            while not slow.count("sync"):
                await asyncio.sleep(0.001)
            for _ in range(5):
                await other.append(b"y")
            assert kind.durable(other.log) and not waits.done()
            slow.may_sync.set()
            await waits

    run(main)


def test_one_loop_after_the_other(tmp_path: Path, kind: Kind) -> None:
    log = kind.create(tmp_path, durability="always")

    async def main(i: int) -> list[bytes]:
        task = asyncio.ensure_future(collect(kind, log))
        await asyncio.gather(*(log.append(b"%d" % i) for _ in range(10)))
        await turns(3)
        task.cancel()
        return await collect(kind, log, 10 * (i + 1))

    for i in range(3):
        assert run(lambda i=i: main(i))[-10:] == [b"%d" % i] * 10
    run(log.close)
    assert log.log.closed


def test_a_follower_goes_on_in_another_loop(tmp_path: Path, kind: Kind) -> None:
    log = kind.create(tmp_path, durability="manual")
    log.log.append_many([b"%d" % i for i in range(2000)])
    follower = log.follow()

    async def some() -> list[bytes]:
        got = [getattr(await anext(follower), kind.payload) for _ in range(500)]
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(0)), 0)
        return got

    got = [payload for _ in range(4) for payload in run(some)]
    assert got == [b"%d" % i for i in range(2000)]
    run(log.close)


def test_two_loops_at_once_are_refused(tmp_path: Path, kind: Kind) -> None:
    log = kind.create(tmp_path)
    used, may_end = threading.Event(), threading.Event()

    async def hold() -> None:
        await log.append(b"x")
        used.set()
        while not may_end.is_set():
            await asyncio.sleep(0.001)
        await log.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    assert used.wait(PATIENCE)

    async def main() -> None:
        with pytest.raises(RuntimeError, match="another thread"):
            await log.append(b"y")

    run(main)
    may_end.set()
    thread.join(PATIENCE)
    assert len(kind.plain.open(tmp_path / "log")) == 1


def test_a_loop_that_ends_without_closing_leaves_nothing(tmp_path: Path, kind: Kind) -> None:
    witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))

    async def main() -> None:
        log = kind.aio(witness)
        witness.may_sync.clear()
        tasks = [asyncio.ensure_future(log.append(b"x")) for _ in range(3)]
        tasks += [asyncio.ensure_future(collect(kind, log)) for _ in range(3)]
        while not witness.count("sync"):
            await asyncio.sleep(0.001)

    run(main)  # cancels the tasks, while the sync goes on
    witness.may_sync.set()
    assert no_threads_are_left()
    witness.plain.close()


def test_nothing_is_written_to_stderr(tmp_path: Path, kind: Kind) -> None:
    """Warnings as errors, asyncio in debug mode: all that may be left over at the end."""
    code = f"""
import asyncio, sys
from deedbook.aio import {kind.aio.__name__} as Log

path = sys.argv[1]

async def follow(log, count=None):
    got = 0
    async for _ in log.follow():
        got += 1
        if got == count:
            break

async def closed(log):
    async with log:
        tasks = [asyncio.create_task(follow(log)) for _ in range(10)]
        tasks += [asyncio.create_task(follow(log, 5)) for _ in range(10)]
        cancelled = asyncio.create_task(follow(log))
        await asyncio.gather(*(log.append(b"%d" % i) for i in range(100)))
        cancelled.cancel()
        await asyncio.sleep(0.05)
    await asyncio.gather(*tasks)

async def left(log):
    tasks = [asyncio.create_task(follow(log)) for _ in range(10)]
    tasks += [asyncio.create_task(log.append(b"%d" % i)) for i in range(100)]
    await asyncio.sleep(float(sys.argv[2]))

async def started(main):
    asyncio.get_running_loop().slow_callback_duration = 3600.0
    await main

for name, main in (("closed", closed), ("left", left)):
    for durability in ("always", "manual", "bytes:100"):
        log = Log.create(path + "/" + name + "-" + durability, durability=durability)
        asyncio.run(started(main(log)))
        log.log.close()
print("done")
"""
    for delay in (0, 0.02):
        (tmp_path / str(delay)).mkdir()
        child = run_strictly(code, tmp_path / str(delay), delay)
        assert (child.stdout, child.stderr, child.returncode) == ("done\n", "", 0)
