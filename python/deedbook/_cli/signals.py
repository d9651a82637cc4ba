"""Signals: end a command at once, or between two commits."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


class Terminated(BaseException):
    """SIGTERM came. No ``except Exception`` catches the exception, as KeyboardInterrupt."""


class Termination:
    """While entered, SIGTERM raises `Terminated` once; a second one ends the process at once.

    The exception closes open logs, and the exit code is the code of shells for SIGTERM. If the
    calling program ignores or handles SIGTERM, the class changes nothing. Outside the main thread,
    Python has no signal handlers, and the class does nothing.
    """

    def __init__(self) -> None:
        self._entered = False

    def __enter__(self) -> Termination:
        main_thread = threading.current_thread() is threading.main_thread()
        if main_thread and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._raise)
            self._entered = True
        return self

    def __exit__(self, *exc: object) -> None:
        if self._entered:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise Terminated


class Stop:
    """While entered, the first SIGINT or SIGTERM is noted and wakes `wait`; nothing is raised.

    The second signal acts as before, so you can leave a stuck write. A signal ignored at the start
    of the process (``nohup``, a background job) stays ignored. Outside the main thread, Python has
    no signal handlers, and the class does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        """Whether a signal came."""
        self.number = 0
        """The number of the signal."""
        self._before: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None
        self._wakeup_before = -1
        self._error: BaseException | None = None

    def __enter__(self) -> Stop:
        if threading.current_thread() is not threading.main_thread():
            return self
        if os.name != "nt":
            self._pipe = os.pipe()
            for end in self._pipe:
                os.set_blocking(end, False)
            self._wakeup_before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._note)
        return self

    def __exit__(self, *exc: object) -> None:
        self._restore()
        if self._pipe is not None:
            signal.set_wakeup_fd(self._wakeup_before)
            for end in self._pipe:
                os.close(end)
            self._pipe = None

    def wait(self, fd: int, timeout_seconds: float | None) -> bool:
        """Wait until ``fd`` can be read (True), or a signal or the timeout comes (False).

        A timeout of None waits forever. Regular files are always readable.
        """
        if self.requested:
            return False
        if os.name == "nt":  # select knows only sockets there: read, and block
            return True
        wakers = [] if self._pipe is None else [self._pipe[0]]
        poll = select.poll()  # select takes no descriptor above 1023
        for one in (fd, *wakers):
            poll.register(one, select.POLLIN)
        limit = None if timeout_seconds is None else timeout_seconds * 1000
        ready = [one for one, _ in poll.poll(limit)]
        for waker in wakers:
            if waker in ready:
                os.read(waker, 4096)
        return fd in ready and not self.requested

    @contextlib.contextmanager
    def raising(self, error: BaseException) -> Iterator[None]:
        """While entered, the signal also raises ``error``, even if the signal came before.

        For calls that wait without `wait`.
        """
        self._error = error
        try:
            if self.requested:
                raise error
            yield
        finally:
            self._error = None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested, self.number = True, number
        self._restore()
        if self._error is not None:
            raise self._error

    def _restore(self) -> None:
        before, self._before = self._before, {}
        for number, handler in before.items():
            signal.signal(number, handler)
