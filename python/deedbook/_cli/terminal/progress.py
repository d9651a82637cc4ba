"""A progress bar on standard error, shown only to a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import Final, NamedTuple

from deedbook._cli.failure import printable
from deedbook._show.text import count, size

REDRAW_SECONDS: Final = 0.1
"""The bar is drawn at most this often."""
BAR_CHARS: Final = 24


class Progress:
    """Draws the number of bytes done; leaving the context manager wipes the bar.

    With a ``unit``, for example ``"event"``, the numbers count units instead of bytes.
    Call `update` as often as you like: a call between two drawings is cheap. `update` does nothing
    if standard error is not a terminal, ``TERM`` is ``dumb``, or ``enabled`` is False.
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
        self._drawn = False

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
        shown = Shown(
            self._label, done_bytes, self._total_bytes, now - self._began, note, self._unit
        )
        self._drawn = True
        # Without the terminal, the work continues.
        self._enabled = _write("\r" + render(shown)[: _columns() - 1] + "\x1b[K")

    def close(self) -> None:
        """Wipe the bar."""
        if self._drawn:
            _write("\r\x1b[K")
        self._enabled = self._drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Shown(NamedTuple):
    """The content of a bar."""

    label: str
    done: int
    total: int | None
    elapsed_seconds: float
    note: str = ""
    unit: str | None = None

    def amount(self, done: int) -> str:
        """A number of units, in words."""
        return size(done) if self.unit is None else count(done, self.unit)

    def text(self) -> str:
        """How much is done, how fast, and how long the rest takes."""
        rate = self.done / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0
        of = f" of {self.amount(self.total)}" if self.total else ""
        parts = [self.amount(self.done) + of, f"{self.amount(int(rate))}/s"]
        if self.total and rate > 0:
            parts.append(f"{max(self.total - self.done, 0) / rate:.0f} s left")
        return "  ".join([*parts, self.note] if self.note else parts)


def _write(text: str) -> bool:
    """Write to the terminal; return whether the terminal is there."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        return False
    return True


def render(shown: Shown) -> str:
    """The text of the bar; without a total there is a count and no bar."""
    parts = [shown.label]
    if shown.total:
        share = min(shown.done / shown.total, 1.0)
        filled = int(share * BAR_CHARS)
        parts.append(f"[{'#' * filled}{'-' * (BAR_CHARS - filled)}] {share:4.0%}")
    return "  ".join([*parts, shown.text()])


def _columns() -> int:
    """Width of the terminal at standard error; 80 if the width is unknown."""
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
