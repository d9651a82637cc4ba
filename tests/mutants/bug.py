"""One deliberate bug."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One deliberate bug: ``old``, once in ``file``, becomes ``new``."""

    name: str
    row: str
    file: str
    old: str
    new: str
    tests: list[tuple[str, str]]
    # Whether running out of time is how it shows; else that says only that the machine is slow.
    hangs: bool = False
