"""Following: a timer for all followers of an event loop, and no thread for a waiting follower."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

from deedbook._core import Book, Deed, Pier, Record, Wal
from deedbook._errors import ClosedError, Error
from deedbook._system.threads import Worker, settled
from deedbook.aio._handle import Side

if TYPE_CHECKING:
    import concurrent.futures

    from typing_extensions import Self

T = TypeVar("T")
RecordT = TypeVar("RecordT", Deed, Record)

# Why a timer and no file notification (inotify, FSEvents, a library over them): a writer stores
# small records through a memory map, into space reserved ahead. A store through the map does not
# change the file's size, nor the file's time until the system writes the page back. No notification
# reports the store. A timer is needed in any case, and suffices.
_DELAY_FIRST = 0.001
_DELAY_LONGEST = 0.02
# The largest share of a processor for looking at the files of logs that others write.
_SHARE = 1 / 20
# After a longer wait, a follower looks for damage at the end of the log, because no append reports
# damage.
_SUSPICIOUS_AFTER = 1.0
# Threads for the reading of all followers of a loop. An unused thread ends after so many seconds.
_THREADS = 4
_UNUSED = 1.0
# The records of a single read.
_BATCH_RECORDS = 512
_BATCH_BYTES = 1 << 20
# Bytes that this handle appended since the last look lie in the page cache. Up to so many bytes,
# reading in the loop takes less time than the way to a thread and back.
_LOOP_BYTES = 64 << 10


class LogSide(Side, ABC):
    """The state of a log in an event loop: syncs, and waiting followers."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, log: Book | Wal | Pier, syncs: Worker
    ) -> None:
        super().__init__(loop, log.sync, syncs)
        self.log = log
        # Whether the log tells its end to the loop at once, as the only writer.
        self.writes = log.mode != "r"
        # The end that the last refresh found, for another log.
        self.found = 0
        self.waiting: set[Follower[Deed] | Follower[Record]] = set()

    @abstractmethod
    def ask(self) -> int:
        """The end of the log, from the log. Raises `ClosedError`."""

    @abstractmethod
    def refresh(self) -> int:
        """Take up the appends of other processes; return the end of the log. May wait."""

    def end(self) -> int:
        """The known end of the log. The call never waits for a refresh in a thread."""
        return self.ask() if self.writes or self.log.closed else self.found

    def wake(self) -> None:
        """Have all followers look."""
        waiting, self.waiting = self.waiting, set()
        for follower in waiting:
            follower._wake()

    def look(self) -> bool:
        """Wake the followers with unread records; returns whether a follower woke."""
        try:
            end = self.end()
        except Error:
            self.wake()  # they find out why
            return True
        woken = [follower for follower in self.waiting if follower._seen != end]
        for follower in woken:
            follower._wake()
        return bool(woken)

    def doubt(self, since: float) -> None:
        """Let the followers that wait since then read, even without a known record."""
        for follower in self.waiting:
            if follower._since <= since:
                follower._seen = None
                follower._wake()


class ByteSide(LogSide):
    """The side of a book or a WAL, whose end is a byte."""

    log: Book | Wal

    def __init__(self, loop: asyncio.AbstractEventLoop, log: Book | Wal, syncs: Worker) -> None:
        super().__init__(loop, log, syncs)
        self.found = 0 if log.closed else log.end

    def ask(self) -> int:
        """The byte after the last record."""
        return self.log.end

    def refresh(self) -> int:
        """Refresh the log."""
        self.log.refresh()
        return self.log.end


class PierSide(LogSide):
    """The side of a pier, whose end is the last event.

    A roll holds up all other calls of the pier while it syncs, so the loop never asks a writer's
    pier either.
    """

    log: Pier

    def __init__(self, loop: asyncio.AbstractEventLoop, log: Pier, syncs: Worker) -> None:
        super().__init__(loop, log, syncs)
        self.writes = False

    def wake(self) -> None:
        """Have all followers read."""
        for follower in self.waiting:
            follower._seen = None
        super().wake()

    def ask(self) -> int:
        """The last event."""
        return self.log.last

    def refresh(self) -> int:
        """Refresh the pier."""
        return self.log.refresh()


