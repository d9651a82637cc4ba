"""A progress bar on standard error, shown only to a terminal."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Final

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
        elapsed = now - self._began
        text = render(self._label, done_bytes, self._total_bytes, elapsed, note, self._unit)
        self._write("\r" + text[: _columns() - 1] + "\x1b[K")
        self._drawn = True

    def close(self) -> None:
        """Wipe the bar."""
        if self._drawn:
            self._write("\r\x1b[K")
        self._enabled = self._drawn = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._enabled = False  # the terminal is gone; the work goes on


def render(
    label: str,
    done_bytes: int,
    total_bytes: int | None,
    elapsed_seconds: float,
    note: str = "",
    unit: str | None = None,
) -> str:
    """The text of the bar; without a total there is a count and no bar."""

    def amount(done: int) -> str:
        return size(done) if unit is None else count(done, unit)

    rate = done_bytes / elapsed_seconds if elapsed_seconds > 0 else 0.0
    parts = [label]
    if total_bytes:
        share = min(done_bytes / total_bytes, 1.0)
        filled = int(share * BAR_CHARS)
        parts.append(f"[{'#' * filled}{'-' * (BAR_CHARS - filled)}] {share:4.0%}")
        parts.append(f"{amount(done_bytes)} of {amount(total_bytes)}")
    else:
        parts.append(amount(done_bytes))
    parts.append(f"{amount(int(rate))}/s")
    if total_bytes and rate > 0:
        parts.append(f"{max(total_bytes - done_bytes, 0) / rate:.0f} s left")
    if note:
        parts.append(note)
    return "  ".join(parts)


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
