"""Files of a backup: they are the log's, and permitted as those of the log."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from deedbook import EventStore, Ledger, backup
from deedbook._backup._files import Copier, same
from test_backup import KINDS, payload
from test_backup_store import event

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
NAMES = ["packed", "slots", "segments", "single", "pier", "ledger", "store"]


def write(name: str, path: Path, first: int = 0) -> None:
    """Append to a log, or make it."""
    if name == "store":
        with EventStore.open(path, "a", durability="manual") as store:
            store.append_many(event(number) for number in range(first, first + 10))
        return
    if name == "ledger":
        log = Ledger.open(path)
    else:
        kind, options = KINDS[name]
        log = kind.open(path, "a", **options)
    with log:
        log.append_many(payload(number) for number in range(first, first + 300))


@posix
@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_backup_have_the_permissions_of_the_logs(name: str, tmp_path: Path) -> None:
    """A book and all small files became their owner's alone: nobody else could read the copy."""
    log, copy = tmp_path / "here" / "log", tmp_path / "there" / "log"
    log.parent.mkdir()
    write(name, log)
    files = [file for file in log.parent.rglob("*") if file.is_file()]
    for number, file in enumerate(files):
        file.chmod((0o664, 0o640, 0o444)[number % 3])
    backup(log, copy)
    found = 0
    for file in files:
        copied = copy.parent / file.relative_to(log.parent)
        if copied.exists() and copied.name != "lock":
            mode = stat.S_IMODE(file.stat().st_mode) | 0o600
            assert (copied.name, stat.S_IMODE(copied.stat().st_mode)) == (copied.name, mode)
            found += 1
    assert found >= 2 or name == "ledger"


def test_files_of_one_size_and_time_are_compared_again(tmp_path: Path) -> None:
    """What was found of them was kept: a change under the same time was no change."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"a page")
    times = one.stat().st_atime_ns, one.stat().st_mtime_ns
    copier = Copier(lambda read: None)
    for content in (b"a page", b"b page"):
        one.write_bytes(content)
        os.utime(one, ns=times)
        new = copier.staged(one, other)
        if new is not None:
            new.replace(other)
            os.utime(other, ns=times)
        assert same(one, other) and other.read_bytes() == content


def test_a_backup_of_a_store_removes_what_is_a_stores_only(tmp_path: Path) -> None:
    """Whatever else lay in the folder of the copy was removed with what the store had no more."""
    write("store", tmp_path / "store")
    backup(tmp_path / "store", tmp_path / "copy")
    kept = [tmp_path / "copy" / "README", tmp_path / "copy" / "older" / "data.7.seg"]
    gone = [tmp_path / "copy" / "data" / "segments" / "data.7.seg", tmp_path / "copy" / "wal" / "x"]
    for file in [*kept, *gone]:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"mine")
    backup(tmp_path / "store", tmp_path / "copy")
    assert [file.exists() for file in [*kept, *gone]] == [True, True, False, False]
