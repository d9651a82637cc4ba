"""Colour on a terminal, if rich is installed."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

__all__ = ["in_colour"]


def in_colour(text: str, colour: str) -> str:
    """The text in a colour, if standard output is a terminal with colours.

    ``NO_COLOR`` and ``FORCE_COLOR`` in the environment are heeded, as rich does.
    """
    style = _style(colour)
    return text if style is None else str(style[0].render(text, color_system=style[1]))


@cache
def _style(colour: str) -> tuple[Any, Any] | None:
    """A style of rich and the colours of the terminal; None without either."""
    try:
        is_terminal = sys.stdout is not None and sys.stdout.isatty()
    except ValueError:
        return None
    if not (is_terminal or os.environ.get("FORCE_COLOR")):
        return None  # a pipe: rich need not be loaded
    try:
        from rich.color import ColorSystem
        from rich.console import Console
        from rich.style import Style
    except ImportError:
        return None
    console = Console()
    system = console.color_system
    if system is None or console.no_color:
        return None
    names = {"256": "EIGHT_BIT"}
    return Style.parse(colour), ColorSystem[names.get(system, system.upper())]
