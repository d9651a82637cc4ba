"""Which format a path holds: for the command line and for Spark."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import Literal

from deedbook import InvalidArgumentError, MissingError, NotALogError

Format = Literal["book", "wal"]

_BOOK_LOG = "book.log"
_BOOK_MAGIC = bytes.fromhex("4b4f4f42")
_SEGMENT = re.compile(r"[0-9]{20}\.wal")
_WAL_HEAD = "head"
_SIDECAR = ".deedbook"


def detect(path: str | os.PathLike[str]) -> Format | None:
    """The format of the log at a path; None if there is no log.

    A book is a directory with ``book.log``, or that file. A WAL is a directory with segments
    ``%020d.wal`` or a ``head``, or any other file: whether its bytes are a log, opening it tells.
    A log that is gone is known by what lies beside it, so that opening it says what was lost.

    Raises OSError, `NotALogError` for a book's log under another name, and `InvalidArgumentError`
    for a directory that holds both formats.
    """
    path = os.fspath(path)
    try:
        names = os.listdir(path)
    except FileNotFoundError:
        directory, name = os.path.split(os.path.abspath(path))
        return _of_sidecar(os.path.join(directory, _SIDECAR, name))
    except NotADirectoryError:
        return _of_file(path)
    segments = sorted(filter(_SEGMENT.fullmatch, names))
    if _BOOK_LOG in names:
        if segments:
            raise InvalidArgumentError(
                f"{path} holds both a book ({_BOOK_LOG}) and a WAL ({segments[0]}):"
                " move one of them to a directory of its own"
            )
        return "book"
    if segments or _WAL_HEAD in names:
        return "wal"
    return _of_sidecar(os.path.join(path, _SIDECAR))


def require(path: str | os.PathLike[str]) -> Format:
    """As `detect`, but `MissingError` if there is no log."""
    found = detect(path)
    if found is None:
        there = os.path.lexists(path)
        reason = "no log there (looked for book.log and WAL segments)" if there else None
        raise missing(reason or os.strerror(errno.ENOENT), path)
    return found


def missing(reason: str, path: str | os.PathLike[str]) -> MissingError:
    """The error for a path that leads to no log."""
    error = MissingError(errno.ENOENT, reason, os.fspath(path))
    error.path = os.fspath(path)
    return error


def _of_file(path: str) -> Format:
    if os.path.basename(path) == _BOOK_LOG:
        return "book"
    # Opening anything else than a regular file could wait for somebody to write; the core refuses.
    if stat.S_ISREG(os.lstat(path).st_mode):
        with open(path, "rb") as file:
            magic = file.read(len(_BOOK_MAGIC))
        if magic == _BOOK_MAGIC:
            error = NotALogError(
                f"{path} is the log of a book, but not named {_BOOK_LOG}; a book is a directory"
            )
            error.path = path
            raise error
    return "wal"


def _of_sidecar(sidecar: str) -> Format | None:
    """The format of a log of which only ``.deedbook`` is left."""
    try:
        with open(os.path.join(sidecar, "settings"), "rb") as file:
            return "wal" if file.readline(64) == b"format wal\n" else None
    except OSError:
        return "book" if os.path.exists(os.path.join(sidecar, "mark")) else None
