"""A progress bar on standard error, shown only to a terminal: by rich where that is installed."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from deedbook._text import count, size
from deedbook.cli.failure import printable

REDRAW_SECONDS: Final = 0.1
"""The bar is drawn at most this often."""
BAR_CHARS: Final = 24


class Progress:
    """Draws how many bytes are done; a context manager that wipes the bar when it ends.

    With a ``unit``, for example ``"event"``, the numbers are of these instead of bytes.
    Call `update` as often as you like: it is cheap between two drawings, and does nothing when
    standard error is not a terminal, ``TERM`` is ``dumb``, or ``enabled`` is False.
    """

    def __init__(
        self,
        label: str,
        total_bytes: int | None = None,
        *,
        enabled: bool = True,
        unit: str | None = None,
    ) -> None:
        self._label = printable(label)
        self._unit = unit
        self._total_bytes = total_bytes
        self._enabled = enabled and _is_terminal()
        self._began = time.monotonic()
        self._next_draw = self._began + REDRAW_SECONDS
        self._bar: _Bar | None = None

    def update(self, done_bytes: int, total_bytes: int | None = None, note: str = "") -> None:
        """Tell that ``done_bytes`` of ``total_bytes`` are done (None: as given at the start)."""
        if not self._enabled:
            return
        now = time.monotonic()
        if now < self._next_draw:
            return
        self._next_draw = now + REDRAW_SECONDS
        if total_bytes is not None:
            self._total_bytes = total_bytes
        if self._bar is None:  # only now: most commands end before
            self._bar = _RichBar.made(self._label) or _PlainBar()
        shown = Shown(
            self._label, done_bytes, self._total_bytes, now - self._began, note, self._unit
        )
        # Where the terminal is gone, the work goes on.
        self._enabled = self._bar.draw(shown)

    def close(self) -> None:
        """Wipe the bar."""
        if self._bar is not None:
            self._bar.wipe()
        self._enabled, self._bar = False, None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Shown(NamedTuple):
    """What a bar shows."""

    label: str
    done: int
    total: int | None
    elapsed_seconds: float
    note: str = ""
    unit: str | None = None

    def amount(self, done: int) -> str:
        """A number of what is counted, in words."""
        return size(done) if self.unit is None else count(done, self.unit)

    def text(self) -> str:
        """How much is done, how fast, and how long the rest takes."""
        rate = self.done / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0
        of = f" of {self.amount(self.total)}" if self.total else ""
        parts = [self.amount(self.done) + of, f"{self.amount(int(rate))}/s"]
        if self.total and rate > 0:
            parts.append(f"{max(self.total - self.done, 0) / rate:.0f} s left")
        return "  ".join([*parts, self.note] if self.note else parts)


class _Bar(Protocol):
    def draw(self, shown: Shown) -> bool: ...

    def wipe(self) -> None: ...


class _PlainBar:
    """A bar of characters."""

    def draw(self, shown: Shown) -> bool:
        return self._write("\r" + render(shown)[: _columns() - 1] + "\x1b[K")

    def wipe(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> bool:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            return False
        return True


class _RichBar:
    """The same by rich, in colour."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task

    @classmethod
    def made(cls, label: str) -> _RichBar | None:
        """None where rich is not installed."""
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
        except ImportError:
            return None
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(BAR_CHARS),
            TaskProgressColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,  # no thread beside the work
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        return cls(progress, progress.add_task(label, total=None, text=""))

    def draw(self, shown: Shown) -> bool:
        try:
            self._progress.start()
            self._progress.update(
                self._task, completed=shown.done, total=shown.total, text=shown.text()
            )
            self._progress.refresh()
        except (OSError, ValueError):
            return False
        return True

    def wipe(self) -> None:
        with suppress(OSError, ValueError):
            self._progress.stop()


def render(shown: Shown) -> str:
    """The text of the bar; without a total there is a count and no bar."""
    parts = [shown.label]
    if shown.total:
        share = min(shown.done / shown.total, 1.0)
        filled = int(share * BAR_CHARS)
        parts.append(f"[{'#' * filled}{'-' * (BAR_CHARS - filled)}] {share:4.0%}")
    return "  ".join([*parts, shown.text()])


def _columns() -> int:
    """Width of the terminal that standard error is; 80 where it does not say."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _is_terminal() -> bool:
    try:
        return (
            sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
        )
    except (OSError, ValueError):
        return False
