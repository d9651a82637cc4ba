"""Request bodies made of records: readable like a file, replayable, of known length."""

from __future__ import annotations

import io
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from deedbook.transient._envelope import Sealed

if TYPE_CHECKING:
    from typing_extensions import Buffer

CHUNK_BYTES = 1 << 16
"""A body gathers records into pieces of about this size, and holds a single piece in memory."""


class Records(Protocol):
    """Gives the payloads of the records from the first number to before the second, in order."""

    def __call__(self, start: int, stop: int, /) -> Iterator[bytes]: ...


class Body(io.RawIOBase):
    """The base of all bodies: a name, a known length, and the position of the next read."""

    def __init__(self, id: str, count: int, content_length: int, envelope: Sealed) -> None:
        self._id = id
        self._count = count
        self._length = content_length
        self._envelope = envelope
        self._position = 0

    @property
    def id(self) -> str:
        """The name of the batch or of the part, the same for each attempt."""
        return self._id

    @property
    def count(self) -> int:
        """How many records the body holds."""
        return self._count

    @property
    def content_length(self) -> int:
        """Bytes of the whole body, also after a read."""
        return self._length

    @property
    def envelope(self) -> Sealed:
        """The body's header, footer and separator."""
        return self._envelope

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True: you can repeat a failed attempt."""
        return True

    def tell(self) -> int:
        """The position of the next byte to read."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a byte; only the way to a later read costs anything. Returns the byte."""
        self._check_open()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        if whence not in base:
            raise ValueError(f"whence is {whence}, not 0, 1 or 2")
        position = base[whence] + offset
        if position < 0:
            raise ValueError(f"a body has no byte {position}")
        self._position = position
        return position

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id} of {self._count} records, {self._length} bytes>"

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the body is closed")


class BatchBody(Body):
    """A request body of records in an envelope: a :class:`deedbook.transient.Batch`.

    Each read from the beginning calls ``records`` for the payloads, so a long body also takes the
    memory of a single piece. ``payload_bytes`` is the sum of the lengths. If the records give
    another sum, reading raises `ValueError`, because a request with a wrong Content-Length would
    end in the middle, or never.
    """

    def __init__(
        self, id: str, records: Records, count: int, payload_bytes: int, envelope: Sealed
    ) -> None:
        super().__init__(id, count, envelope.length(count, payload_bytes), envelope)
        self._records = records
        self._rest: memoryview = memoryview(b"")
        self._pieces: Iterator[bytes] = iter(())
        self._reached = -1  # where the pieces are; -1: not begun

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The payloads from ``start`` to before ``stop``; the body's position stays."""
        return self._records(start, self._count if stop is None else min(stop, self._count))

    def stream(self) -> Stream:
        """The body as an object that has only ``__aiter__``, for ``httpx.AsyncClient``."""
        return Stream(lambda: BatchBody(*self._copy()))

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill ``buffer``; the number of bytes is less only at the end of the body, and then 0."""
        self._check_open()
        view = memoryview(buffer).cast("B")
        if self._position >= self._length or not view:
            return 0
        if self._reached != self._position:
            self._rewind()
        self._reached = -1  # if a record cannot be read, the next read begins again
        filled = 0
        while filled < len(view):
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = memoryview(piece)
            taken = self._rest[: len(view) - filled]
            view[filled : filled + len(taken)] = taken
            self._rest = self._rest[len(taken) :]
            filled += len(taken)
        self._position = self._reached = self._position + filled
        self._check_length(filled == 0 or self._position > self._length)
        return filled

    def close(self) -> None:
        """Forget the records that were read ahead; reading again is an error."""
        self._rest, self._pieces = memoryview(b""), iter(())
        super().close()

    def _copy(self) -> tuple[str, Records, int, int, Sealed]:
        payload_bytes = self._length - self._envelope.length(self._count, 0)
        return self._id, self._records, self._count, payload_bytes, self._envelope

    def _rewind(self) -> None:
        """Begin again, and pass over what lies before the position."""
        self._pieces = self._made()
        self._rest = memoryview(b"")
        left = self._position
        while left:
            piece = next(self._pieces, None)
            self._check_length(piece is None)
            self._rest = memoryview(piece or b"")[left:]
            left -= min(left, len(piece or b""))
        self._reached = self._position

    def _made(self) -> Iterator[bytes]:
        header, footer, separator = (
            self._envelope.header,
            self._envelope.footer,
            self._envelope.separator,
        )
        yield header
        before = b""
        gathered: list[bytes] = []
        size = 0
        for record in self._records(0, self._count):
            gathered.append(record)
            size += len(record)
            if size >= CHUNK_BYTES:
                yield before + separator.join(gathered)
                before, gathered, size = separator, [], 0
        if gathered:
            yield before + separator.join(gathered)
        yield footer

    def _check_length(self, wrong: bool) -> None:
        if wrong:
            raise ValueError(f"{self!r} has other records than when it was made")


class Stream:
    """A body that has only ``__aiter__``: each iteration begins at the beginning.

    Pieces are read in the loop's thread, a few dozen KiB at a time.
    """

    def __init__(self, body: Callable[[], Body]) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._body() as body:
            while piece := body.read(CHUNK_BYTES):
                yield piece
