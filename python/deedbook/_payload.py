"""The payload of a record as a binary file."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import PayloadParts

__all__ = ["PayloadReader"]


class PayloadReader(io.RawIOBase):
    """The payload of a record, read in parts: the result of `Book.reader` and `Wal.reader`.

    The reader cannot seek. Before the last part, the reader compares the checksum, so a payload
    read to the end is intact. Deeds of a book in the layout ``slots`` have no checksum; the reader
    compares the lengths. ``io.BufferedReader`` serves reads of a few bytes; ``shutil.copyfileobj``
    copies the payload to a file. The log may go on, and be closed, meanwhile.
    """

    __module__ = "deedbook.reports"

    def __init__(self, parts: PayloadParts) -> None:
        self._parts = parts

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"of {self.size} bytes"
        return f"<deedbook.PayloadReader {state}>"

    @property
    def size(self) -> int:
        """Size of the whole payload, bytes."""
        return self._parts.size

    @property
    def mug(self) -> int | None:
        """The mug of the deed; None for a record of a write-ahead log."""
        return self._parts.mug

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill ``buffer`` with the next bytes; return the number, 0 at the end.

        At most 1 MiB. Raises `CorruptError` in place of the last part of a damaged payload, and
        `IoError`.
        """
        if self.closed:
            raise ValueError("I/O operation on closed file")
        return self._parts.readinto(buffer)
