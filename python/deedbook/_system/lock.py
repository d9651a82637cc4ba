"""Locks of files. A lock ends with the process, after any death."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from deedbook._errors import LockedError
from deedbook._system.regular import open_regular

__all__ = ["alone", "try_lock"]


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file until the close; return whether the lock was free. Raises OSError.

    On Windows the call does nothing, because a lock would keep readers out.
    """
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def unlock(file: IO[Any]) -> None:
    """Release a lock, also for forked children that have the file open."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def alone(file: Path, what: str) -> Iterator[None]:
    """While entered, do alone ``what``, as ``exports to /table``; the file has the process id.

    Raises `LockedError` with the process that holds the lock, and OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # No started program inherits the file: a JVM that outlives its driver holds no lock. A forked
    # child inherits the file, and holds the lock of a killed parent.
    with open_regular(file, os.O_RDWR | os.O_CREAT, 0o666) as opened:
        if not try_lock(opened):
            text = opened.read(32).decode("ascii", "replace").strip()
            # A new holder may not have written its process id yet.
            who = f"process {text}" if text.isdecimal() else "another process"
            error = LockedError(f"{who} {what} already (lock {file})")
            error.path, error.holder = str(file), int(text) if text.isdecimal() else None
            raise error
        owner = os.getpid()
        opened.truncate(0)
        opened.write(b"%d\n" % owner)
        opened.flush()
        try:
            yield
        finally:
            # A forked child has the lock, too, but only the owner releases.
            if os.getpid() == owner:
                opened.truncate(0)  # the name of one that is gone would mislead
                unlock(opened)
