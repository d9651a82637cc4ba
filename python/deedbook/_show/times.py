"""Times found in payloads, and counts by time in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, Final

__all__ = ["EPOCH", "SECONDS_MAX", "SECONDS_MIN", "TIME_FIELDS", "UNITS", "TimeCounts", "time_in"]

TIME_FIELDS: Final = (
    "created_at",
    "createdAt",
    "timestamp",
    "ts",
    "time",
    "datetime",
    "date",
    "sentAt",
    "at",
)
"""Fields of a payload that may hold its time: the first readable one counts."""

# Years 2 to 9998: the range of Python, with room for the next hour, day or month.
SECONDS_MIN, SECONDS_MAX = -62_104_060_800, 253_370_764_799
# A number this large or larger has the unit of the divisor; smaller numbers are seconds.
UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)

_FRACTION: Final = re.compile(r"[.,](\d+)")
_WIDTHS: Final = (1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 86400, 604800, 2419200)
"""Seconds. Each width divides the next width, so narrow stretches make up wide stretches."""
_DAY: Final = 86400
_SHOWN: Final = tuple(
    [1, 2, 5, 10, 15, 30]
    + [60 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)]
    + [_DAY * days for days in (1, 2, 7, 14, 28, 56, 112, 224, 448)]
)
"""Seconds of the shown stretches, each a multiple of a counted stretch."""
_STRETCHES_MAX: Final = 4096
_FAR: Final = 5
"""The largest distance from the middle, in spans of the middle. Farther times would squeeze the
middle into a line.
"""


def time_in(payload: Mapping[str, Any]) -> tuple[str, float] | None:
    """The field with the time of a payload, and the seconds since 1970; None without a time.

    Times are ISO 8601, by default in UTC, or seconds, milliseconds, microseconds or nanoseconds
    since 1970.
    """
    for name in TIME_FIELDS:
        if (value := payload.get(name)) is not None and (seconds := _seconds(value)) is not None:
            return name, seconds
    return None


def _seconds(value: Any) -> float | None:
    if isinstance(value, str):
        return _iso(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if not abs(value) < 1e22:
        return None
    for least, divisor in UNITS:
        if abs(value) >= least:
            value = value / divisor
            break
    # Not below 1: a zero is mostly a time that was never set.
    return float(value) if 1 <= value <= SECONDS_MAX else None


def _iso(text: str) -> float | None:
    if not 10 <= len(text) <= 40 or not text[:4].isdigit():
        return None
    # Python 3.10 takes neither Z nor a fraction of any length.
    text = _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text, count=1)
    try:
        at = datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)
    except ValueError:
        return None
    seconds = ((at if at.tzinfo else at.replace(tzinfo=timezone.utc)) - EPOCH) / timedelta(
        seconds=1
    )
    return seconds if SECONDS_MIN <= seconds <= SECONDS_MAX else None


class TimeCounts:
    """Records and bytes by time. Stretches get wider if there are too many."""

    def __init__(self) -> None:
        self.width = _WIDTHS[0]
        """Seconds of a stretch."""
        self.first: float | None = None
        self.last: float | None = None
        self.records = 0
        self._counts: dict[int, list[int]] = {}

    def add(self, seconds: float, nbytes: int) -> None:
        """Count a record."""
        self.records += 1
        self.first = seconds if self.first is None else min(self.first, seconds)
        self.last = seconds if self.last is None else max(self.last, seconds)
        found = self._counts.get(place := int(seconds // self.width))
        if found is None:
            self._counts[place] = [1, nbytes]
            if len(self._counts) > _STRETCHES_MAX:
                self.width, self._counts = _widened(self._counts, self.width, _next(self.width))
        else:
            found[0] += 1
            found[1] += nbytes

    def stretches(self, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
        """At most ``most`` consecutive stretches of the same width, empty stretches included.

        Returns the width in seconds, the number of records outside of all stretches, and for each
        stretch the beginning in seconds since 1970, records and bytes.
        """
        width, counts = self.width, self._counts
        if not counts:
            return width, 0, []
        low, high = self._middle()
        span = max(high - low, 1) * _FAR
        kept = {at: of for at, of in counts.items() if low - span <= at <= high + span}
        outside = self.records - sum(of[0] for of in kept.values())
        if max(kept) - min(kept) >= most:
            least = (max(kept) - min(kept) + 1) * width / (most - 1)
            wider = [one for one in _SHOWN if one >= least and one % width == 0]
            new = wider[0] if wider else -int(-least // width) * width
            width, kept = _widened(kept, width, new)
        places = range(min(kept), max(kept) + 1)
        sums = [(at, kept.get(at, (0, 0))) for at in places]
        return width, outside, [(at * width, of[0], of[1]) for at, of in sums]

    def _middle(self) -> tuple[int, int]:
        """The first and the last stretch of the middle 98 % of the records."""
        margin, passed = self.records / 100, 0
        places = sorted(self._counts)
        low = high = places[0]
        for place in places:
            if passed <= margin:
                low = place
            if passed <= self.records - margin:
                high = place
            passed += self._counts[place][0]
        return low, high


def _next(width: int) -> int:
    wider = [one for one in _WIDTHS if one > width]
    return wider[0] if wider else width * 2


def _widened(counts: dict[int, list[int]], old: int, new: int) -> tuple[int, dict[int, list[int]]]:
    found: dict[int, list[int]] = {}
    for at, (records, nbytes) in counts.items():
        sums = found.setdefault(at * old // new, [0, 0])
        sums[0] += records
        sums[1] += nbytes
    return new, found
