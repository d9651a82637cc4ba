"""A ledger from asyncio: that the loop never waits for the disk, shared syncs, order, failures."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import PATIENCE, Witness, no_threads_are_left, own_threads, run, turns, until
from deedbook import ClosedError, Error, InvalidArgumentError, Ledger, PoisonedError, TooLargeError
from deedbook.aio import AsyncLedger
from test_aio_loops import run_strictly

pytestmark = pytest.mark.usefixtures("threads_end")

DURABILITIES = ["always", "interval:1", "bytes:200", "rotate", "manual", "none"]


def events(path: Path) -> list[bytes]:
    """All events of a ledger that nobody writes, which stay in it."""
    with Ledger.open(path) as ledger:
        result = ledger.fetch()
        return [] if result is None else [e for batch in result.data for e in batch.records()]


def numbers(path: Path) -> list[int]:
    return [int(event) for event in events(path)]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_loop_makes_no_call_that_syncs_or_looks_at_files(
    tmp_path: Path, durability: str
) -> None:
    async def main() -> None:
        witness: Any = Witness(
            Ledger.open(tmp_path / "s", durability=durability, batch_records=7, max_bytes=1 << 20)
        )
        async with AsyncLedger(witness) as ledger:
            for number in range(50):
                await ledger.append(b"%d" % number)
            await ledger.append_many([b"50", b"51"])
            await ledger.append_batch([b"52", b"53"])
            await ledger.sync()
            assert await ledger.has_data()
            result = await ledger.fetch()
            assert result is not None and sum(batch.count for batch in result.data) == 54
            await ledger.remove(result.removable)
            await ledger.append(b"more")
            await ledger.reset()
            assert not await ledger.has_data()
        assert not own_threads() and witness.plain.closed
        in_loop = {name for name, thread in witness.calls if thread == threading.get_ident()}
        assert in_loop == {"try_append"}

    run(main)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_append_in_the_loop_is_one_write(tmp_path: Path, durability: str) -> None:
    """What needs more than that is refused, and changes nothing."""
    options: dict[str, Any] = {"durability": durability, "batch_records": 3, "slow_sync": 0.0}
    with Ledger.open(tmp_path / "s", **options) as ledger:
        assert not ledger.try_append(b"0"), "there is no file yet"
        ledger.append(b"0")
        syncs = ledger.stats().log.syncs
        assert ledger.try_append(b"1")
        assert not ledger.try_append(b"2"), "it would finish the file"
        ledger.append(b"2")
        assert not ledger.try_append(b"3")
        if not durability.startswith(("interval", "rotate", "manual")):
            assert ledger.stats().log.syncs - syncs == (durability == "always")
        for wrong, error in ((b"", InvalidArgumentError), (b"x" * (1 << 20) + b"x", TooLargeError)):
            with pytest.raises(error):
                ledger.try_append(wrong)
        with pytest.raises(TypeError):
            ledger.try_append("text")  # type: ignore[arg-type]
    with pytest.raises(ClosedError):
        ledger.try_append(b"4")
    assert numbers(tmp_path / "s") == [0, 1, 2]


def test_an_append_in_the_loop_neither_syncs_nor_counts(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a", durability="bytes:100") as ledger:
        ledger.append(b"x" * 40)
        assert ledger.try_append(b"x" * 40) and not ledger.try_append(b"x" * 40)
        ledger.append(b"x" * 40)
        assert ledger.try_append(b"x" * 40), "synced by the append before"
    full: dict[str, Any] = {"batch_bytes": 200, "max_bytes": 300}
    for on_full in ("reject", "drop_oldest"):
        with Ledger.open(tmp_path / on_full, on_full=on_full, **full) as ledger:
            ledger.append(b"x" * 92)
            ledger.append(b"x" * 120)
            ledger.append(b"x" * 52)
            assert not ledger.try_append(b"x" * 52), "there is no room"
            assert ledger.stats().dropped_events == ledger.stats().rejected_events == 0


@pytest.mark.parametrize("durability", ["always", "interval:1"])
def test_the_loop_goes_on_while_syncs_fetches_and_other_processes_take_their_time(
    tmp_path: Path, durability: str
) -> None:
    """Each of them is held up for as long as the loop needs for a thousand turns."""
    fcntl = pytest.importorskip("fcntl", reason="needs POSIX")
    may_fetch = threading.Event()

    def header() -> bytes:
        assert may_fetch.wait(PATIENCE)
        return b"["

    async def main() -> None:
        plain = Ledger.open(tmp_path / "s", durability=durability, header=header, batch_records=2)
        witness: Any = Witness(plain)
        async with AsyncLedger(witness) as ledger:
            await ledger.append(b"0")
            witness.may_sync.clear()
            syncing = asyncio.ensure_future(ledger.sync())
            await until(lambda: witness.count("sync") == (2 if durability == "always" else 1))
            fetching = asyncio.ensure_future(ledger.fetch())
            await until(lambda: witness.count("fetch"))
            for _ in range(1000):
                await asyncio.sleep(0)
            held = os.open(tmp_path / "s", os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)  # as another process that looks at the files
            appending = [asyncio.ensure_future(ledger.append(b"%d" % n)) for n in range(1, 4)]
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not any(task.done() for task in (syncing, fetching, *appending))
            os.close(held)
            witness.may_sync.set()
            may_fetch.set()
            await asyncio.gather(syncing, fetching, *appending)

    run(main)
    assert numbers(tmp_path / "s") == [0, 1, 2, 3]


def test_tasks_share_syncs(tmp_path: Path) -> None:
    """All that was appended while a sync took its time is made durable by the next one."""

    async def main() -> None:
        witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always"))
        async with AsyncLedger(witness) as ledger:
            witness.may_sync.clear()
            appending = [asyncio.ensure_future(ledger.append(b"x")) for _ in range(2000)]
            await until(lambda: witness.plain.stats().log.records == 2000)
            assert not any(task.done() for task in appending)
            witness.may_sync.set()
            await asyncio.gather(*appending)
            assert 0 < witness.count("sync") <= 2
            assert witness.plain.stats().log.syncs <= 2
        assert len(events(tmp_path / "s")) == 2000

    run(main)


def test_an_append_returns_when_its_own_event_is_durable(tmp_path: Path) -> None:
    async def main() -> None:
        witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always", batch_records=5))
        async with AsyncLedger(witness) as ledger:

            async def write(number: int) -> None:
                for _ in range(10):
                    before = witness.count("sync")
                    await ledger.append(b"x")
                    assert witness.count("sync") > before, "a sync that began after the call"
                    await asyncio.sleep(0.001 * (number % 3))

            await asyncio.gather(*(write(number) for number in range(20)))

    run(main)


@pytest.mark.parametrize("durability", ["always", "none"])
def test_events_are_in_the_order_of_the_calls(tmp_path: Path, durability: str) -> None:
    """One that goes to the thread, for a new file, is not overtaken by one that need not."""

    async def main() -> None:
        async with AsyncLedger.open(
            tmp_path / "s", durability=durability, batch_records=7
        ) as ledger:
            await asyncio.gather(*(ledger.append(b"%d" % n) for n in range(1500)))

    run(main)
    assert numbers(tmp_path / "s") == list(range(1500))


def test_an_endless_iterable_holds_up_no_fetch(tmp_path: Path) -> None:
    may_end = threading.Event()

    def endless() -> Any:
        yield b"first" * 100_000
        assert may_end.wait(PATIENCE)

    async def main() -> None:
        async with AsyncLedger.open(tmp_path / "s") as ledger:
            appending = asyncio.ensure_future(ledger.append_many(endless()))
            while (result := await ledger.fetch()) is None:
                await asyncio.sleep(0.001)
            await ledger.remove(result.removable)
            may_end.set()
            await appending

    run(main)
    assert events(tmp_path / "s") == []


# -- failures -------------------------------------------------------------------------------------


def test_cancelled_appends_disturb_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always"))
        async with AsyncLedger(witness) as ledger:
            witness.may_sync.clear()
            tasks = [asyncio.ensure_future(ledger.append(b"%d" % i)) for i in range(10)]
            await asyncio.sleep(0)
            tasks[3].cancel()  # before the sync
            await until(lambda: witness.count("sync"))
            tasks[4].cancel()  # while it runs
            witness.may_sync.set()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            cancelled = [isinstance(one, asyncio.CancelledError) for one in done]
            assert [i for i, one in enumerate(cancelled) if one] == [3, 4]
            await ledger.append(b"10")

    run(main)
    assert numbers(tmp_path / "s") == list(range(11)), "a cancelled task leaves its event appended"


def test_a_failed_sync_reaches_every_waiter_and_all_later_appends(tmp_path: Path) -> None:
    async def main() -> None:
        ledger = AsyncLedger.open(tmp_path / "s", durability="always")
        await ledger.append(b"fine")
        tasks = [asyncio.ensure_future(ledger.append(b"x")) for _ in range(20)]
        await asyncio.sleep(0)
        (tmp_path / "s" / "0-events").unlink()
        tasks[7].cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(done.pop(7), asyncio.CancelledError)
        assert all(isinstance(error, Error) for error in done)
        later = [ledger.append(b"x"), ledger.append_many([b"x"]), ledger.append_batch([b"x"])]
        for call in (*later, ledger.sync()):
            with pytest.raises(PoisonedError):
                await call
        assert await ledger.fetch() is None, "what there is can still be sent"
        with pytest.raises(KeyError, match="what is raised"):
            async with ledger:
                raise KeyError("what is raised")
        assert ledger.ledger.closed

    run(main)


def test_a_closed_ledger_refuses_every_call(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncLedger.open(tmp_path / "s") as ledger:
            await ledger.append(b"x")
            with pytest.raises(TypeError):
                await ledger.append("text")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError):
                await ledger.append(b"")
        calls = [ledger.append(b"x"), ledger.append_many([b"x"]), ledger.append_batch([b"x"])]
        calls += [ledger.sync(), ledger.remove([]), ledger.reset()]
        for call in (*calls, ledger.fetch(), ledger.has_data()):
            with pytest.raises(ClosedError):
                await call
        await ledger.close()
        assert repr(ledger) == f"<AsyncLedger of {ledger.ledger!r}>"

    run(main)


def test_closing_serves_the_tasks_that_wait(tmp_path: Path) -> None:
    async def main() -> None:
        witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always", batch_records=3))
        ledger = AsyncLedger(witness)
        witness.may_sync.clear()
        first = asyncio.ensure_future(ledger.append(b"0"))
        await until(lambda: witness.count("sync"))
        rest = [asyncio.ensure_future(ledger.append(b"%d" % n)) for n in range(1, 50)]
        await asyncio.sleep(0)
        closing = [asyncio.ensure_future(ledger.close()) for _ in range(2)]
        await asyncio.sleep(0)
        witness.may_sync.set()
        await asyncio.gather(first, *rest, *closing)
        assert witness.plain.closed

    run(main)
    assert numbers(tmp_path / "s") == list(range(50))


def test_a_cancelled_close_closes(tmp_path: Path) -> None:
    async def main() -> None:
        witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always"))
        ledger = AsyncLedger(witness)
        witness.may_sync.clear()
        append = asyncio.ensure_future(ledger.append(b"1"))
        await until(lambda: witness.count("sync"))
        closing = asyncio.ensure_future(ledger.close())
        await turns(2)
        closing.cancel()
        await asyncio.sleep(0)
        witness.may_sync.set()
        await append
        with pytest.raises(asyncio.CancelledError):
            await closing
        await until(lambda: witness.plain.closed)

    run(main)


def test_a_cancelled_task_closes_its_ledger(tmp_path: Path) -> None:
    opened: list[AsyncLedger] = []

    async def work() -> None:
        async with AsyncLedger.open(tmp_path / "s", durability="always") as ledger:
            opened.append(ledger)
            for number in range(1_000_000):
                await ledger.append(b"%d" % number)

    async def main() -> None:
        task = asyncio.ensure_future(work())
        await until(lambda: opened and opened[0].ledger.stats().log.records > 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert opened[0].ledger.closed

    run(main)
    assert numbers(tmp_path / "s") == list(range(len(events(tmp_path / "s"))))


# -- loops ----------------------------------------------------------------------------------------


def test_one_loop_after_the_other_but_not_two_at_once(tmp_path: Path) -> None:
    ledger = AsyncLedger.open(tmp_path / "s", durability="always")
    used, may_end = threading.Event(), threading.Event()

    async def some() -> None:
        await asyncio.gather(*(ledger.append(b"1") for _ in range(10)))

    async def hold() -> None:
        await ledger.append(b"2")
        used.set()
        await until(may_end.is_set)
        await ledger.close()

    run(some)
    run(some)
    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    assert used.wait(PATIENCE)

    async def main() -> None:
        for call in (ledger.append(b"3"), ledger.fetch(), ledger.sync(), ledger.append_batch([])):
            with pytest.raises(RuntimeError, match="another thread"):
                await call

    try:
        run(main)
    finally:
        may_end.set()
        thread.join(PATIENCE)
    assert len(events(tmp_path / "s")) == 21


def test_a_loop_that_ends_without_closing_leaves_nothing(tmp_path: Path) -> None:
    witness: Any = Witness(Ledger.open(tmp_path / "s", durability="always"))

    async def main() -> None:
        ledger = AsyncLedger(witness)
        witness.may_sync.clear()
        tasks = [asyncio.ensure_future(ledger.append(b"x")) for _ in range(3)]
        await until(lambda: witness.count("sync"))
        assert not any(task.done() for task in tasks)

    run(main)  # cancels the tasks, while the sync goes on
    witness.may_sync.set()
    assert no_threads_are_left()
    witness.plain.close()
    assert len(events(tmp_path / "s")) == 3


def test_nothing_is_written_to_stderr(tmp_path: Path) -> None:
    """Warnings as errors, asyncio in debug mode: all that may be left over at the end."""
    code = """
