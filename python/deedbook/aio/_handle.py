"""The base of every handle for the tasks of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar

from deedbook._system.threads import Rounds, Worker, settled

if TYPE_CHECKING:
    from typing_extensions import Self


class Plain(Protocol):
    """A handle that blocks."""

    def close(self) -> None: ...


class Side:
    """The state of a handle in an event loop: syncs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sync: Callable[[], None], syncs: Worker
    ) -> None:
        self.loop = loop
        self.process = os.getpid()
        self.rounds = Rounds(loop, syncs, sync)

    def wake(self) -> None:
        """Wake the tasks that wait for an append or for the end of the handle."""


P = ParamSpec("P")
PlainT = TypeVar("PlainT")
OpenedT = TypeVar("OpenedT")
HandleT = TypeVar("HandleT", bound=Plain)
SideT = TypeVar("SideT", bound=Side)


def opening(
    plain: Callable[P, PlainT], of: Callable[[partial[PlainT]], OpenedT], text: str
) -> Callable[P, OpenedT]:
    """A function that opens a handle for asyncio, with the plain handle's arguments."""

    def opened(*args: P.args, **options: P.kwargs) -> OpenedT:
        return of(partial(plain, *args, **options))

    opened.__name__ = plain.__name__
    opened.__doc__ = text
    opened.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]
    return opened


class AsyncHandle(ABC, Generic[HandleT, SideT]):
    """A handle for the tasks of a single event loop at a time."""

    def __init__(self, handle: HandleT, durability: object) -> None:
        self._handle: HandleT = handle
        self._always = durability == "always"
        self._syncs = Worker("deedbook-sync")
        self._appends = Worker("deedbook-append")
        self._side: SideT | None = None

    async def sync(self) -> None:
        """Wait until everything appended so far is on stable storage."""
        await self._here().rounds.join()

    async def close(self) -> None:
        """Wait for the pending calls in every thread of the handle, then close the handle."""
        side = self._here()
        try:
            await self._settle(side)
        finally:
            closing = self._syncs.submit(self._handle.close)
        try:
            await settled(closing)
        finally:
            side.wake()
            for worker in self._workers():
                await worker.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.close()
        except Exception:
            # The first error explains more than the errors after it.
            if exc_type is None:
                raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle!r}>"

    @abstractmethod
    def _new_side(self, loop: asyncio.AbstractEventLoop) -> SideT:
        """The state of the handle in a new loop."""

    def _workers(self) -> tuple[Worker, ...]:
        """The threads of the handle."""
        return self._syncs, self._appends

    async def _settle(self, side: SideT) -> None:
        """Wait for the appends and other calls in threads, and for the pending syncs.

        The tasks get the errors.
        """
        for worker in self._workers():
            # The close runs in the thread of syncs, after all pending jobs.
            if worker is not self._syncs:
                await worker.settle()
        if side.rounds.busy:
            with contextlib.suppress(Exception):
                await side.rounds.join()

    def _here(self) -> SideT:
        """The state of the handle in the running loop."""
        loop, side = asyncio.get_running_loop(), self._side
        if side is not None and side.process != os.getpid():
            side = None  # of the parent: nothing ends its syncs in a forked child
        if side is None or side.loop is not loop:
            if side is not None and side.loop.is_running():
                raise RuntimeError(f"{self!r} is used by an event loop in another thread")
            side = self._side = self._new_side(loop)
        return side
