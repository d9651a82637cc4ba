"""Files that are written beside their place and renamed: a reader sees the old or the new one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from deedbook._cli.failure import CliError, describe
from deedbook._durable import Unnamed

__all__ = ["refuse_within", "written_aside"]

_LINKS_MAX: Final = 40
_NAME_BYTES: Final = 100
"""At most so many bytes of a file's name are in that of the temporary file beside it."""


@contextmanager
def written_aside(path: str) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written; if anything fails, nothing is left.

    A link stays, and the file it leads to is replaced; one that was there keeps its permissions.
    Links are followed that this user, root or the owner of their directory made: in a directory
    that all may write to, anybody's would lead to a file of this user. What is there and no regular
    file (a pipe, a device), or is standard output or standard error, is
    written to as it is. Raises `CliError` if writing fails, and `BrokenPipeError` if the reader of
    a pipe went away.
    """
    try:
        target = _resolved(path)
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
        with Unnamed.beside(folder, f".{_cut(name)}.") as written:
            yield written.file
            _set_mode(written.file.fileno(), before)
            written.name(target)
    except BrokenPipeError:  # the reader went away
        raise
    except OSError as error:
        if getattr(error, "kind", None) is not None:  # the log's, not the file's
            raise
        raise CliError(f"cannot write {path}: {_reason(error)}", path=path) from error


def _resolved(path: str) -> str:
    """Where a path leads through links. OSError for a link of somebody else."""
    if os.name == "nt":
        return os.path.realpath(path)
    rest = os.path.join(os.getcwd(), path).split(os.sep)[::-1]
    at, links = os.sep, 0
    while rest:
        part = rest.pop()
        if part in ("", os.curdir):
            continue
        if part == os.pardir:
            at = os.path.dirname(at)
            continue
        there = os.path.join(at, part)
        if not os.path.islink(there):
            at = there
            continue
        links += 1
        owners = {os.geteuid(), 0, os.stat(at).st_uid}
        if links > _LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if os.lstat(there).st_uid not in owners:
            raise OSError(errno.EACCES, f"{there} is a symbolic link of another user")
        text = os.readlink(there)
        at = os.sep if os.path.isabs(text) else at
        rest += text.split(os.sep)[::-1]
    return at


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
        os.fchmod(fd, before.st_mode & 0o777)
        return
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(fd, 0o666 & ~mask)
