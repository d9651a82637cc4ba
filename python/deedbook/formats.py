"""Which format a path holds: for the command line and for Spark."""

from __future__ import annotations

import os
import re
from typing import Literal

Format = Literal["book", "wal"]

_SEGMENT = re.compile(r"[0-9]{20}\.wal")
_BOOK_MAGIC = bytes.fromhex("4b4f4f42")


def detect(path: str | os.PathLike[str]) -> Format:
    """The format of the log at a path.

    A WAL is a directory with segments ``%020d.wal`` or a ``head``, or a regular file that is no
    book's. Everything else is left to the book's reader, which tells what is wrong with it.
    Raises nothing.
    """
    path = os.fspath(path)
    try:
        names = os.listdir(path)
    except NotADirectoryError:
        return _format_of_file(path)
    except OSError:
        return "book"
    if "book.log" in names:
        return "book"
    return "wal" if "head" in names or any(map(_SEGMENT.fullmatch, names)) else "book"


def _format_of_file(path: str) -> Format:
    if os.path.basename(path) == "book.log" or os.path.islink(path) or not os.path.isfile(path):
        return "book"
    try:
        with open(path, "rb") as file:
            return "book" if file.read(4) == _BOOK_MAGIC else "wal"
    except OSError:
        return "book"
