"""Backups of event stores: beside a writer that compacts and deletes, and after any failure."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import deedbook
import tiers
from deedbook import EventStore, backup
from deedbook._backup import _target
from log_bytes import flip
from nostr_events import event
from places import SUPPORT

MIB = 1 << 20
# Every third step at least is one that fails: else the few states that are refused could be missed.
FAULT_STRIDE = max(1, min(tiers.number("FAULT_STRIDE"), 3))
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
    assert copy.verify().ok
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


def test_a_backup_that_fails_at_any_step_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, first = tmp_path / "store", tmp_path / "first"
    with EventStore.open(source, "a", durability="manual", **SIZES) as store:
        store.append_many(event(number) for number in range(600))
        store.commit()
        backup(source, first)
        before = {found.id for found in store}
        store.append_many(event(number) for number in range(600, 1200))
        store.compact()
        store.append_many(event(number) for number in range(1200, 1300))
        both = before & {found.id for found in store}
    sync, rename, calls, failed, refused = os.fsync, Path.replace, 0, 0, 0
    # Syncing what is there already is no step of the copying: test_backup_files.py has it.
    monkeypatch.setattr(_target, "_sync_all", lambda *target: None)

    def step() -> None:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise OSError("cut here")

    def fsync(fd: int) -> None:
        step()
        sync(fd)

    def replace(old: Path, new: Path) -> Path:
        step()
        return rename(old, new)

    for fail_at in count(1, FAULT_STRIDE):
        calls = 0
        target = tmp_path / f"copy{fail_at}"
        shutil.copytree(first, target)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            patched.setattr(Path, "replace", replace)
            try:
                backup(source, target)
            except OSError as error:
                assert str(error) == "cut here"
                failed += 1
        done = calls < fail_at
        interrupted = tmp_path / "interrupted"
        shutil.copytree(target, interrupted)
        with EventStore.open(interrupted) as copy:
            assert both <= {found.id for found in copy}
            is_whole = copy.verify().ok
        refused += not is_whole
        if not is_whole:  # new and old files of the write-ahead log lie side by side
            with pytest.raises(deedbook.CorruptError):
                EventStore.open(interrupted, "a")
            assert not EventStore.repair(interrupted).is_loss
        with EventStore.open(interrupted, "a") as copy:
            assert copy.verify().ok and both <= {found.id for found in copy}
        shutil.rmtree(interrupted)
        backup(source, target)
        with EventStore.open(target) as copy:
            check(copy, 1299)
        shutil.rmtree(target)
        if done:
            break
    assert failed >= 10 // FAULT_STRIDE and refused >= 3 // FAULT_STRIDE


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


def test_damage_replaces_no_backup_and_other_stores_are_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "store", tmp_path / "copy"
    with EventStore.open(source, "a") as store:
        store.append_many(event(number) for number in range(100))
    backup(source, target)
    kept = {file: file.read_bytes() for file in target.rglob("*.seg")}
    flip(next(source.rglob("*.seg")), 5000)
    with pytest.raises(deedbook.CorruptError, match=r"its backup .* stays as it is"):
        backup(source, target)
    assert kept == {file: file.read_bytes() for file in target.rglob("*.seg")}
    with pytest.raises(deedbook.CorruptError, match="the backup is damaged, as the store may be"):
        backup(source, tmp_path / "new")

    with EventStore.open(target, "a") as store:
        store.append(event(100))
    with pytest.raises(deedbook.InvalidArgumentError, match="is no earlier state of"):
        backup(tmp_path / "new", target)
