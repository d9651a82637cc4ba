"""Several logs in one loop, one log in several loops, and loops that just end."""

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import PATIENCE, Handle, Witness, no_threads_are_left, run, until

pytestmark = pytest.mark.usefixtures("threads_end")


async def test_logs_do_not_wait_for_each_other(path: Path, tmp_path: Path, handle: Handle) -> None:
    slow, plain = Witness(handle.make(path)), handle.make(tmp_path / "other")
    async with handle.of(slow) as one, handle.of(plain) as other:
        slow.may_go.clear()
        waits = asyncio.ensure_future(one.append(handle.record(1)))
        await until(slow.count)
        for number in range(5):
            await other.append(handle.record(number))
        assert handle.is_durable(plain) and not waits.done()
        slow.may_go.set()
        await waits


def test_async_handles_serve_consecutive_but_not_concurrent_loops(
    path: Path, handle: Handle
) -> None:
    log = handle.of(handle.make(path))
    used, may_end = threading.Event(), threading.Event()

    async def some(first: int) -> None:
        numbers = range(first, first + 10)
        await asyncio.gather(*(log.append(handle.record(number)) for number in numbers))

    async def hold() -> None:
        await some(20)
        used.set()
        await until(may_end.is_set)
        await log.close()

    run(lambda: some(0))
    run(lambda: some(10))
    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    assert used.wait(PATIENCE)

    async def main() -> None:
        for call in (log.append(handle.record(99)), log.sync(), log.append_many([])):
            with pytest.raises(RuntimeError, match="another thread"):
                await call

    try:
        run(main)
    finally:
        may_end.set()
        thread.join(PATIENCE)
    assert sorted(handle.found(path)) == list(range(30))


def test_a_follower_goes_on_in_another_loop(tmp_path: Path, kind: Handle) -> None:
    log = kind.create(tmp_path, durability="manual")
    log.log.append_many([b"%d" % i for i in range(2000)])
    follower = log.follow()

    async def some() -> list[bytes]:
        got = [kind.payload(await anext(follower)) for _ in range(500)]
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(asyncio.sleep(0)), 0)
        return got

    got = [payload for _ in range(4) for payload in run(some)]
    assert got == [b"%d" % i for i in range(2000)]
    run(log.close)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
@pytest.mark.parametrize("syncs", [False, True])
def test_closing_in_a_forked_child_is_refused(
    tmp_path: Path, kind: Handle, syncs: bool, run_child: Any
) -> None:
    code = f"""
import asyncio, os, sys
from deedbook import Durability, ForkedError
from deedbook.aio import {kind.aio.__name__} as Log

log = Log.create(sys.argv[1], durability="always")
loop = asyncio.new_event_loop()
async def syncing():
    log._here().rounds.join()
    assert log._here().rounds.busy
loop.run_until_complete(syncing() if {syncs} else log.append_many([b"x"]))
child = os.fork()
if child == 0:
    try:
        loop.run_until_complete(asyncio.wait_for(log.close(), 20))
    except ForkedError:
        os._exit(7)
    finally:
        os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
loop.run_until_complete(log.close())
loop.close()
"""
    done = run_child(code, tmp_path / "log")
    assert (done.stdout, done.returncode) == ("7\n", 0), done.stderr


def test_a_loop_that_ends_without_closing_leaves_nothing(path: Path, handle: Handle) -> None:
    witness = Witness(handle.make(path))

    async def follow(log: Any) -> None:
        async for _ in log.follow():
            pass

    async def main() -> None:
        log = handle.of(witness)
        witness.may_go.clear()
        tasks = [asyncio.ensure_future(log.append(handle.record(n))) for n in range(3)]
        if hasattr(log, "follow"):
            tasks += [asyncio.ensure_future(follow(log)) for _ in range(3)]
        await until(witness.count)
        assert not any(task.done() for task in tasks[:3])

    run(main)  # cancels the tasks, while the sync goes on
    witness.may_go.set()
    assert no_threads_are_left()
    witness.plain.close()
    assert handle.found(path) == [0, 1, 2]


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_process_exits_silently_with_open_or_closed_logs(
    tmp_path: Path, kind: Handle, seconds: float
) -> None:
    """Warnings as errors, asyncio in debug mode: all that may be left over at the end."""
    code = f"""
import asyncio, sys, deedbook
from deedbook.aio import {kind.aio.__name__} as Log

async def read(log):
    async for _ in log.follow():
        pass

async def closed(log):
    asyncio.get_running_loop().slow_callback_duration = 3600.0
    async with log:
        tasks = [asyncio.create_task(read(log)) for _ in range(10)]
        cancelled = [asyncio.create_task(read(log)), asyncio.create_task(log.append(b"x"))]
        await asyncio.gather(*(log.append(b"%d" % i) for i in range(100)))
        for task in cancelled:
            task.cancel()
        await asyncio.sleep({seconds})
    await asyncio.gather(*tasks)

async def left(log):
    asyncio.get_running_loop().slow_callback_duration = 3600.0
    tasks = [asyncio.create_task(read(log)) for _ in range(10)]
    tasks += [asyncio.create_task(log.append(b"%d" % i)) for i in range(100)]
    await asyncio.sleep({seconds})

for durability in ("always", "manual", deedbook.Durability.bytes(100)):
    for main in (closed, left):
        log = Log.open(sys.argv[1] + str(durability)[:2], "a", durability=durability)
        asyncio.run(main(log))
        log._handle.close()
print("done")
"""
    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, tmp_path / "log"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONASYNCIODEBUG": "1"},
    )
    assert (child.stdout, child.stderr, child.returncode) == ("done\n", "", 0)
