"""Files of a backup: on stable storage whatever failed before, permitted as those of the log."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, Wal, backup
from deedbook._backup._files import Copier, same
from logs import write

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
NAMES = ["packed", "slots", "segments", "single", "pier", "ledger", "store"]


def read(path: Path) -> list[Any]:
    """The payloads or events of a log, of which a part may be torn."""
    with deedbook.open(path) as log:
        if isinstance(log, EventStore):
            return [event.id for event in log]
        assert not isinstance(log, Book | Wal) or log.recovery.verdict != "corrupt"
        return list(log.payloads())


class Disk:
    """Stands for ``os.fsync``: what was synced, and as it was then. It fails at one call."""

    def __init__(self, fail_at: int = 0) -> None:
        self.calls, self.fail_at = 0, fail_at
        self._synced: dict[int, tuple[int, int]] = {}

    def __call__(self, fd: int) -> None:
        self.calls += 1
        if self.calls == self.fail_at:
            raise OSError("cut here")
        facts = os.fstat(fd)
        self._synced[facts.st_ino] = (facts.st_mtime_ns, facts.st_size)

    def lost(self, top: Path) -> list[str]:
        """What a power cut may take: files, and folders with the names in them."""
        lost = []
        for path in [top, *top.rglob("*")]:
            facts = path.stat()
            is_lock = path.name in ("lock", "backup-lock")
            if not is_lock and self._synced.get(facts.st_ino) != (facts.st_mtime_ns, facts.st_size):
                lost.append(str(path.relative_to(top)))
        return lost


@posix
@pytest.mark.parametrize("name", NAMES)
def test_a_backup_that_fails_at_any_step_is_a_log_and_the_next_one_ends_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was whole was passed over, though nothing had synced it, and vouched for."""
    log = tmp_path / "log"
    write(name, log)
    (tmp_path / "first").mkdir()
    backup(log, tmp_path / "first" / "copy")
    before = read(log)
    write(name, log, 300)
    after = read(log)
    # A copy has a run of these records.
    whole = before + [one for one in after if one not in before]
    fail_at, failed = 0, True
    while failed:
        fail_at += 1
        top = tmp_path / f"top{fail_at}"
        # By cp, which syncs nothing, and keeps no times unless it is asked to.
        copy = shutil.copy2 if fail_at % 2 else shutil.copy
        shutil.copytree(tmp_path / "first", top / "in", copy_function=copy)
        disk = Disk(fail_at)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", disk)
            try:
                backup(log, top / "in" / "copy")
                failed = False
            except OSError as error:
                assert str(error) == "cut here"
            found = read(top / "in" / "copy")
            assert set(before) & set(after) <= set(found)
            begin = whole.index(found[0])
            # test_backup_store.py says how a store may differ.
            assert name == "store" or found == whole[begin : begin + len(found)]
            backup(log, top / "in" / "copy")
        assert disk.lost(top) == [], fail_at
        assert read(top / "in" / "copy") == after
        shutil.rmtree(top)
    assert fail_at > 10


@posix
@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_a_new_backup_are_synced_and_later_what_is_new(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of its own folder and of those above it were left out."""
    write(name, tmp_path / "log")
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk)
    target = tmp_path / "a" / "b" / "copy"
    target.parent.mkdir(parents=True)
    backup(tmp_path / "log", target)
    assert disk.lost(tmp_path / "a") == []
    assert os.stat(tmp_path).st_ino in disk._synced
    disk.calls = 0
    backup(tmp_path / "log", target)
    assert disk.calls == 0


@posix
@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_backup_have_the_permissions_of_the_logs(name: str, tmp_path: Path) -> None:
    """A book and all small files became their owner's alone: nobody else could read the copy."""
    log, copy = tmp_path / "here" / "log", tmp_path / "there" / "log"
    log.parent.mkdir()
    copy.parent.mkdir()
    write(name, log)
    files = [file for file in log.parent.rglob("*") if file.is_file()]
    for number, file in enumerate(files):
        file.chmod((0o664, 0o640, 0o444)[number % 3])
    if log.is_dir():
        log.chmod(0o700)
    backup(log, copy)
    # What nobody else may enter, nobody else may enter as a copy.
    assert log.is_file() or stat.S_IMODE(copy.stat().st_mode) == 0o700
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


@pytest.mark.parametrize("name", ["packed", "store"])
def test_a_log_and_its_backup_do_not_lie_in_each_other(name: str, tmp_path: Path) -> None:
    """A copy in the log's folder became a part of the log, and was copied with it."""
    log = tmp_path / "in" / "log"
    log.parent.mkdir()
    write(name, log)
    before = sorted(tmp_path.rglob("*"))
    for target in (log / "copy", log.parent, log / ".deedbook" / "copy", tmp_path):
        with pytest.raises(deedbook.InvalidArgumentError, match=r" and .* lie in each other"):
            backup(log, target)
    assert sorted(tmp_path.rglob("*")) == before
