"""Write-ahead logs for asyncio: tasks that commit at once share one fsync.

>>> import asyncio, tempfile
>>> from deedbook.aio import AsyncWal
>>> async def main():
...     async with AsyncWal.create(tempfile.mkdtemp() + "/wal") as wal:
...         lsns = await asyncio.gather(*(wal.commit(b"%d" % i) for i in range(100)))
...         return len(lsns), wal.wal.durable_end == wal.wal.end
>>> asyncio.run(main())
(100, True)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

from deedbook._core import Record, Wal

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

# Between two looks of a follower whether it is still wanted, seconds.
_PATIENCE = 0.2


class _Round:
    """One sync, and those who wait for it."""

    __slots__ = ("waiters",)

    def __init__(self) -> None:
        self.waiters: list[asyncio.Future[None]] = []

    def finish(self, error: BaseException | None) -> None:
        for waiter in self.waiters:
            if waiter.done():  # cancelled
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


class AsyncWal:
    """A :class:`deedbook.Wal` for the tasks of one event loop.

    Appends happen at once, in the loop's thread: they only store into the page cache. Syncs happen
    in a worker thread, one at a time; each serves every task that appended before it began. If one
    fails, every task that waits for it gets the error, and all later calls fail (PoisonedError).
    """

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self._next = _Round()
        self._syncing: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, path: str | PathLike[str], mode: str = "a", **options: Any) -> Self:
        """As :meth:`deedbook.Wal.open`, for appending by default."""
        return cls(Wal.open(path, mode, **options))  # type: ignore[arg-type]

    @classmethod
    def create(cls, path: str | PathLike[str], **options: Any) -> Self:
        """As :meth:`deedbook.Wal.create`."""
        return cls(Wal.create(path, **options))

    @property
    def wal(self) -> Wal:
        """The log itself, for everything that does not wait."""
        return self._wal

    def append(self, payload: Buffer) -> int:
        """Append one record and return its LSN; it survives the death of the process."""
        return self._wal.append(payload)

    async def commit(self, payload: Buffer) -> int:
        """Append one record and return its LSN once it is on stable storage.

        A task cancelled while it waits leaves its record appended, and the others undisturbed.
        """
        lsn = self._wal.append(payload)
        await self.sync()
        return lsn

    def sync(self) -> asyncio.Future[None]:
        """Wait until every record appended so far is on stable storage."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._next.waiters.append(waiter)
        if self._syncing is None:
            self._syncing = loop.create_task(self._sync_rounds())
        return waiter

    async def _sync_rounds(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            # Tasks that are ready to append do so first, and need not wait for a second sync.
            await asyncio.sleep(0)
            while self._next.waiters:
                current, self._next = self._next, _Round()
                try:
                    await loop.run_in_executor(None, self._wal.sync)
                except asyncio.CancelledError as error:
                    current.finish(error)
                    raise
                except BaseException as error:
                    current.finish(error)
                else:
                    current.finish(None)
                    await asyncio.sleep(0)
        finally:
            self._syncing = None
            left, self._next = self._next, _Round()
            if left.waiters:
                left.finish(asyncio.CancelledError())

    async def follow(self, start: int | None = None) -> AsyncIterator[Record]:
        """The records from ``start`` (default: the first) on, waiting for more, for ever.

        Each step that has to wait does so in a worker thread.
        """
        loop = asyncio.get_running_loop()
        records = self._wal.follow(start, timeout=_PATIENCE)
        while True:
            record = await loop.run_in_executor(None, next, records, None)
            if record is not None:
                yield record

    async def close(self) -> None:
        """Wait for the sync under way, then close the log."""
        if self._syncing is not None:
            await asyncio.wait([self._syncing])
        await asyncio.get_running_loop().run_in_executor(None, self._wal.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.close()
        except Exception:
            # What is being raised tells more than what follows from it.
            if exc_type is None:
                raise
