"""A sender on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deedbook._errors import ClosedError
from deedbook._system.threads import Worker as Threads
from deedbook._system.threads import settled
from deedbook.aio import AsyncLedger
from deedbook.http._clients.aiohttp import AsyncTransport
from deedbook.http._flow.flow import Flow
from deedbook.http._flow.pace import log
from deedbook.http._flow.stats import Drained, SenderStats
from deedbook.http._flow.steps import Send, Step, Wait, Worker, perform
from deedbook.http._settings import Options, settings, shown_url

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from deedbook.http._dead import DeadLetters
    from deedbook.http.presets import Preset
    from deedbook.transient import DataStore


class AsyncSender:
    """A :class:`deedbook.http.Sender` for an event loop, with the same options.

    ``async with AsyncSender(store, url) as sender:`` sends in the background, by tasks. The loop
    makes the requests. The store, the dead letters and compression run in a thread of the sender,
    because a disk must not block the loop. The store may also be a
    :class:`deedbook.aio.AsyncLedger`.
    """

    def __init__(
        self,
        store: DataStore | AsyncLedger,
        url: str | None = None,
        *,
        preset: Preset | None = None,
        **options: Unpack[Options],
    ) -> None:
        plain = store.ledger if isinstance(store, AsyncLedger) else store
        self._settings = settings(plain, url, preset, options)
        self._flow = Flow(self._settings)
        self._flow.tell = self._tell
        self._blocking = Threads("deedbook-http")
        self._transport = AsyncTransport(self._settings, self._blocking)
        self._waiters: set[asyncio.Future[None]] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = False  # whether to send in the background
        self._draining = False  # whether the tasks are those of a drain
        self._closed = False
        self._empty = False

    @property
    def dead_letters(self) -> DeadLetters:
        """The folder of the events that the endpoint refuses."""
        return self._settings.dead_letters

    def start(self) -> None:
        """Send in the background from now on, by tasks of the running loop."""
        self._check()
        self._wanted = True
        if not self._tasks and not self._draining:  # else the drain's end starts them
            self._start(patient=True)

    def flush(self) -> None:
        """Send the stored events now, without waiting for the result: see `Sender.flush`."""
        self._check()
        self._flow.ask_drain()
        self._tell()

    async def drain(self, timeout_seconds: float | None = None) -> Drained:
        """Send until the store is empty, or the time is over; return the counts.

        Errors as `Sender.drain`.
        """
        self._check()
        now = asyncio.get_running_loop().time()
        end = None if timeout_seconds is None else now + timeout_seconds
        # A drain ends its own tasks, so another drain must not rely on them.
        alone = await self._until(lambda: not self._draining or self._closed, end)
        self._check()
        before = self._flow.tally.values
        if not alone:
            return self._flow.drained(before, empty=False)
        here = self._draining = not self._tasks
        try:
            ticket = self._flow.ask_drain()
            if here:
                self._start(patient=False)
            self._tell()
            await self._until(lambda: self._is_over(ticket), end)
            drained = self._flow.is_drained(ticket)
            if self._flow.problem is not None and not drained:
                raise self._flow.error()
            return self._flow.drained(before, empty=drained)
        finally:
            if here:
                await self._end_drain()

    async def send_once(self) -> bool:
        """Try once to send the oldest batch; whether it was sent and removed.

        Errors as `Sender.send_once`.
        """
        self._check()
        if not self._tasks:
            self._flow.open(patient=True)
        sent = await self._drive(self._flow.once())
        if not sent and self._flow.problem is not None:
            raise self._flow.error()
        return sent

    async def close(self, timeout_seconds: float = 10.0) -> bool:
        """Send the stored events until the time is over, then end; whether the store is empty.

        See `Sender.close`. At the end of the time, the call waits for a thread that uses the store.
        """
        if self._closed:
            return self._empty
        self._wanted = False
        ticket = self._flow.close(self._settings.clock.monotonic() + timeout_seconds)
        self._tell()
        tasks = list(self._tasks)
        try:
            if tasks:
                await asyncio.wait(tasks, timeout=max(timeout_seconds, 0.0))
            else:
                empty = self._blocking.submit(lambda: not self._settings.store.has_data())
                self._empty = await settled(empty)
        finally:
            await self._end_tasks()
            self._closed = True
            if tasks:
                self._empty = self._flow.is_drained(ticket)
            self._tell()
            await self._transport.close()
            await self._blocking.stop()
        return self._empty

    def stats(self) -> SenderStats:
        """Counts of the events sent, retried, refused and dropped so far."""
        return self._flow.snapshot()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "sending" if self._tasks else "idle"
        return f"<AsyncSender to {shown_url(self._settings.url)}, {state}>"

    def _check(self) -> None:
        if self._closed:
            raise ClosedError("the sender is closed")

    def _start(self, *, patient: bool) -> None:
        self._flow.open(patient)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._run(self._flow.worker()), name=f"deedbook-http-{number}")
            for number in range(self._settings.concurrency)
        ]

    async def _end_tasks(self) -> None:
        """End the tasks, and requests under way."""
        self._flow.stop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for step in self._flow.release():
            await settled(self._blocking.submit(perform, self._settings, step))
        if not self._closed:
            await self._transport.close()  # it may belong to another loop next time

    async def _end_drain(self) -> None:
        """End the tasks of a drain, and begin the tasks requested meanwhile."""
        try:
            await self._end_tasks()
        finally:
            self._draining = False
            self._tell()
            if self._wanted and not self._closed:
                self._start(patient=True)

    def _is_over(self, ticket: int) -> bool:
        return self._flow.is_drained(ticket) or self._flow.problem is not None or self._closed

    async def _until(self, is_so: Callable[[], bool], end: float | None) -> bool:
        """Wait for a condition until a time of the loop; return whether the condition holds."""
        loop = asyncio.get_running_loop()
        while not is_so():
            left = None if end is None else end - loop.time()
            if left is not None and left <= 0:
                return False
            await self._change(left)
        return True

    async def _run(self, worker: Worker) -> None:
        try:
            await self._drive(worker)
        except Exception as error:
            log.critical("a task of %r ended: %r", self, error, exc_info=error)
            self._flow.problem, self._flow.cause = f"a task ended: {error!r}", error
            self._tell()

    async def _drive(self, worker: Worker) -> bool:
        """Carry out the steps of a worker."""
        outcome: Any = None
        failure: Exception | None = None
        try:
            while not self._closed:
                try:
                    step = worker.send(outcome) if failure is None else worker.throw(failure)
                except StopIteration as end:
                    return bool(end.value)
                outcome = failure = None
                try:
                    outcome = await self._perform(step)
                except Exception as error:
                    failure = error
            return False
        finally:
            worker.close()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Wait):
            seconds = step.seconds
            if seconds is not None:
                seconds = self._settings.clock.wait_seconds(seconds)
            return await self._change(seconds)
        if isinstance(step, Send):
            return await self._transport.send(step.prepared, step.headers)
        return await settled(self._blocking.submit(perform, self._settings, step))

    async def _change(self, seconds: float | None) -> None:
        """Wait until something changed, or the time is over."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiters.discard(waiter)

    def _tell(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
