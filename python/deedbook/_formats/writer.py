"""The process that writes a log, as far as a reader can see."""

from __future__ import annotations

import os
from typing import NamedTuple

from deedbook._errors import Error
from deedbook._system.regular import is_folder, open_regular

__all__ = ["Writer", "writer_of", "writer_text"]


class Writer(NamedTuple):
    """Whether a writer holds a log's lock, as far as this machine can tell."""

    held: bool | None
    """None: not known; in another PID namespace a process has another number."""
    pid: int | None
    """Process that signed the lock last, without a release."""


def writer_of(sidecar: str) -> Writer:
    """Find the process that holds the lock in ``sidecar``, a log's ``.deedbook``.

    The search does not try the lock, because a writer that opens at the same moment would fail. A
    writer in a container has another number outside, where the system lists the lock. Inside a
    container, the system does not list a writer outside.
    """
    try:
        if not is_folder(sidecar):
            return Writer(False, None)
        with open_regular(os.path.join(sidecar, "lock")) as file:
            text = file.read(32).strip()
            inode = os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return Writer(False, None)
    except (Error, OSError):  # a link or a FIFO, which no writer makes
        return Writer(None, None)
    if not text.isdigit():
        return Writer(False if not text else None, None)
    pid = int(text)
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            owners = {owner for line in locks if (owner := _owner(line, inode)) is not None}
    except OSError:
        return Writer(None, pid)
    if str(pid) in owners:
        return Writer(True, pid)
    return Writer(None if owners else False, pid)


def _owner(line: str, inode: int) -> str | None:
    """The process of a line like ``3: FLOCK  ADVISORY  WRITE 812 08:01:4711 0 EOF``.

    None for a lock on another file, and for a process that waits: the line then has ``->``.
    """
    words = line.split()
    is_it = words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == str(inode)
    return words[4] if is_it else None


def writer_text(writer: Writer) -> str:
    """The writer in words."""
    if writer.held:
        return f"process {writer.pid}"
    if writer.held is None:
        return "not known" + (f" (signed by process {writer.pid})" if writer.pid else "")
    return "none" + (f" (process {writer.pid} left without closing)" if writer.pid else "")
