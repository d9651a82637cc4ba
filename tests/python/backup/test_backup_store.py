"""Backups of event stores: beside a writer that compacts and deletes, and of written copies."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tiers
from deedbook import EventStore, backup
from nostr_events import event
from places import SUPPORT

MIB = 1 << 20
SIZES: dict[str, Any] = {"segment_bytes": 10 * MIB, "wal_segment_bytes": 10 * MIB}
# The process of the writer says what is acknowledged.
WRITER = f"""
import sys
from itertools import count
from deedbook import EventStore
sys.path.insert(0, sys.argv[2])
from nostr_events import event
with EventStore.open(sys.argv[1], "a", durability="always", **{SIZES}) as store:
    for number in count():
        store.append(event(number))
        if number % 150 == 149:
            store.checkpoint()
        if number % 700 == 699:
            store.compact()
        print(number, flush=True)
"""


def check(copy: EventStore, acknowledged: int) -> int:
    """The copy has what was acknowledged and counts; returns the number of its events."""
    assert EventStore.verify(copy.path).ok
    found = {found.id for found in copy}
    for number in range(acknowledged + 1):
        is_there = event(number)["id"] in found
        if number % 10 == 5:
            assert is_there or acknowledged + 50 > number + 2, number
            assert not (is_there and number + 2 <= acknowledged), f"note {number} is deleted"
        elif number % 10 != 3:
            assert is_there, number
    kept = [found for found in copy if found.kind == 10002]
    assert acknowledged < 3 or len(kept) == 1
    assert all(found.created_at - 1_700_000_000 >= acknowledged - 9 for found in kept)
    return len(found)


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_a_backup_beside_a_writer_has_what_was_acknowledged(tmp_path: Path) -> None:
    source, target = tmp_path / "store", tmp_path / "copy"
    command = [sys.executable, "-c", WRITER, str(source), str(SUPPORT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            for i in range(6 if tiers.tier() == "quick" else 12):
                for _ in range(130):
                    acknowledged = int(writer.stdout.readline())
                backup(source, target)
                # As after a crash: opening it for writing sets the flags.
                shutil.copytree(target, tmp_path / f"opened{i}")
                with EventStore.open(tmp_path / f"opened{i}", "a") as copy:
                    check(copy, acknowledged)
                shutil.rmtree(tmp_path / f"opened{i}")
        finally:
            writer.send_signal(signal.SIGKILL)
    # What a copy is for: it goes on, and without what it derives.
    again = tmp_path / "again"
    shutil.copytree(target, again)
    with EventStore.open(again, "a") as store:
        before = check(store, acknowledged)
        assert store.append(event(1_000_001)).stored
    with EventStore.open(again) as store:
        assert len(list(store)) == before + 1
    backup(source, target)
    assert backup(source, target).copied_bytes == 0


def test_the_index_of_a_copy_that_was_written_goes_with_its_events(tmp_path: Path) -> None:
    """The next backup left it: events were stored and not found."""
    source, target = tmp_path / "store", tmp_path / "copy"
    with EventStore.open(source, "a") as store:
        store.append_many(event(number) for number in range(10))
    backup(source, target)
    with EventStore.open(target, "a") as copy:
        copy.append(event(1001))
    with EventStore.open(source, "a") as store:
        for number in range(10, 30):
            store.append(event(number))
            store.checkpoint()
        ids = {found.id for found in store}
    backup(source, target)
    with EventStore.open(target, "a") as copy:
        assert {found.id for found in copy} == ids
        assert all(copy.get(id) is not None for id in ids)
        assert copy.get(event(1001)["id"]) is None
