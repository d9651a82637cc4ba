"""Events beyond a size or an age, events hidden by id, and the archive of a compaction."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from deedbook import EventStore, IoError, aio
from nostr_events import made
from shell import ok, outputs, refused

NOW = int(time.time())
HOUR = 3600


def note(number: int, kind: int = 1) -> dict[str, Any]:
    return made(f"note {number}", created_at=NOW - number * HOUR, kind=kind)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with EventStore.create(path) as store:
        store.append_many(note(number) for number in range(20))
        store.append(note(19, kind=0))
    return path


def test_retain_hides_old_and_many_events(path: Path) -> None:
    with EventStore.open(path, "a") as store:
        read: list[int] = []
        old = {"max_age": 15.5 * HOUR, "dry_run": True}
        assert store.retain(progress=read.append, **old) == 4 and read == [5]
        assert store.retain(kinds=[0], **old) == 1 and len(list(store)) == 21
        assert store.retain(max_age=15.5 * HOUR) == 4
        assert store.retain(max_bytes=10 * 4096, kinds=[1]) == 6
        assert {event.kind for event in store} == {0, 1} and len(list(store)) == 11
        assert store.compact(0).deleted == 10
        with pytest.raises(ZeroDivisionError):
            store.retain(max_bytes=0, progress=lambda _: 1 // 0)
        assert len(list(store)) == 1, "the walk had hidden its events"


def test_open_store_keeps_to_its_rules(path: Path) -> None:
    rules: dict[str, Any] = {"retain_age": 15.5 * HOUR, "retain_kinds": {0: HOUR}}
    with EventStore.open(path, "a", retain_bytes=10 * 4096, **rules) as store:
        limit = time.monotonic() + 60
        while len(list(store)) > 10 and time.monotonic() < limit:
            time.sleep(0.01)
        assert [event.kind for event in store] == [1] * 10


def test_archive_gets_segments_or_compaction_fails(path: Path, tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir()

    def full(number: int, segment: Any) -> None:
        raise OSError(28, "no room", segment)

    with EventStore.open(path, "a", archive=full) as store:
        store.retain(max_age=15.5 * HOUR)
        with pytest.raises(IoError, match="archive segment 0") as error:
            store.compact(0)
        assert isinstance(error.value.__cause__, OSError) and len(list(store)) == 17
    keep = lambda number, segment: shutil.copy(segment, copies / f"{number}.seg")  # noqa: E731
    with EventStore.open(path, "a", archive=keep) as store:
        assert store.compact(0).deleted == 4
    assert [copy.name for copy in copies.iterdir()] == ["0.seg"]


async def test_retain_works_in_asyncio(path: Path) -> None:
    async with aio.AsyncEventStore.open(path, "a", durability="always") as store:
        assert await store.retain(max_age=15.5 * HOUR, kinds=(0, 1)) == 5


def test_command_hides_events_by_rule_and_id(path: Path) -> None:
    asked = ("retain", path, "--max-age", "15h", "--kind", "1", "--kind", "0", "--json")
    assert json.loads(ok(*asked, "--dry-run"))["hidden"] == 6
    assert json.loads(ok(*asked))["hidden"] == 6
    with EventStore.open(path) as store:
        first, second = (event.id for event in list(store)[:2])
    assert (
        "would hide 2 events"
        in outputs("retain", path, "--event", first, "--event", second, "--dry-run")[0]
    )
    assert "hid 1 event;" in outputs("retain", path, "--event", first)[0]
    with EventStore.open(path) as store:
        assert len(list(store)) == 14
    for words, says in [
        (("--event", first), "no event"),
        (("--event", second, "--event", "ab" * 32), "no event"),
        (("--event", second, "--max-bytes", "1k"), "goes alone"),
        (("--kind", "1", "--event", second), "goes alone"),
        (("--kind", "1"), "give --max-bytes"),
        (("--kind", "70000", "--max-bytes", "0"), "70000"),
        (("--consumed",), "write-ahead logs and piers"),
        (("--event", "xy"), "id of 2 characters"),
    ]:
        assert says in refused("retain", path, *words)
    with EventStore.open(path) as store:
        assert len(list(store)) == 14
