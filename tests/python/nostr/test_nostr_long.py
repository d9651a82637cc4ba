"""Long work on an event store: progress, interrupts and their leftovers; reading through maps."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from deedbook import EventStore
from nostr_events import made
from shell import ok, outputs

COUNT = 3000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 12 MB in two segments, with every third event replaced."""
    path = tmp_path / "store"
    with EventStore.create(path, segment_bytes=10 << 20, durability="manual") as store:
        store.append_many(event(number) for number in range(COUNT))
    return path


def event(number: int) -> dict[str, Any]:
    kind = 10002 if number % 3 == 0 else 1
    return made(f"{number} " * 600, created_at=1_700_000_000 + number, kind=kind)


@pytest.mark.parametrize("work", ["compact", "reindex"])
def test_an_interrupt_ends_it(path: Path, work: str) -> None:
    # Background jobs of a shell ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with EventStore.open(path, "a") as store, pytest.raises(KeyboardInterrupt):
            # On a busy machine the signal may come before `start` returns.
            threading.Timer(0.002, signal.raise_signal, (signal.SIGINT,)).start()
            for _ in range(1000):
                getattr(store, work)()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_compaction_is_due_from_the_ratio_on(path: Path) -> None:
    calls: list[tuple[int, int]] = []
    with EventStore.open(path, compaction_ratio=0.5) as store:
        found = store.fragmentation(progress=lambda done, total: calls.append((done, total)))
        assert not store.compaction_due() and store.compaction_ratio == 0.5
    assert len(calls) > 5 and calls[-1][0] == calls[-1][1]
    assert [one.segment for one in found] == [0, 1] and all(0.3 < one.share < 0.4 for one in found)
    dropped = sum(one.replaced for one in found)
    assert dropped == COUNT // 3 - 1 and sum(one.kept for one in found) == COUNT - dropped
    with EventStore.open(path, "a", compaction_ratio=0.5) as store:
        assert store.compact().segments == []
    # The store keeps the ratio, and the commands go by it.
    assert json.loads(ok("compact", "--json", path))["replaced"] == 0
    with EventStore.open(path, "a", compaction_ratio=0.2):
        pass
    due = b"\n2 segments, and what a compaction would drop; a compaction is due\n"
    assert due in ok("stats", "--top", 1, path)
    assert json.loads(ok("compact", "--json", path))["replaced"] == dropped
    out, err = outputs("compact", path)
    assert "no segment of which 20% is deleted" in out and err == ""
    facts = json.loads(ok("stats", "--json", path))
    assert facts["compaction_due"] is False
    assert [one["dead_bytes"] for one in facts["segments"]] == [0] * len(facts["segments"])


def test_a_store_is_read_through_maps(path: Path) -> None:
    with EventStore.open(path) as store, EventStore.open(path, mapped_reads=True) as mapped:
        assert list(mapped) == list(store)
