"""A request body for aiohttp: read in a thread, and given up if the server stops reading.

Importing the module needs aiohttp.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from aiohttp.payload import Payload

from deedbook._system.threads import Worker, settled
from deedbook.http._flow.encode import Prepared

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import StreamWriter

# The bytes that a server must read within the time for a byte: few, so a slow link passes.
_WRITE_BYTES = 1 << 15


class Upload(Payload):
    """An attempt to send a body, with a limit of time, because aiohttp has none."""

    def __init__(self, prepared: Prepared, worker: Worker, seconds: float) -> None:
        super().__init__(prepared)
        self.failure: Exception | None = None
        """The error of reading the body. aiohttp would report an error of the connection."""
        self.stalled = False
        """Whether the server read no byte for so many seconds, so the attempt ended the connection.
        """
        self._prepared = prepared
        self._worker = worker
        self._seconds = seconds

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the whole body. Time counts while the server is waited for, not the disk."""
        transport = cast("StreamWriter", writer).transport
        if transport is None:
            raise ConnectionResetError("the connection is lost")
        pieces = self._prepared.pieces()
        try:
            while (piece := await self._next(pieces)) is not None:
                for start in range(0, len(piece), _WRITE_BYTES):
                    with self._limited(transport):
                        await writer.write(piece[start : start + _WRITE_BYTES])
            # aiohttp would wait here without a limit; the answer has its own limit.
            with self._limited(transport):
                await writer.drain()
        except asyncio.CancelledError:
            transport.abort()  # as below
            raise

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Not there: a body may be longer than the memory."""
        raise TypeError("a body is sent in pieces")

    async def _next(self, pieces: Iterator[bytes]) -> bytes | None:
        """The next piece, read in a thread, because the read may block on a disk."""
        try:
            return await settled(self._worker.submit(next, pieces, None))
        except Exception as error:
            self.failure = error
            raise

    @contextlib.contextmanager
    def _limited(self, transport: asyncio.Transport) -> Iterator[None]:
        """While entered, the server has so many seconds to read a byte."""
        handle = asyncio.get_running_loop().call_later(self._seconds, self._give_up, transport)
        try:
            yield
        finally:
            handle.cancel()

    def _give_up(self, transport: asyncio.Transport) -> None:
        self.stalled = True
        transport.abort()  # closing would wait until the server takes what is written
