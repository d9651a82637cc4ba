"""Several logs in one loop, one log in several loops, and loops that just end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import PATIENCE, Collected, Kind, Witness, no_threads_are_left, run, turns, until

pytestmark = pytest.mark.usefixtures("threads_end")


def run_strictly(code: str, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONASYNCIODEBUG": "1"},
    )


def test_logs_do_not_wait_for_each_other(tmp_path: Path, kind: Kind) -> None:
    async def main() -> None:
        slow = Witness(kind.plain.create(tmp_path / "slow", durability="always"))
        async with kind.aio(slow) as one, kind.create(tmp_path, durability="always") as other:
            slow.may_sync.clear()
            waits = asyncio.ensure_future(one.append(b"x"))
            await until(lambda: slow.count("sync"))
            for _ in range(5):
                await other.append(b"y")
            assert kind.durable(other.log) and not waits.done()
            slow.may_sync.set()
            await waits

    run(main)


def test_one_loop_after_the_other(tmp_path: Path, kind: Kind) -> None:
    log = kind.create(tmp_path, durability="always")

    async def main(i: int) -> list[bytes]:
        first = Collected(kind, log)
        await asyncio.gather(*(log.append(b"%d" % i) for _ in range(10)))
        await turns(3)
        first.task.cancel()
        return await Collected(kind, log, 10 * (i + 1)).task

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
        await until(lambda: may_end.is_set())
        await log.close()

    thread = threading.Thread(target=asyncio.run, args=(hold(),))
    thread.start()
    assert used.wait(PATIENCE)

    async def main() -> None:
        with pytest.raises(RuntimeError, match="another thread"):
            await log.append(b"y")

    try:
        run(main)
    finally:
        may_end.set()
        thread.join(PATIENCE)
    assert len(kind.plain.open(tmp_path / "log")) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
@pytest.mark.parametrize("syncs", [False, True])
def test_closing_in_a_forked_child_is_refused(
    tmp_path: Path, kind: Kind, syncs: bool, run_child: Any
) -> None:
    """`close` in a forked child waited for a thread, or a sync, that only the parent had."""
    code = f"""
import asyncio, os, sys
from deedbook import ForkedError
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


def test_a_loop_that_ends_without_closing_leaves_nothing(tmp_path: Path, kind: Kind) -> None:
    witness = Witness(kind.plain.create(tmp_path / "log", durability="always"))

    async def main() -> None:
        log = kind.aio(witness)
        witness.may_sync.clear()
        tasks = [asyncio.ensure_future(log.append(b"x")) for _ in range(3)]
        tasks += [Collected(kind, log).task for _ in range(3)]
        await until(lambda: witness.count("sync"))

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
