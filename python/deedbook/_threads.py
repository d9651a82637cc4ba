"""Threads for what may block, and syncs that many tasks share."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Threads that belong to one log, or to the followers of one loop: one unless more are asked.

    They begin with the first job, and end when nothing refers to the worker any more: an executor
    that is collected ends its threads.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._threads = threads
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None
        self._process = 0

    def submit(self, job: Callable[..., T], *args: Any) -> concurrent.futures.Future[T]:
        """Begin a job, or queue it; one thread runs its jobs in the order of the calls."""
        executor = self._own()
        if executor is None:
            self._process = os.getpid()
            executor = concurrent.futures.ThreadPoolExecutor(self._threads, self._name)
            self._executor = executor
        return executor.submit(job, *args)

    def release(self) -> None:
        """End the threads once they are idle; a later job begins new ones."""
        executor, self._executor = self._own(), None
        if executor is not None:
            executor.shutdown(wait=False)

    async def settle(self) -> None:
        """Wait for all jobs of the one thread. Tasks that wait for one of them resume first."""
        executor = self._own()
        if executor is not None:
            await settled(executor.submit(_nothing))

    async def stop(self) -> None:
        """End the thread after all that it was given."""
        executor, self._executor = self._own(), None
        if executor is not None:
            await settled(executor.submit(_nothing))
            executor.shutdown()  # the thread is idle, so that this does not block the loop

    def _own(self) -> concurrent.futures.ThreadPoolExecutor | None:
        """The executor, unless it is a parent's: a fork copies no threads, its jobs never end."""
        return self._executor if self._process == os.getpid() else None


def _nothing() -> None:
    """The last job of a thread."""


def settled(work: concurrent.futures.Future[T]) -> asyncio.Future[T]:
    """A future of this loop for a job in a thread.

    Cancelling it leaves the job alone, and a job that ends after the loop ends in silence:
    `asyncio.wrap_future` cancels in the one case and logs an error in the other.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[T] = loop.create_future()

    def report(work: concurrent.futures.Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_settle, waiter, work)

    work.add_done_callback(report)
    return waiter


def _settle(waiter: asyncio.Future[T], work: concurrent.futures.Future[T]) -> None:
    if waiter.done():  # cancelled
        return
    error = work.exception()
    if error is None:
        waiter.set_result(work.result())
    else:
        waiter.set_exception(error)


class Rounds:
    """The syncs of one log for one loop: one at a time, each for all that asked before it began.

    No task runs them, so that a loop may end at any time and leave nothing that is pending.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, worker: Worker, sync: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._worker = worker
        self._sync = sync
        self._waiters: list[asyncio.Future[None]] = []
        self.busy = False

    def join(self) -> asyncio.Future[None]:
        """Done when a sync that begins after this call has ended."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        if not self.busy:
            self.busy = True
            # Tasks that are ready to append do so first, and need no second sync.
            self._loop.call_soon(self._begin)
        return waiter

    def _begin(self) -> None:
        waiters, self._waiters = self._waiters, []
        waiters = [waiter for waiter in waiters if not waiter.done()]  # cancelled
        if not waiters:
            self.busy = False
            return
        try:
            done = settled(self._worker.submit(self._sync))
        except RuntimeError as error:  # no thread can be started
            self._finish(waiters, error)
        else:
            done.add_done_callback(lambda done: self._finish(waiters, done.exception()))

    def _finish(self, waiters: list[asyncio.Future[None]], error: BaseException | None) -> None:
        for waiter in waiters:
            if waiter.done():  # cancelled
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        if self._waiters:
            # After the tasks just served, which may append and ask again.
            self._loop.call_soon(self._begin)
        else:
            self.busy = False
