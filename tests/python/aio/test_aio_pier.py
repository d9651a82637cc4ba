"""A pier from asyncio: appends in a thread, rolls, and followers that enter new epochs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import deedbook.aio
from aio_kinds import Collected, Witness, turns, until
from deedbook import ClosedError, OutOfRangeError, Pier
from deedbook.aio import AsyncPier
from logs import span

pytestmark = pytest.mark.usefixtures("threads_end")


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
