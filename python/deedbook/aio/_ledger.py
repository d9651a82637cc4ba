"""A ledger for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from deedbook._core import Ledger
from deedbook._errors import ClosedError
from deedbook._renamed import Gone
from deedbook._system.threads import Worker, settled
from deedbook.aio._handle import AsyncHandle, Side, opening
from deedbook.aio._poll import PollingFollower

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import LedgerPosition, LedgerRecord, LedgerStats, Positions, Removable
    from deedbook.transient import DataResult

T = TypeVar("T")


class AsyncLedger(AsyncHandle[Ledger, Side]):
    """A :class:`deedbook.Ledger` for the tasks of a single event loop at a time.

    An append into the page cache happens at once, in the loop's thread. A thread of the ledger
    makes the appends that need another file, a sync, or a look at the files. The same thread makes
    all other calls; a second thread reads files. Events get into the ledger in the order of the
    calls of `append`. Syncs happen one at a time, and each serves every task that appended before
    the sync began. If a sync fails, every waiting task gets the error, and all later appends fail
    (`PoisonedError`). Cancelling a waiting task leaves the event appended, and the other tasks
    undisturbed.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, ledger.durability)
        # Reading files must not hold up appends.
        self._calls = Worker("deedbook-ledger")
        self._append_one: Callable[[Buffer], LedgerPosition] = (
            partial(ledger.append, sync=False) if self._always else ledger.append
        )
        # The last append given to the thread. Later appends do not overtake.
        self._latest: concurrent.futures.Future[Any] | None = None

    append_batch = Gone("append_batch", "append_many(..., atomic=True)")

    open = staticmethod(
        opening(
            Ledger.open, lambda call: AsyncLedger(call()), "As `deedbook.Ledger.open`; at once."
        )
    )
    create = staticmethod(
        opening(
            Ledger.create, lambda call: AsyncLedger(call()), "As `deedbook.Ledger.create`; at once."
        )
    )

    @property
    def ledger(self) -> Ledger:
        """The ledger itself, for all calls that do not wait."""
        return self._handle

    def stats(self) -> LedgerStats:
        """Counters of this handle since its opening. The call does not wait."""
        return self._handle.stats()

    async def append(self, payload: Buffer) -> LedgerPosition:
        """Append an event of at least one byte; returns the position.

        The event survives a crash of the process. With durability ``"always"`` the call returns
        once the event is on stable storage.
        """
        return await self._append(self._always, payload)

    async def commit(self, payload: Buffer) -> LedgerPosition:
        """Append an event, and return the position once the event is on stable storage."""
        return await self._append(True, payload)

    async def append_many(
        self, payloads: Iterable[Buffer] | object, *, atomic: bool = False
    ) -> Positions[LedgerPosition]:
        """:meth:`deedbook.Ledger.append_many` in a thread of the ledger. The thread iterates."""
        self._here()
        append = partial(self._handle.append_many, payloads, atomic=atomic)
        return await (self._in_order(append) if atomic else settled(self._appends.submit(append)))

    async def fetch(
        self, count: int | None = None, max_bytes: int | None = None
    ) -> DataResult | None:
        """:meth:`deedbook.Ledger.fetch` in a thread of the ledger. The thread reads the files.

        The thread also calls the functions for header and footer. Reading a body reads a file: in a
        loop, give HTTP clients ``body.stream()``.
        """
        return await self._call(self._handle.fetch, count, max_bytes)

    async def remove(self, items: Iterable[Removable]) -> None:
        """Remove sent files; a missing file is no error."""
        await self._call(self._handle.remove, items)

    async def release(self, items: Iterable[Removable]) -> None:
        """Give back unsent files for other senders."""
        await self._call(self._handle.release, items)

    async def has_data(self) -> bool:
        """Whether unsent events remain, also in a file that another process writes or sends."""
        return await self._call(self._handle.has_data)

    async def reset(self) -> None:
        """Remove every file, except files that others write and the quarantine; numbers go on."""
        await self._call(self._handle.reset)

    def follow(
        self, start: LedgerPosition | tuple[int, int] | None = None
    ) -> PollingFollower[LedgerRecord]:
        """The records from ``start`` (default: the first) on, waiting for more until the close.

        As `deedbook.Ledger.follow`, also for records of other processes. The followers of an
        event loop share four threads. `ClosedError` if the ledger is closed already.
        """
        self._here()
        ledger = self._handle
        if ledger.closed:
            raise ClosedError("the ledger is closed")
        follow = partial(ledger.follow, start, timeout=0.0)
        return PollingFollower(follow, lambda: ledger.closed)

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> Side:
        return Side(loop, self._handle.sync, self._syncs)

    def _workers(self) -> tuple[Worker, ...]:
        return *super()._workers(), self._calls

    def _is_behind(self) -> bool:
        return self._latest is not None and not self._latest.done()

    async def _append(self, durable: bool, payload: Buffer) -> LedgerPosition:
        side = self._here()
        position = None if self._is_behind() else self._handle.try_append(payload)
        if position is None:
            position = await self._in_order(partial(self._append_one, payload))
        if durable:
            await side.rounds.join()
        return position

    async def _in_order(self, append: Callable[[], T]) -> T:
        """Append in a thread, after all earlier jobs of the thread."""
        appending = self._latest = self._appends.submit(append)
        return await settled(appending)

    async def _call(self, call: Callable[..., T], *args: object) -> T:
        self._here()
        return await settled(self._calls.submit(call, *args))
