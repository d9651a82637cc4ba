"""Logs for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from deedbook._core import Book, Deed, Durability, Pier, Record, Wal
from deedbook._system.threads import settled
from deedbook.aio._follow import ByteSide, Follower, LogSide, PierSide, RecordT
from deedbook.aio._handle import AsyncHandle, opening

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import Positions, Stats

LogT = TypeVar("LogT", bound=Book | Wal | Pier)
DeedsT = TypeVar("DeedsT", bound=Book | Pier)

# A log syncs a segment by itself after 16 newer segments. Well before, appends go to a thread until
# the next sync.
_SEGMENTS_UNSYNCED = 8
# More bytes than any record needs in addition to the payload.
_FRAMING = 32


def _size_of(payload: Buffer) -> int:
    """The bytes of a payload. TypeError for another object."""
    if type(payload) is bytes:
        return len(payload)
    if isinstance(payload, str):
        raise TypeError("bytes are needed, not str: encode it")
    return memoryview(payload).nbytes


class AsyncLog(AsyncHandle[LogT, LogSide], Generic[LogT, RecordT]):
    """A log for the tasks of a single event loop at a time.

    Appends happen at once, in the loop's thread, because an append only stores into the page cache.
    A thread makes the appends that may sync, or wait for a sync as in layout ``slots``, and the
    first append to a closed log. Another thread makes the syncs, one at a time. Each sync serves
    every task that appended before the sync began. If a sync fails, every waiting task gets the
    error, and all later calls fail (`PoisonedError`). Cancelling a waiting task leaves the record
    appended, and the other tasks undisturbed.
    """

    def __init__(self, log: LogT) -> None:
        super().__init__(log, log.durability)
        # Only `always` leaves the sync to the caller: after bytes any append may sync.
        self._may_sync = isinstance(log.durability, Durability)
        # The known number of bytes to append here before an append may sync.
        self._room: float = -1
        # The first append to a closed log stores the mark of an open log, and syncs the mark.
        self._has_begun = log.recovery.mark != "used"
        # Appends that wait for their thread. A later append does not overtake.
        self._queued = 0
        self._append_one: Callable[..., int] = (
            partial(log.append, sync=False) if self._always else log.append
        )

    @property
    def log(self) -> LogT:
        """The log itself, for all calls that do not wait."""
        return self._handle

    def stats(self) -> Stats:
        """Counters of this handle since its opening. The call does not wait."""
        return self._handle.stats()

    async def wait_durable(self, position: int) -> None:
        """Wait until the record at a position is on stable storage; syncs if nothing else does."""
        self._here()
        await settled(self._syncs.submit(self._handle.wait_durable, position))

    def follow(self, start: int | None = None) -> Follower[RecordT]:
        """The records from ``start`` (default: the first) on, waiting for more until the close.

        A waiting follower holds no thread. `ClosedError` if the log is closed already.
        """
        follow = cast(Any, partial(self._handle.follow, start, timeout=0.0))
        return Follower(follow, self._here, self._seen_by(start))

    @abstractmethod
    def _seen_by(self, start: int | None) -> int | None:
        """The end of the log, if this handle knows of no record for a follower from there on."""

    def _room_after(self, size: int) -> float:
        """Bytes to append after these bytes before an append may sync; negative if one is due."""
        return -1 if self._may_sync else math.inf

    async def _append(self, durable: bool, payload: Buffer, *tag: int) -> int:
        """Append, and with `durable` wait for a sync that began later."""
        side = self._here()
        size = _size_of(payload)
        self._room -= size + _FRAMING
        if self._room < 0 and self._has_begun:
            self._room = self._room_after(size)
        if self._room < 0 or self._queued:
            self._queued += 1
            try:
                position = await settled(self._appends.submit(self._append_one, payload, *tag))
            finally:
                self._queued -= 1
            self._has_begun = True
        else:
            position = self._append_one(payload, *tag)
        if side.waiting:
            side.wake()
        if durable:
            await side.rounds.join()
        return position

    async def _append_all(self, append: Callable[[], Positions[int]]) -> Positions[int]:
        """Append many, in a thread."""
        side = self._here()
        appended = await settled(self._appends.submit(append))
        side.wake()
        return appended


class _AsyncDeeds(AsyncLog[DeedsT, Deed]):
    """Appending to a book or a pier."""

    async def append(self, payload: Buffer, mug: int = 0) -> int:
        """Append a deed and return the event number.

        The deed survives a crash of the process. With durability ``"always"``, the default, the
        call returns once the deed is on stable storage.
        """
        return await self._append(self._always, payload, mug)

    async def append_many(
        self,
        payloads: Iterable[Buffer] | object,
        mugs: Iterable[int] | None = None,
        *,
        atomic: bool = False,
        event: int | None = None,
        epoch: int | None = None,
    ) -> Positions[int]:
        """`append_many` of the plain log, in a thread of this handle. The thread iterates."""
        append = self._handle.append_many
        return await self._append_all(
            lambda: append(payloads, mugs, atomic=atomic, event=event, epoch=epoch)
        )

    async def commit(self, payload: Buffer, mug: int = 0) -> int:
        """Append a deed and return the event number once the deed is on stable storage."""
        return await self._append(True, payload, mug)


class AsyncBook(_AsyncDeeds[Book]):
    """A :class:`deedbook.Book` for the tasks of an event loop: see :class:`AsyncLog`."""

    open = staticmethod(
        opening(Book.open, lambda call: AsyncBook(call()), "As `deedbook.Book.open`; at once.")
    )
    create = staticmethod(
        opening(Book.create, lambda call: AsyncBook(call()), "As `deedbook.Book.create`; at once.")
    )

    def __init__(self, log: Book) -> None:
        super().__init__(log)
        # In layout `slots` an append waits for a running sync.
        self._may_sync = self._may_sync or log.layout == "slots"

    @property
    def book(self) -> Book:
        """The book itself, for all calls that do not wait."""
        return self._handle

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> LogSide:
        return ByteSide(loop, self._handle, self._syncs)

    def _seen_by(self, start: int | None) -> int | None:
        last = self._handle.last
        is_at_end = self._handle.bounds is None or (start is not None and start > last)
        return self._handle.end if is_at_end else None


class AsyncPier(_AsyncDeeds[Pier]):
    """A :class:`deedbook.Pier` for the tasks of an event loop: see :class:`AsyncLog`.

    A thread of the pier makes all appends, because an append waits while the pier rolls.
    """

    open = staticmethod(
        opening(Pier.open, lambda call: AsyncPier(call()), "As `deedbook.Pier.open`; at once.")
    )
    create = staticmethod(
        opening(Pier.create, lambda call: AsyncPier(call()), "As `deedbook.Pier.create`; at once.")
    )

    def __init__(self, log: Pier) -> None:
        super().__init__(log)
        self._may_sync = True

    @property
    def pier(self) -> Pier:
        """The pier itself. Any call waits while the pier rolls: call the pier in a thread."""
        return self._handle

    async def roll(self) -> int:
        """:meth:`deedbook.Pier.roll` in the thread of appends, after all earlier appends."""
        self._here()
        return await settled(self._appends.submit(self._handle.roll))

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> LogSide:
        return PierSide(loop, self._handle, self._syncs)

    def _seen_by(self, start: int | None) -> int | None:
        # A closed pier raises the error; an open pier may be rolling.
        return self._handle.last if self._handle.closed else None


class AsyncWal(AsyncLog[Wal, Record]):
    """A :class:`deedbook.Wal` for the tasks of an event loop: see :class:`AsyncLog`."""

    open = staticmethod(
        opening(Wal.open, lambda call: AsyncWal(call()), "As `deedbook.Wal.open`; at once.")
    )
    create = staticmethod(
        opening(Wal.create, lambda call: AsyncWal(call()), "As `deedbook.Wal.create`; at once.")
    )

    @property
    def wal(self) -> Wal:
        """The log itself, for all calls that do not wait."""
        return self._handle

    async def append(self, payload: Buffer) -> int:
        """Append a record and return the LSN.

        The record survives a crash of the process. With durability ``"always"`` the call returns
        once the record is on stable storage.
        """
        return await self._append(self._always, payload)

    async def append_many(
        self, payloads: Iterable[Buffer] | object, *, atomic: bool = False
    ) -> Positions[int]:
        """:meth:`deedbook.Wal.append_many` in a thread of the log. The thread iterates."""
        return await self._append_all(lambda: self._handle.append_many(payloads, atomic=atomic))

    async def commit(self, payload: Buffer) -> int:
        """Append a record and return the LSN once the record is on stable storage."""
        return await self._append(True, payload)

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> LogSide:
        return ByteSide(loop, self._handle, self._syncs)

    def _seen_by(self, start: int | None) -> int | None:
        end = self._handle.end
        return end if (self._handle.head if start is None else start) == end else None

    def _room_after(self, size: int) -> float:
        segment_bytes = self._handle.segment_bytes
        if self._may_sync or segment_bytes is None:
            return super()._room_after(size)
        unsynced = self._handle.end - (self._handle.durable_end or 0) + size
        # Others append, too, so ask again for each segment.
        return min(_SEGMENTS_UNSYNCED * segment_bytes - unsynced, segment_bytes)