import asyncio, sys
from deedbook.aio import AsyncLedger

async def closed(ledger):
    async with ledger:
        await asyncio.gather(*(ledger.append(b"%d" % i) for i in range(100)))
        await ledger.remove((await ledger.fetch()).removable)
        asyncio.create_task(ledger.append(b"x")).cancel()

async def left(ledger):
    tasks = [asyncio.create_task(ledger.append(b"%d" % i)) for i in range(100)]
    tasks.append(asyncio.create_task(ledger.fetch()))
    await asyncio.sleep(0.01)

async def started(main):
    asyncio.get_running_loop().slow_callback_duration = 3600.0
    await main

for name, main in (("closed", closed), ("left", left)):
    for durability in ("always", "interval:5", "none"):
        path = f"{sys.argv[1]}/{name}-{durability}"
        ledger = AsyncLedger.open(path, durability=durability, batch_records=9)
        asyncio.run(started(main(ledger)))
        ledger.ledger.close()
print("done")
"""
    child = run_strictly(code, tmp_path)
    assert (child.stdout, child.stderr, child.returncode) == ("done\n", "", 0)


# -- sending --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["plain", "asynchronous"])
def test_a_sender_takes_either_kind_of_ledger(tmp_path: Path, which: str) -> None:
    pytest.importorskip("aiohttp")
    from deedbook.http import AsyncSender
    from deedbook.http.endpoint import Endpoint

    async def main(endpoint: Endpoint) -> None:
        async with AsyncLedger.open(tmp_path / "s", durability="always") as ledger:
            store = ledger if which == "asynchronous" else ledger.ledger
            async with AsyncSender(store, endpoint.url, interval_seconds=0.01) as sender:
                await asyncio.gather(*(ledger.append(b"%d" % n) for n in range(300)))
                assert await sender.drain(PATIENCE)
            assert not await ledger.has_data()

    with Endpoint() as endpoint:
        run(lambda: main(endpoint))
        assert sorted(map(int, endpoint.events)) == list(range(300))
