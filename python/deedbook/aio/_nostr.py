"""An event store for the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from deedbook._core import EventStore
from deedbook._system.threads import Worker, settled
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
        Stats,
    )

T = TypeVar("T")


class AsyncEventStore(AsyncHandle[EventStore, Side]):
    """A :class:`deedbook.EventStore` for the tasks of a single event loop at a time.

    A thread of the store makes all changes, in the order of the calls, because an append may write,
    index, and begin a segment. A second thread reads. A third thread syncs; each sync serves every
    task that appended before the sync began. If a sync fails, every waiting task gets the error.
    Cancelling a waiting task leaves the event appended, and the other tasks undisturbed.
    """

    def __init__(self, store: EventStore, *, always: bool = False) -> None:
        """Wrap an open store.

        ``always``: appends, flags and imports return after a sync shared by tasks, so the store
        itself needs no ``durability="always"``.
        """
        super().__init__(store, "always" if always else None)
        # Reads must not hold up appends, nor wait for appends.
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
        """The store itself, for all calls that do not wait.

        If opened here with ``durability="always"``, the store itself is ``"manual"``: see `open`.
        """
        return self._handle

    def stats(self) -> Stats:
        """Counters of this handle since its opening. The call does not wait."""
        return self._handle.stats()

    async def append(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """As :meth:`deedbook.EventStore.append`."""
        return await self._keep(lambda: self._handle.append(event))

    async def append_many(
        self, events: Iterable[Event | dict[str, Any] | str | Buffer]
    ) -> list[EventOutcome]:
        """:meth:`deedbook.EventStore.append_many` in a thread. The thread iterates."""
        return await self._keep(lambda: self._handle.append_many(events))

    async def commit(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """Append an event, and return once the event is on stable storage."""
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
        """:meth:`deedbook.EventStore.import_json` in a thread. The thread calls ``progress``."""
        return await self._keep(lambda: self._handle.import_json(source, **options))

    async def compact(
        self,
        ratio: float | None = None,
        *,
        dry_run: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> CompactionReport:
        """:meth:`deedbook.EventStore.compact` in a thread. The thread calls ``progress``."""
        return await self._change(
            lambda: self._handle.compact(ratio, dry_run=dry_run, progress=progress)
        )

    async def reindex(self, *, progress: Callable[[int, int], object] | None = None) -> int:
        """:meth:`deedbook.EventStore.reindex` in a thread. The thread calls ``progress``."""
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
        """All results of :meth:`deedbook.EventStore.query`: give the filter a limit.

        Damage is an error. To skip damage, query the `store` in your own thread.
        """
        return await self._read(lambda: list(self._handle.query(filter)))

    async def verify(
        self,
        *,
        check: Literal["none", "id", "signature"] = "id",
        progress: Callable[[int, int], object] | None = None,
    ) -> EventStoreReport:
        """`deedbook.EventStore.verify` of this store in a thread. The thread calls ``progress``."""
        path = self._handle.path
        return await self._read(lambda: EventStore.verify(path, check=check, progress=progress))

    async def verify_log(self) -> list[DamagedPart]:
        """As :meth:`deedbook.EventStore.verify_log`."""
        return await self._read(self._handle.verify_log)

    async def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        kinds: Sequence[int] | None = None,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """:meth:`deedbook.EventStore.retain` in a thread. The thread calls ``progress``."""
        return await self._keep(
            lambda: self._handle.retain(
                max_bytes=max_bytes,
                max_age=max_age,
                kinds=kinds,
                dry_run=dry_run,
                progress=progress,
            )
        )

    async def fragmentation(
        self, *, progress: Callable[[int, int], object] | None = None
    ) -> list[Fragmentation]:
        """:meth:`deedbook.EventStore.fragmentation` in a thread. The thread calls ``progress``."""
        return await self._read(lambda: self._handle.fragmentation(progress=progress))

    async def compaction_due(self) -> bool:
        """As :meth:`deedbook.EventStore.compaction_due`."""
        return await self._read(self._handle.compaction_due)

    def _new_side(self, loop: asyncio.AbstractEventLoop) -> Side:
        return Side(loop, self._handle.sync, self._syncs)

    def _workers(self) -> tuple[Worker, ...]:
        return *super()._workers(), self._reads

    async def _keep(self, change: Callable[[], T]) -> T:
        """Change the store. If each change is synced, wait for a sync that began later.

        Checkpoints and compactions end with a sync of their own.
        """
        outcome = await self._change(change)
        if self._always:
            await self._here().rounds.join()
        return outcome

    async def _change(self, change: Callable[[], T]) -> T:
        """Change the store in a thread, after all earlier jobs of the thread."""
        self._here()
        return await settled(self._appends.submit(change))

    async def _read(self, read: Callable[[], T]) -> T:
        self._here()
        return await settled(self._reads.submit(read))


def _sharing(call: partial[EventStore]) -> AsyncEventStore:
    """Tasks share the syncs of a store with durability ``"always"``."""
    always = call.keywords.get("durability") == "always"
    store = call(durability="manual") if always else call()
    return AsyncEventStore(store, always=always)
