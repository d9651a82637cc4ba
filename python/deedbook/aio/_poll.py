"""Following a store whose appends no handle announces: a thread looks for records now and then."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from deedbook._errors import ClosedError
from deedbook._system.threads import settled
from deedbook.aio._follow import Watcher

if TYPE_CHECKING:
    import concurrent.futures

    from typing_extensions import Self

T = TypeVar("T")

_DELAY_FIRST = 0.001
_DELAY_LONGEST = 0.02
# The records of a single read.
_BATCH_RECORDS = 512


class PollingFollower(Generic[T]):
    """The records of a store, as appended: an asynchronous iterator, for a single task at a time.

    The iteration ends when the store is closed. You may cancel a task that waits for a record, for
    example by a timeout. No record is lost: iterate on to get the next record. The
    followers of an event loop share four threads.
    """

    def __init__(self, follow: Callable[[], Iterator[T]], is_closed: Callable[[], bool]) -> None:
        # None after the end, because a kept follower must not keep the files open.
        self._follow: Callable[[], Iterator[T]] | None = follow
        self._is_closed = is_closed
        self._records: Iterator[T] | None = None
        self._ready: deque[T] = deque()
        self._reading: concurrent.futures.Future[None] | None = None
        self._error: Exception | None = None
        self._busy = False
        self._watcher: Watcher | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._busy:
            raise RuntimeError("another task waits for the next record of this follower")
        self._busy = True
        try:
            delay = _DELAY_FIRST
            while not self._ready:
                await self._look()
                if not self._ready:
                    self._raise_if_over()
                    await asyncio.sleep(delay)
                    delay = min(2 * delay, _DELAY_LONGEST)
            return self._ready.popleft()
        finally:
            self._busy = False

    async def aclose(self) -> None:
        """End the iteration, also for a task that waits for the next record."""
        self._forget()
        self._ready = deque()

    def _raise_if_over(self) -> None:
        if self._follow is not None:
            return
        error, self._error = self._error, None
        raise StopAsyncIteration if error is None else error

    def _forget(self) -> None:
        """Drop all references to the store."""
        self._follow = self._records = self._watcher = None

    async def _look(self) -> None:
        """Read in a thread. A cancelled task leaves the reading to the next call."""
        if self._reading is None:
            self._raise_if_over()
            self._watcher = Watcher.here()  # which its followers keep
            self._reading = self._watcher.submit(self._read, self._ready)
        await settled(self._reading)
        self._reading = None

    def _read(self, ready: deque[T]) -> None:
        follow = self._follow
        if follow is None:
            return
        try:
            records = self._records
            if records is None:
                records = self._records = follow()
            for record in records:
                ready.append(record)
                if len(ready) >= _BATCH_RECORDS:
                    return
            if self._is_closed():
                self._forget()
        except ClosedError:
            self._forget()
        except Exception as error:
            self._error = error
            self._forget()
