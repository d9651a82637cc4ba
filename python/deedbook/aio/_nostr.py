"""An event store for the tasks of one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from deedbook._core import EventStore
from deedbook._threads import Worker, settled
from deedbook.aio._handle import AsyncHandle, Side, opening

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from deedbook._core import (
        CompactionReport,
        DamagedPart,
        Event,
        EventOutcome,
        EventStoreReport,
        Fragmentation,
        ImportReport,
    )

T = TypeVar("T")


class AsyncEventStore(AsyncHandle[EventStore, Side]):
    """A :class:`deedbook.EventStore` for the tasks of one event loop, one loop at a time.

    Whatever changes the store happens in one thread of it, in the order of the calls, and whatever
    reads it in a second one: an append may write, index, and begin a segment. Syncs happen in a
    third one, one at a time; each serves every task that appended before it began. If one fails,
    every task that waits for it gets the error. A task cancelled while it waits leaves its event
    appended, and the others undisturbed.
    """

    def __init__(self, store: EventStore, *, always: bool = False) -> None:
        """For a store that is open.

        ``always``: appends, flags and imports return after a sync that tasks share, so that the
        store itself need not be opened with ``durability="always"``.
        """
        super().__init__(store, "always" if always else None)
        # What reads must not hold up what appends, nor wait for it.
        self._reads = Worker("deedbook-read")

    open = staticmethod(
        opening(
            EventStore.open,
            lambda call: _sharing(call),
            """As `deedbook.EventStore.open`; at once, in the calling thread.

        With ``durability="always"`` appends, `set_flags` and `import_json` return once all is on
        stable storage, by a sync that tasks share. The plain `store` is then ``"manual"``: what is
        changed through it is not synced.
        """,
        )
    )
    create = staticmethod(
        opening(
            EventStore.create,
            lambda call: _sharing(call),
            "As `deedbook.EventStore.create`; at once. ``durability`` as in `open`.",
        )
    )

    @property
    def store(self) -> EventStore:
        """The store itself, for everything that does not wait.

        Opened here with ``durability="always"`` it is ``"manual"``: see `open`.
        """
        return self._handle

    async def append(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """As :meth:`deedbook.EventStore.append`."""
        return await self._keep(lambda: self._handle.append(event))

    async def append_many(
        self, events: Iterable[Event | dict[str, Any] | str | Buffer]
    ) -> list[EventOutcome]:
        """As :meth:`deedbook.EventStore.append_many`, in a thread, which iterates."""
        return await self._keep(lambda: self._handle.append_many(events))

    async def commit(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """Append an event, and return once it is on stable storage."""
        outcome = await self._keep(lambda: self._handle.append(event))
        if not self._always:
            await self.sync()
        return outcome

    async def checkpoint(self) -> None:
        """As :meth:`deedbook.EventStore.checkpoint`."""
        await self._change(self._handle.checkpoint)

    async def set_flags(
        self, location: tuple[int, int], *, deleted: bool = False, replaced: bool = False
    ) -> None:
        """As :meth:`deedbook.EventStore.set_flags`."""
        await self._keep(
            lambda: self._handle.set_flags(location, deleted=deleted, replaced=replaced)
        )

    async def import_json(self, source: Any, **options: Any) -> ImportReport:
        """As :meth:`deedbook.EventStore.import_json`; ``progress`` is called in its thread."""
        return await self._keep(lambda: self._handle.import_json(source, **options))

    async def compact(
        self,
        ratio: float | None = None,
        *,
        dry_run: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> CompactionReport:
        """As :meth:`deedbook.EventStore.compact`; ``progress`` is called in its thread."""
        return await self._change(
            lambda: self._handle.compact(ratio, dry_run=dry_run, progress=progress)
        )

    async def reindex(self, *, progress: Callable[[int, int], object] | None = None) -> int:
        """As :meth:`deedbook.EventStore.reindex`; ``progress`` is called in its thread."""
        return await self._change(lambda: self._handle.reindex(progress=progress))

    @overload
    async def get(self, id: str | bytes) -> Event | None: ...
    @overload
    async def get(self, id: tuple[int, int]) -> Event: ...
    async def get(self, id: str | bytes | tuple[int, int]) -> Event | None:
        """As :meth:`deedbook.EventStore.get`."""
        return await self._read(lambda: self._handle.get(id))

    async def read(self, location: tuple[int, int]) -> Event:
        """As :meth:`deedbook.EventStore.read`."""
        return await self._read(lambda: self._handle.read(location))

    async def query(self, filter: dict[str, Any] | list[dict[str, Any]] | str) -> list[Event]:
        """As :meth:`deedbook.EventStore.query`, all of them: give the filter a limit.

        Damage is an error; to pass over it, ask the `store` in a thread of yours.
        """
        return await self._read(lambda: list(self._handle.query(filter)))

    async def verify(
        self,
        *,
        check: Literal["none", "id", "signature"] = "id",
        progress: Callable[[int, int], object] | None = None,
    ) -> EventStoreReport:
        """As `deedbook.EventStore.verify` of this store; ``progress`` is called in its thread."""
        path = self._handle.path
        return await self._read(lambda: EventStore.verify(path, check=check, progress=progress))

    async def verify_log(self) -> list[DamagedPart]:
        """As :meth:`deedbook.EventStore.verify_log`."""
        return await self._read(self._handle.verify_log)

    async def fragmentation(
        self, *, progress: Callable[[int, int], object] | None = None
    ) -> list[Fragmentation]:
        """As :meth:`deedbook.EventStore.fragmentation`; ``progress`` is called in its thread."""
        return await self._read(lambda: self._handle.fragmentation(progress=progress))

    async def compaction_due(self) -> bool:
        """As :meth:`deedbook.EventStore.compaction_due`."""
        return await self._read(self._handle.compaction_due)

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> Side:
        return Side(loop, self._handle.sync, self._syncs)

    def _workers(self) -> tuple[Worker, ...]:
        return *super()._workers(), self._reads

    async def _keep(self, change: Callable[[], T]) -> T:
        """Change the store, and wait for a sync that began afterwards, if each change is synced.

        Checkpoints and compactions end with a sync of their own.
        """
        outcome = await self._change(change)
        if self._always:
            await self._here().rounds.join()
        return outcome

    async def _change(self, change: Callable[[], T]) -> T:
        """Change the store in a thread, after what was given to it before."""
        self._here()
        return await settled(self._appends.submit(change))

    async def _read(self, read: Callable[[], T]) -> T:
        self._here()
        return await settled(self._reads.submit(read))


def _sharing(call: partial[EventStore]) -> AsyncEventStore:
    """Of a store that is to sync always, the tasks share the syncs."""
    always = call.keywords.get("durability") == "always"
    store = call(durability="manual") if always else call()
    return AsyncEventStore(store, always=always)
