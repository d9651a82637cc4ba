"""A ledger for the tasks of one event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from deedbook._core import Ledger
from deedbook._renamed import Gone
from deedbook._threads import Worker, settled
from deedbook.aio._handle import AsyncHandle, Side, opening

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import LedgerPosition, Positions, Removable
    from deedbook.transient import DataResult

T = TypeVar("T")


class AsyncLedger(AsyncHandle[Ledger, Side]):
    """A :class:`deedbook.Ledger` for the tasks of one event loop, one loop at a time.

    An append happens at once, in the loop's thread, if it takes one write into the page cache. One
    that needs another file, a sync, or a look at the files happens in a thread of the ledger; so do
    all other calls, which read files in a second one. Events get into the ledger in the order of
    the calls of `append`. Syncs happen one at a time; each serves every task that appended before
    it began. If one fails, every task that waits for it gets the error, and all later appends fail
    (`PoisonedError`). A task cancelled while it waits leaves its event appended, and the others
    undisturbed.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, ledger.durability)
        # What reads files must not hold up appends.
        self._calls = Worker("deedbook-ledger")
        self._append_one: Callable[[Buffer], LedgerPosition] = (
            partial(ledger.append, sync=False) if self._always else ledger.append
        )
        # The append that was given to the thread last: later ones do not overtake it.
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
        """The ledger itself, for everything that does not wait."""
        return self._handle

    async def append(self, payload: Buffer) -> LedgerPosition:
        """Append one event, at least one byte; returns where it lies.

        It survives a crash of the process; with durability ``"always"`` this returns once it is on
        stable storage.
        """
        return await self._append(self._always, payload)

    async def commit(self, payload: Buffer) -> LedgerPosition:
        """Append one event, and return where it lies once it is on stable storage."""
        return await self._append(True, payload)

    async def append_many(
        self, payloads: Iterable[Buffer] | object, *, atomic: bool = False
    ) -> Positions[LedgerPosition]:
        """As :meth:`deedbook.Ledger.append_many`, in a thread of the ledger, which iterates."""
        self._here()
        append = partial(self._handle.append_many, payloads, atomic=atomic)
        return await (self._in_order(append) if atomic else settled(self._appends.submit(append)))

    async def fetch(
        self, count: int | None = None, max_bytes: int | None = None
    ) -> DataResult | None:
        """As :meth:`deedbook.Ledger.fetch`, in a thread of the ledger, which reads the files.

        The functions for header and footer are called in that thread, too. Reading a body reads
        its file: in a loop, give HTTP clients ``body.stream()``.
        """
        return await self._call(self._handle.fetch, count, max_bytes)

    async def remove(self, items: Iterable[Removable]) -> None:
        """Remove files that were sent; one that is gone already is no error."""
        await self._call(self._handle.remove, items)

    async def release(self, items: Iterable[Removable]) -> None:
        """Give back files that will not be sent now: others may send them."""
        await self._call(self._handle.release, items)

    async def has_data(self) -> bool:
        """Whether anything is to be sent, also in a file that another process writes or sends."""
        return await self._call(self._handle.has_data)

    async def reset(self) -> None:
        """Remove every file but those that others write, and the quarantine; numbers go on."""
        await self._call(self._handle.reset)

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
        """Append in a thread, after what was given to it before."""
        appending = self._latest = self._appends.submit(append)
        return await settled(appending)

    async def _call(self, call: Callable[..., T], *args: object) -> T:
        self._here()
        return await settled(self._calls.submit(call, *args))
