"""Locks of files that end with their process, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from deedbook._errors import LockedError
from deedbook._regular import open_regular

__all__ = ["alone", "try_lock"]


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; whether no other has it locked. Raises OSError.

    On Windows it does nothing: a lock would keep readers out.
    """
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def unlock(file: IO[Any]) -> None:
    """Let go of a lock, for children as well that were forked meanwhile and have the file open."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def alone(file: Path, what: str) -> Iterator[None]:
    """While entered, do alone ``what``, as ``exports to /table``; the file has the process id.

    Raises `LockedError` with the process that does it already, and OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    # No program that is started gets the file: a JVM that outlives its driver holds nothing. A
    # child that is forked does, and holds the lock of a process that was killed.
    with open_regular(file, os.O_RDWR | os.O_CREAT, 0o666) as opened:
        if not try_lock(opened):
            text = opened.read(32).decode("ascii", "replace").strip()
            # Whoever has just got the lock may not have written it yet.
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
            # A child that was forked meanwhile has the lock, too: only its owner lets go of it.
            if os.getpid() == owner:
                opened.truncate(0)  # the name of one that is gone would mislead
                unlock(opened)