class Watcher:
    """Wakes the followers of an event loop. Ends with the last follower."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._readers = Worker("deedbook-follow", _THREADS)
        self._used = 0.0
        self._sides: set[LogSide] = set()
        self._delay = _DELAY_FIRST
        self._ticking = False
        self._refreshing = False
        self._refresh_at = 0.0

    @staticmethod
    def here() -> Watcher:
        """The watcher of the running loop."""
        loop = asyncio.get_running_loop()
        return _watchers.get(loop) or _watchers.setdefault(loop, Watcher(loop))

    def submit(self, job: Callable[..., T], *args: object) -> concurrent.futures.Future[T]:
        """Read in a thread."""
        self._used = self._loop.time()
        return self._readers.submit(job, *args)

    def watch(self, side: LogSide) -> None:
        """Look at this log as long as followers wait."""
        self._sides.add(side)
        self._delay = _DELAY_FIRST
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(self._delay, self._tick)

    def _tick(self) -> None:
        self._sides = {side for side in self._sides if side.waiting}
        self._ticking = bool(self._sides)
        if not self._ticking:
            return
        looked = [side.look() for side in self._sides if side.writes]
        self._delay = _DELAY_FIRST if any(looked) else min(2 * self._delay, _DELAY_LONGEST)
        self._loop.call_later(self._delay, self._tick)
        now = self._loop.time()
        others = [side for side in self._sides if not side.writes]
        if others and not self._refreshing and now >= self._refresh_at:
            refreshed = settled(self.submit(_refresh, others))
            refreshed.add_done_callback(lambda done: self._refreshed(others, *done.result()))
            self._refreshing = True
        if now - self._used > _UNUSED:
            self._readers.release()

    def _refreshed(self, sides: list[LogSide], took: float, ends: list[int | None]) -> None:
        self._refreshing = False
        now = self._loop.time()
        self._refresh_at = now + took / _SHARE
        for side, end in zip(sides, ends, strict=True):
            side.found = side.found if end is None else end
            side.doubt(now if end is None else now - _SUSPICIOUS_AFTER)
        if any([side.look() for side in sides]):
            self._delay = _DELAY_FIRST


_watchers: WeakValueDictionary[asyncio.AbstractEventLoop, Watcher] = WeakValueDictionary()


def _refresh(sides: list[LogSide]) -> tuple[float, list[int | None]]:
    """Take up the appends of other processes; returns the seconds of work, and the ends."""
    begun = time.thread_time()  # the thread may wait long for the interpreter, which costs nothing
    ends: list[int | None] = []
    for side in sides:
        try:
            ends.append(side.refresh())
        except Exception:
            ends.append(None)  # the log's followers meet the error, and raise it
    return time.thread_time() - begun, ends


@dataclass(frozen=True)
class _Source(Generic[RecordT]):
    """The place of a follower. Refers to the log, and so keeps the log's files open."""

    follow: Callable[[], Iterator[RecordT]]
    side: Callable[[], LogSide]


class Follower(Generic[RecordT]):
    """The records of a log, as appended: an asynchronous iterator, for a single task at a time.

    The iteration ends when the log is closed. You may cancel a task that waits for a record, for
    example by a timeout. No record is lost: iterate on to get the next record.
    """

    def __init__(
        self,
        follow: Callable[[], Iterator[RecordT]],
        side: Callable[[], LogSide],
        seen: int | None,
    ) -> None:
        # None after the end, because a kept follower must not keep the log's files open.
        self._source: _Source[RecordT] | None = _Source(follow, side)
        self._records: Iterator[RecordT] | None = None
        self._ready: deque[RecordT] = deque()
        self._reading: concurrent.futures.Future[None] | None = None
        self._error: Exception | None = None
        self._over = False
        self._busy = False
        self._watcher: Watcher | None = None
        self._wakeup: asyncio.Future[None] | None = None
        # End of the log before this follower had read all of it.
        self._seen = seen
        # The beginning of the wait, by the clock of the loop.
        self._since = 0.0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RecordT:
        if self._busy:
            raise RuntimeError("another task waits for the next record of this follower")
        self._busy = True
        try:
            while not self._ready:
                source = self._source
                if source is None or self._reading is None:  # else a thread may add records yet
                    self._raise_if_over()
                assert source is not None
                await self._look(source)
            return self._ready.popleft()
        finally:
            self._busy = False

    async def aclose(self) -> None:
        """End the iteration, also for a task that waits for the next record."""
        self._over = True
        self._ready = deque()
        self._wake()
        if self._reading is not None:  # a thread has the records in hand
            self._reading.add_done_callback(self._forget)
        self._forget()

    def _raise_if_over(self) -> None:
        if self._error is None and not self._over:
            return
        error, self._error, self._over = self._error, None, True
        self._forget()
        raise StopAsyncIteration if error is None else error

    def _forget(self, read: object = None) -> None:
        """Drop all references to the log. ``read`` is the reading that ended."""
        self._source = self._records = self._watcher = None

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    async def _look(self, source: _Source[RecordT]) -> None:
        """Read, or wait until there is something to read."""
        side = source.side()
        watcher = self._watcher = Watcher.here()  # which its followers keep
        if self._reading is None:
            try:
                end = side.end()
            except ClosedError:
                self._over = True
                return
            if self._seen == end:
                await self._wait(side, watcher)
                return
            if side.writes and self._seen is not None and 0 <= end - self._seen <= _LOOP_BYTES:
                await asyncio.sleep(0)  # other tasks run, however much there is to read
                self._read(source, end)
                return
            self._reading = watcher.submit(self._read, source, end)
        await settled(self._reading)
        self._reading = None

    async def _wait(self, side: LogSide, watcher: Watcher) -> None:
        loop = asyncio.get_running_loop()
        self._wakeup = loop.create_future()
        self._since = loop.time()
        side.waiting.add(self)
        watcher.watch(side)
        try:
            await self._wakeup
        finally:
            side.waiting.discard(self)
            self._wakeup = None

    def _read(self, source: _Source[RecordT], end: int) -> None:
        """Read a bounded number of records, in the loop or in a thread.

        `end`: the log's end before the read. The records land in `_ready` even if the waiting task
        is gone.
        """
        if self._over:  # it was ended before this began
            return
        ready, size = self._ready, 0
        try:
            records = self._records
            if records is None:
                records = self._records = source.follow()
            for record in records:
                ready.append(record)
                size += len(record)
                if len(ready) >= _BATCH_RECORDS or size >= _BATCH_BYTES:
                    break
            else:
                self._seen = end
        except ClosedError:
            self._over = True
        except Exception as error:
            self._error = error
