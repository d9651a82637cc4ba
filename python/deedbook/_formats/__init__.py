"""The formats, and their descriptions. The core detects the format of a path.

`FORMATS` is the registry. The command line, `deedbook.open` and Spark ask only the registry.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Literal, overload

from deedbook._core import (
    Book,
    EventStore,
    Ledger,
    Pier,
    Wal,
    _check_format,
    _detect,
    _require,
)
from deedbook._errors import InvalidArgumentError, MissingError
from deedbook._formats.book import BOOK
from deedbook._formats.info import FormatInfo, Found, Outcome
from deedbook._formats.ledger import LEDGER
from deedbook._formats.nostr import NOSTR
from deedbook._formats.pier import PIER
from deedbook._formats.wal import WAL

__all__ = [
    "FORMATS",
    "Found",
    "Outcome",
    "by_name",
    "detect",
    "find",
    "missing",
    "of_handle",
    "open",
    "require",
]

Format = Literal["book", "pier", "wal", "ledger", "nostr"]
_Mode = Literal["r", "a", "x"]
_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

FORMATS: tuple[FormatInfo, ...] = (BOOK, PIER, WAL, LEDGER, NOSTR)
"""All formats, in the order of `deedbook::detect::Kind::ALL`."""


@overload
def open(path: _Path, mode: _Mode = "r", *, format: Literal["book"], **options: Any) -> Book: ...
@overload
def open(path: _Path, mode: _Mode = "r", *, format: Literal["pier"], **options: Any) -> Pier: ...
@overload
def open(path: _Path, mode: _Mode = "r", *, format: Literal["wal"], **options: Any) -> Wal: ...
@overload
def open(
    path: _Path, mode: _Mode = "r", *, format: Literal["ledger"], **options: Any
) -> Ledger: ...
@overload
def open(
    path: _Path, mode: _Mode = "r", *, format: Literal["nostr"], **options: Any
) -> EventStore: ...
@overload
def open(
    path: _Path, mode: _Mode = "r", **options: Any
) -> Book | Pier | Wal | Ledger | EventStore: ...
def open(
    path: _Path, mode: _Mode = "r", *, format: Format | None = None, **options: Any
) -> Book | Pier | Wal | Ledger | EventStore:
    """Open the log at a path, of any format.

    ``mode`` and ``options`` are as for `Book.open`, `Pier.open`, `Wal.open`, `Ledger.open` or
    `EventStore.open`. ``format`` (``"book"``, ``"pier"``, ``"wal"``, ``"ledger"`` or ``"nostr"``)
    is needed only to create a log.

    >>> with deedbook.open("log", "x", format="wal", durability="always") as log:
    ...     log.append(b"kept")
    0
    >>> with deedbook.open("log") as log:
    ...     type(log), [record.payload for record in log]
    (<class 'deedbook.Wal'>, [b'kept'])

    Raises the errors of these calls; `InvalidArgumentError` if there is no log and no format is
    given, or several ledgers and no ``base``; `NotALogError` if the log has another format than the
    given format.
    """
    asked = None if format is None else by_name(format)
    path = os.fsdecode(path)
    found = find(path, **options)
    if asked is None and found is None:
        if mode == "r":
            require(path)
        known = " or ".join(f'"{info.name}"' for info in FORMATS)
        raise InvalidArgumentError(
            f"no log at {os.fspath(path)}: to create one, say format={known}"
        )
    if asked is None:
        assert found is not None
        asked = found.format
    elif found is not None and found.format is not asked:
        _check_format(path, asked.name)
    opened: Book | Pier | Wal | Ledger | EventStore
    opened = asked.open(os.fspath(path), mode, **options)
    return opened


def by_name(name: str) -> FormatInfo:
    """The format of a name. Raises `InvalidArgumentError`."""
    for info in FORMATS:
        if info.name == name:
            return info
    known = ", ".join(f'"{info.name}"' for info in FORMATS)
    raise InvalidArgumentError(f'format "{name}", must be one of {known}')


def find(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], **options: Any) -> Found | None:
    """The format of the log at a path; None without a log.

    ``options`` may select a log: the ``base`` of a ledger. `deedbook::detect` of the crate has the
    rules.

    Raises OSError, `NotALogError` for a book's log under another name, and `InvalidArgumentError`
    for a directory that holds several formats.
    """
    found = _detect(path, options.get("base"))
    return None if found is None else Found(by_name(found[0]), *found[1:])


def detect(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str | None:
    """The name of the format of the log at a path; None if there is no log. Raises as `find`."""
    found = find(path)
    return None if found is None else found.format.name


def require(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], **options: Any) -> Found:
    """As `find`, but `MissingError` if there is nothing."""
    found = _require(path, options.get("base"))
    return Found(by_name(found[0]), *found[1:])


def of_handle(handle: object) -> FormatInfo:
    """The format of an opened log. Raises TypeError."""
    for info in FORMATS:
        if info.is_handle(handle):
            return info
    raise TypeError(f"a log or a path is needed, not {type(handle).__name__}")


def missing(reason: str, path: str | os.PathLike[str]) -> MissingError:
    """The error for a path that leads to no log."""
    error = MissingError(errno.ENOENT, reason, os.fspath(path))
    error.path = os.fspath(path)
    return error
