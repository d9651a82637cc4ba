"""Threads for blocking calls, and syncs shared by many tasks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Threads of a log, or of the followers of a loop: by default a single thread.

    The threads begin with the first job, and end after the last reference to the worker: an
    executor ends its threads when collected.
    """

    def __init__(self, name: str, threads: int = 1) -> None:
        self._name = name
        self._threads = threads
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None
        self._process = 0

    def submit(self, job: Callable[..., T], *args: Any) -> concurrent.futures.Future[T]:
        """Begin a job, or queue the job; a thread runs jobs in the order of the calls."""
        executor = self._own()
        if executor is None:
            self._process = os.getpid()
            executor = concurrent.futures.ThreadPoolExecutor(self._threads, self._name)
            self._executor = executor
        return executor.submit(job, *args)

    def release(self) -> None:
        """End the threads once idle; a later job begins new threads."""
        executor, self._executor = self._own(), None
        if executor is not None:
            executor.shutdown(wait=False)

    async def settle(self) -> None:
        """Wait for all jobs of the single thread. Tasks that wait for a job resume first."""
        executor = self._own()
        if executor is not None:
            await settled(executor.submit(_nothing))

    async def stop(self) -> None:
        """End the thread after all queued jobs."""
        executor, self._executor = self._own(), None
        if executor is not None:
            await settled(executor.submit(_nothing))
            executor.shutdown()  # the thread is idle, so that this does not block the loop

    def _own(self) -> concurrent.futures.ThreadPoolExecutor | None:
        """The executor; None in a child of a fork, because a fork copies no threads."""
        return self._executor if self._process == os.getpid() else None


def _nothing() -> None:
    """The last job of a thread."""


def settled(work: concurrent.futures.Future[T]) -> asyncio.Future[T]:
    """A future of this loop for a job in a thread.

    Cancelling the future leaves the job alone, and a job that ends after the loop logs nothing.
    `asyncio.wrap_future` would cancel the job, and log an error after the loop.
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
    """The syncs of a log in a loop, one at a time. Each sync serves all earlier callers.

    No task runs the syncs, so a loop may end at any time without a pending task.
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
        """Done at the end of a sync that begins after the call."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        if not self.busy:
            self.busy = True
            # Ready tasks append first, and need no second sync.
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
            # After the served tasks, because they may append and ask again.
            self._loop.call_soon(self._begin)
        else:
            self.busy = False
