"""An event store from asyncio: no call waits in the loop, what is synced, what is refused."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest

from aio_kinds import Witness, note, own_threads
from deedbook import EventStore, InvalidArgumentError
from deedbook.aio import AsyncEventStore

pytestmark = pytest.mark.usefixtures("threads_end")

DURABILITIES = [None, "always", "interval:1", "manual", "none"]


@pytest.mark.parametrize("durability", DURABILITIES)
async def test_the_loop_makes_no_call_that_may_wait(path: Path, durability: str | None) -> None:
    witness: Any = Witness(EventStore.create(path, durability=durability))
    async with AsyncEventStore(witness, always=durability == "always") as store:
        for number in range(20):
            assert (await store.append(note(number))).what == "stored"
        outcomes = await store.append_many([note(number) for number in range(15, 30)])
        assert [outcome.stored for outcome in outcomes] == [False] * 5 + [True] * 10
        await store.commit()
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
        assert len(calls) == 4 and all(done == total for done, total in calls)
    assert not own_threads() and witness.plain.closed
    assert witness.in_loop() == set()
    with EventStore.open(path) as store:
        contents = [event.content for event in store]
    assert contents == [str(number) for number in range(31) if number != 3]


async def test_flags_and_imports_are_synced_as_appends_are(path: Path) -> None:
    """With "always" both returned before anything was synced: a power cut took it."""
    async with AsyncEventStore.open(path, "x", durability="always") as store:
        outcome = await store.append(note(0))
        assert outcome.location is not None and store.store.unsynced_bytes == 0
        await store.set_flags(outcome.location, deleted=True)
        assert store.store.unsynced_bytes == 0
        report = await store.import_json(io.BytesIO(json.dumps(note(1)).encode()))
        assert report.stored == 1 and store.store.unsynced_bytes == 0


async def test_what_is_refused_is_raised_where_it_was_asked_for(path: Path) -> None:
    async with AsyncEventStore.open(path, "x", durability="always") as store:
        good, bad = await asyncio.gather(
            store.append(note(0)),
            store.append({**note(1), "id": "00" * 32}),
            return_exceptions=True,
        )
        assert isinstance(bad, InvalidArgumentError) and not isinstance(good, BaseException)
        assert store.store.get(note(0)["id"]) is not None


def test_the_options_of_the_store_are_those_of_the_core(path: Path) -> None:
    good = {
        "batch_interval": 0.5,
        "batch_bytes": 1 << 20,
        "wal_segment_bytes": 10 << 20,
        "compaction_ratio": 0.5,
    }
    EventStore.open(path, "a", **good).close()
    wrong: dict[str, Any] = {
        "batch_interval": 2.0,
        "batch_bytes": 1000,
        "wal_segment_bytes": 1 << 20,
        "compaction_ratio": 0.9,
    }
    for name, value in [*wrong.items(), ("batch_interval", -1.0)]:
        with pytest.raises(InvalidArgumentError):
            EventStore.open(path, "a", **{name: value})
    # A fifth of the bytes is compacted by default; half of them, where that was asked for.
    with EventStore.open(path, "a", compaction_ratio=0.5) as store:
        store.append_many(note(number) for number in range(10))
        for event in list(store)[:3]:
            assert event.location is not None
            store.set_flags(event.location, deleted=True)
        assert store.compact(dry_run=True).segments == []
    with EventStore.open(path, "a") as store:
        assert store.compact(dry_run=True).deleted == 3
