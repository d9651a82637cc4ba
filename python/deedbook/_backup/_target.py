"""The target of a backup: one backup has it alone, and what is there is on stable storage.

A backup that was killed, or failed, leaves bytes and names that nothing has synced, and the next
one writes nothing again that is there. So one that ends notes it, and one that finds no such note
syncs first whatever is there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deedbook._durable import sync_file, sync_folder
from deedbook._errors import LockedError
from deedbook._lock import try_lock
from deedbook._regular import is_folder, open_regular
from deedbook._sidecar import sidecar_of

__all__ = ["alone", "make_target"]


def make_target(target: Path, source: Path) -> None:
    """Make the directory of a new backup, with the permissions of the log's."""
    target.mkdir(mode=0o700)
    with contextlib.suppress(OSError):  # the disk keeps no permissions
        target.chmod(stat.S_IMODE(source.stat().st_mode) | 0o700)


@contextmanager
def alone(target: Path, is_file: bool) -> Iterator[None]:
    """Keep a second backup from a target, and begin with one that is on stable storage.

    Raises `LockedError` and OSError.
    """
    sidecar = Path(sidecar_of(str(target), is_file))
    for folder in (sidecar.parent, sidecar) if is_file else (sidecar,):
        if not is_folder(folder):
            folder.mkdir(0o700)
    with open_regular(sidecar / "backup-lock", os.O_RDWR | os.O_CREAT) as file:
        if not try_lock(file):
            raise LockedError(f"{target} is the target of another backup right now")
        # In a copy that another program made, which need not be synced, the file has another inode.
        ended = b"%d" % os.fstat(file.fileno()).st_ino
        is_durable = file.read(32) == ended
        # The note needs no sync: what a power cut leaves is on stable storage.
        file.seek(0)
        file.truncate()
        if not is_durable:
            _sync_all(target, sidecar, is_file)
        yield
        file.write(ended)


def _sync_all(target: Path, sidecar: Path, is_file: bool) -> None:
    """Sync the files of a backup, and the names in their folders and in those above."""
    folders = {sidecar, *sidecar.parents, *sidecar.resolve().parents}
    files: list[Path] = []
    if is_file:
        files += (file for file in target.parent.iterdir() if file.name.startswith(target.name))
    for folder, _, names in os.walk(sidecar if is_file else target):
        folders.add(Path(folder))
        files += (Path(folder, name) for name in names)
    device = sidecar.stat().st_dev
    for path in [*files, *folders]:
        # A backup has no files that its user cannot read, and none on another disk.
        with contextlib.suppress(PermissionError, FileNotFoundError):
            facts = path.lstat()
            if facts.st_dev != device:
                continue
            if stat.S_ISDIR(facts.st_mode):
                sync_folder(path)
            elif stat.S_ISREG(facts.st_mode):
                sync_file(path)
