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
