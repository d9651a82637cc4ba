"""Files that are written beside their place and renamed: a reader sees the old or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from deedbook.cli.failure import CliError, describe

__all__ = ["refuse_within", "written_aside"]

_NAME_BYTES: Final = 100
"""At most so many bytes of a file's name are in that of the temporary file beside it."""


@contextmanager
def written_aside(path: str) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written; if anything fails, nothing is left.

    A link stays, and the file it leads to is replaced; one that was there keeps its mode. What is
    there and no regular file (a pipe, a device), or is standard output or standard error, is
    written to as it is. Raises `CliError` if writing fails, and `BrokenPipeError` if the reader of
    a pipe went away.
    """
    aside: str | None = None
    try:
        target = os.path.realpath(path)
        before = _status(path)
        if before is not None and (shared := _standard(before)) is not None:
            # Replacing it would lose what the shell wrote before, and what it writes after.
            with open(os.dup(shared), "wb") as file:
                yield file
            return
        if before is not None and not _can_be_replaced(before, target):
            with open(path, "wb") as file:
                yield file
            return
        folder, name = os.path.split(target)
        fd, aside = tempfile.mkstemp(prefix=f".{_cut(name)}.", dir=folder)
        with open(fd, "wb") as file:
            yield file
            file.flush()
            _set_mode(file.fileno(), before)
            os.fsync(file.fileno())  # else a power cut could leave the name without the bytes
        os.replace(aside, target)
        aside = None
    except BrokenPipeError:  # the reader went away
        raise
    except OSError as error:
        if getattr(error, "kind", None) is not None:  # the log's, not the file's
            raise
        raise CliError(f"cannot write {path}: {_reason(error)}", path=path) from error
    finally:
        if aside is not None:
            with contextlib.suppress(OSError):
                os.unlink(aside)


def refuse_within(command: str, log: str, path: str) -> None:
    """`CliError` if a file to be written is the log, or in its directory."""
    inside, of = os.path.realpath(path), os.path.realpath(log)
    if inside == of or (os.path.isdir(of) and inside.startswith(of + os.sep)):
        raise CliError(f"{command}: {path} lies in the log {log}; choose another file", path=log)


def _reason(error: OSError) -> str:
    return error.strerror or describe(error)


def _status(path: str) -> os.stat_result | None:
    """The status of what a path leads to; None if nothing is there. Raises OSError."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _standard(found: os.stat_result) -> int | None:
    """Standard output or standard error, if it is this file."""
    for fd in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            there = os.fstat(fd)
            if stat.S_ISREG(there.st_mode) and os.path.samestat(found, there):
                return fd
    return None


def _can_be_replaced(found: os.stat_result, target: str) -> bool:
    """Whether it is a regular file that has a name: an unlinked /dev/stdout has none."""
    there = _status(target)
    return stat.S_ISREG(found.st_mode) and there is not None and os.path.samestat(found, there)


def _cut(name: str) -> str:
    """The beginning of a name, short enough for a temporary name of at most 255 bytes."""
    return os.fsencode(name)[:_NAME_BYTES].decode("utf-8", "ignore")


def _set_mode(fd: int, before: os.stat_result | None) -> None:
    """Set the mode of the file that is replaced, or that of a new file instead of 0600."""
    if not hasattr(os, "fchmod"):
        return
    if before is not None:
        # If root replaced a file of mode 0600 without this, its owner could not read it.
        with contextlib.suppress(OSError):
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, stat.S_IMODE(before.st_mode))
        return
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(fd, 0o666 & ~mask)
