"""Output under a temporary name, then a rename: a reader sees the old or the new file."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from deedbook._cli.failure import CliError, describe
from deedbook._system.durable import Unnamed

__all__ = ["refuse_within", "written_aside"]

_LINKS_MAX: Final = 40
_NAME_BYTES: Final = 100
"""The name of the temporary file has at most this many bytes of the final name."""


@contextmanager
def written_aside(path: str) -> Iterator[BinaryIO]:
    """A file that replaces ``path`` after the last byte; a failure leaves no new file.

    The new file keeps the permissions of the old file. If ``path`` is a link, the link stays, and
    the target of the link is replaced. Only links of this user, of root, or of the owner of the
    directory are followed: in a directory where all may write, a link of somebody else could lead
    to a file of this user. A pipe, a device, standard output and standard error are not replaced,
    but written directly. Raises `CliError` if writing fails, and `BrokenPipeError` if the reader
    of a pipe closed the pipe.
    """
    try:
        target = _resolved(path)
        before = _status(path)
        if before is not None and (shared := _standard(before)) is not None:
            # A replacement would lose the earlier and the later output of the shell.
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
    except BrokenPipeError:  # the reader closed the pipe
        raise
    except OSError as error:
        if getattr(error, "kind", None) is not None:  # the log's, not the file's
            raise
        raise CliError(f"cannot write {path}: {_reason(error)}", path=path) from error


def _resolved(path: str) -> str:
    """The target of a path after all links. OSError for a link of somebody else."""
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
    """`CliError` if the output file is the log, or lies in the directory of the log."""
    inside, of = os.path.realpath(path), os.path.realpath(log)
    if inside == of or (os.path.isdir(of) and inside.startswith(of + os.sep)):
        raise CliError(f"{command}: {path} lies in the log {log}; choose another file", path=log)


def _reason(error: OSError) -> str:
    return error.strerror or describe(error)


def _status(path: str) -> os.stat_result | None:
    """The status of the file at a path; None without a file. Raises OSError."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _standard(found: os.stat_result) -> int | None:
    """The descriptor of standard output or standard error, if the file is one of both."""
    for fd in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            there = os.fstat(fd)
            if stat.S_ISREG(there.st_mode) and os.path.samestat(found, there):
                return fd
    return None


def _can_be_replaced(found: os.stat_result, target: str) -> bool:
    """Whether the file is regular and has a name: an unlinked /dev/stdout has no name."""
    there = _status(target)
    return stat.S_ISREG(found.st_mode) and there is not None and os.path.samestat(found, there)


def _cut(name: str) -> str:
    """The beginning of a name, short enough for a temporary name of at most 255 bytes."""
    return os.fsencode(name)[:_NAME_BYTES].decode("utf-8", "ignore")


def _set_mode(fd: int, before: os.stat_result | None) -> None:
    """Set the mode of the replaced file, or the usual mode of a new file instead of 0600."""
    if not hasattr(os, "fchmod"):
        return
    if before is not None:
        # Without the owner, root would replace a 0600 file by a file unreadable to the user.
        with contextlib.suppress(OSError):
            os.fchown(fd, before.st_uid, before.st_gid)
        os.fchmod(fd, before.st_mode & 0o777)
        return
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(fd, 0o666 & ~mask)
