"""Logs from asyncio: failed syncs, cancelled tasks, closing."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Kind, Witness, run, turns, until
from deedbook import ClosedError, Error, PoisonedError
from deedbook.aio import AsyncBook, AsyncEventStore, AsyncLedger
from test_nostr import made

pytestmark = pytest.mark.usefixtures("threads_end")


def test_a_cancelled_waiter_disturbs_no_other(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        async with kind.aio(witness) as log:
            witness.may_sync.clear()
            tasks = [asyncio.ensure_future(log.append(b"%d" % i)) for i in range(10)]
            await asyncio.sleep(0)
            tasks[3].cancel()  # before the sync
            await until(lambda: witness.count("sync"))
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


def test_closing_serves_the_tasks_that_wait(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))
        log = kind.aio(witness)
        witness.may_sync.clear()
        first = asyncio.ensure_future(log.append(b"1"))
        await until(lambda: witness.count("sync"))
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


@pytest.mark.parametrize("seconds", [0, 0.2], ids=["waiting", "done"])
@pytest.mark.parametrize(
    "make",
    [
        lambda path: AsyncBook.create(path, layout="slots"),
        lambda path: AsyncLedger.open(path, durability="always"),
        lambda path: AsyncEventStore.open(path, durability="always"),
    ],
    ids=["slots", "ledger", "nostr"],
)
def test_closing_serves_appends_in_a_thread(
    tmp_path: Path, make: Callable[[Path], Any], seconds: float
) -> None:
    """The thread had what 50 tasks appended, or was done with it and no task had heard of it: most
    of them got ClosedError for what was durable."""
    events = [json.dumps(made(str(number))).encode() for number in range(50)]

    async def main() -> None:
        handle = make(tmp_path / "log")
        tasks = [asyncio.ensure_future(handle.append(event)) for event in events]
        await asyncio.sleep(0)
        time.sleep(seconds)  # the loop stands still
        await handle.close()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [error for error in done if isinstance(error, Exception)] == []

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
        await until(lambda: witness.plain.closed)

    run(main)
