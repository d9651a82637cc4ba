"""Sizes and lengths of time as users write them: in the shell, in Spark's options and in files."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["KIB", "duration", "size"]

KIB: Final = 1 << 10
_SIZE: Final = re.compile(r"([0-9]{1,20}) *([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_SIZES: Final = {"": 1, "k": KIB, "m": KIB**2, "g": KIB**3}
_DURATION: Final = re.compile(
    r"([0-9]{1,20}) *(?:(ms|[smhd])|(second|minute|hour|day)s?)?", re.ASCII | re.IGNORECASE
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def size(text: str) -> int:
    """Bytes, or with k, m or g: ``4096``, ``64m``, ``1 GiB``. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError
    return int(found[1]) * _SIZES[found[2].lower()]


def duration(text: str) -> float:
    """Seconds, or with a unit: ``5``, ``500ms``, ``10m``, ``2 hours``. Raises ValueError.

    A whole number of seconds is an int, however large.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError
    unit = (found[2] or (found[3] or "s")[0]).lower()
    return int(found[1]) / 1000 if unit == "ms" else int(found[1]) * _SECONDS[unit]
