"""An event store from asyncio: no call waits in the loop, syncs are shared, order is kept."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Witness, own_threads, run
from deedbook import ClosedError, EventStore, InvalidArgumentError
from deedbook.aio import AsyncEventStore
from test_nostr import made

pytestmark = pytest.mark.usefixtures("threads_end")

DURABILITIES = [None, "always", "interval:1", "manual", "none"]


class Slow(Witness):
    """A store whose commits wait for the test."""

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name != "commit":
            return value

        def commit() -> None:
            assert self.may_sync.wait(30)
            value()

        return commit


def note(number: int) -> dict[str, Any]:
    return made(f"note {number}", created_at=1_700_000_000 + number)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_the_loop_makes_no_call_that_may_wait(path: Path, durability: str | None) -> None:
    async def main() -> None:
        witness: Any = Witness(EventStore.create(path, durability=durability))
        async with AsyncEventStore(witness, always=durability == "always") as store:
            for number in range(20):
                assert (await store.append(note(number))).what == "stored"
            outcomes = await store.append_many([note(number) for number in range(15, 30)])
            assert [outcome.stored for outcome in outcomes] == [False] * 5 + [True] * 10
            await store.commit()
            found = await store.get(note(3)["id"])
            assert found is not None and found.location is not None
            assert (await store.read(found.location)).content == "note 3"
            assert (await store.get(found.location)) == found
            assert [e.content for e in await store.query({"limit": 2})] == ["note 29", "note 28"]
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
            assert len(calls) == 4 and all(done == total for done, total in calls)
        assert not own_threads() and witness.plain.closed
        in_loop = {name for name, thread in witness.calls if thread == threading.get_ident()}
        assert in_loop == set()

    run(main)
    with EventStore.open(path) as store:
        contents = [event.content for event in store]
    assert contents == [f"note {number}" for number in range(31) if number != 3]


def test_tasks_that_commit_at_once_share_a_sync(path: Path) -> None:
    async def main() -> None:
        witness: Any = Slow(EventStore.create(path, durability="manual"))
        async with AsyncEventStore(witness, always=True) as store:
            witness.may_sync.clear()
            appends = [asyncio.ensure_future(store.append(note(n))) for n in range(50)]
            while witness.count("append") < 50:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            assert not any(append.done() for append in appends), "nothing is durable yet"
            witness.may_sync.set()
            assert all(outcome.stored for outcome in await asyncio.gather(*appends))
            assert 1 <= witness.count("commit") <= 3
        assert [event.content for event in EventStore.open(path)] == [
            f"note {number}" for number in range(50)
        ]

    run(main)


def test_flags_and_imports_are_synced_as_appends_are(path: Path) -> None:
    """With "always" both returned before anything was synced: a power cut took it."""

    async def main() -> None:
        async with AsyncEventStore.open(path, "x", durability="always") as store:
            outcome = await store.append(note(0))
            assert outcome.location is not None and store.store.unsynced_bytes == 0
            await store.set_flags(outcome.location, deleted=True)
            assert store.store.unsynced_bytes == 0
            report = await store.import_json(io.BytesIO(json.dumps(note(1)).encode()))
            assert report.stored == 1 and store.store.unsynced_bytes == 0

    run(main)


def test_what_is_refused_is_raised_where_it_was_asked_for(path: Path) -> None:
    async def main() -> None:
        store = AsyncEventStore.open(path, "x", durability="always")
        wrong = {**note(1), "id": "00" * 32}
        good, bad = await asyncio.gather(
            store.append(note(0)), store.append(wrong), return_exceptions=True
        )
        assert isinstance(bad, InvalidArgumentError) and not isinstance(good, BaseException)
        assert "AsyncEventStore of <deedbook.EventStore" in repr(store)
        assert store.store.get(note(0)["id"]) is not None
        await store.close()
        for call in (store.append(note(2)), store.get(note(0)["id"]), store.commit()):
            with pytest.raises(ClosedError):
                await call
        await store.close()

    run(main)


def test_a_cancelled_task_leaves_its_event_and_the_others_alone(path: Path) -> None:
    async def main() -> None:
        async with AsyncEventStore.open(path) as store:
            tasks = [asyncio.ensure_future(store.append(note(number))) for number in range(20)]
            await asyncio.sleep(0)
            tasks[7].cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(done[7], asyncio.CancelledError)
            assert sum(isinstance(one, BaseException) for one in done) == 1
            await store.commit()
            assert await store.get(note(7)["id"]) is not None

    run(main)


def test_the_options_of_the_store_are_those_of_the_core(path: Path) -> None:
    good = {
        "batch_interval": 0.5,
        "batch_bytes": 1 << 20,
        "wal_segment_bytes": 10 << 20,
        "compaction_ratio": 0.5,
    }
    with EventStore.open(path, "a", **good):
        pass
    for name, wrong, says in [
        ("batch_interval", 2.0, "batch interval in ms 2000, may be 10 to 1000"),
        ("batch_interval", -1.0, "batch_interval must be 0 seconds or more"),
        ("batch_bytes", 1000, "batch size 1000, may be"),
        ("wal_segment_bytes", 1 << 20, "size of a WAL file"),
        ("compaction_ratio", 0.9, "compaction ratio 0.9, may be 0.1 to 0.5"),
    ]:
        options: dict[str, Any] = {name: wrong}
        with pytest.raises(InvalidArgumentError, match=says):
            EventStore.open(path, "a", **options)
    # A fifth of the bytes is compacted by default; half of them, where that was asked for.
    with EventStore.open(path, "a", compaction_ratio=0.5) as store:
        store.append_many(note(number) for number in range(10))
        for event in list(store)[:3]:
            assert event.location is not None
            store.set_flags(event.location, deleted=True)
        assert store.compact(dry_run=True).segments == []
    with EventStore.open(path, "a") as store:
        assert store.compact(dry_run=True).deleted == 3
