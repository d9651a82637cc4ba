"""A walk over the records of a log: sizes, times and types, in constant memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from deedbook._report._figures import Size, Sizes, Stretch, Times, Type
from deedbook._show.times import EPOCH, TimeCounts, time_in

__all__ = ["COLUMNS_MAX", "Scan"]

COLUMNS_MAX: Final = 150
"""Columns of a chart by time."""
_TYPE_FIELDS: Final = ("type", "kind")
_TYPES_MAX: Final = 4096
_TYPES_KEPT: Final = 20
_TYPE_CHARS_MAX: Final = 60
_KEYS_MAX: Final = 8
_EXACT_BITS: Final = 4
"""The leading bits of a counted size. A quantile is too small by 1 in 8 at most."""
_JSON_BYTES_MAX: Final = 16 << 20
"""The largest parsed payload. The values of a payload take many times as much memory."""
_LOOK_EVERY: Final = 256
"""Records between two calls of the progress."""

_decode: Final = json.JSONDecoder().decode


class Scan:
    """The counts so far."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.objects = 0
        """Payloads that are JSON objects."""
        self._sizes: dict[int, int] = {}
        self._least: int | None = None
        self._most = 0
        self._times = TimeCounts()
        self._time_fields: dict[str, int] = {}
        self._types: dict[str, list[int]] = {}
        self._other_types = [0, 0]

    def run(self, payloads: Iterable[bytes], progress: Callable[[int], object]) -> None:
        """Count all of ``payloads``; ``progress`` gets the bytes so far."""
        for number, payload in enumerate(payloads):
            self.add(payload)
            if number % _LOOK_EVERY == 0:
                progress(self.bytes)
        progress(self.bytes)

    def add(self, payload: bytes) -> None:
        """Count a payload."""
        nbytes = len(payload)
        self.records += 1
        self.bytes += nbytes
        self._least = nbytes if self._least is None else min(self._least, nbytes)
        self._most = max(self._most, nbytes)
        place = _leading(nbytes)
        self._sizes[place] = self._sizes.get(place, 0) + 1
        value = _object(payload)
        if value is None:
            return
        self.objects += 1
        if (found := time_in(value)) is not None:
            name, seconds = found
            self._time_fields[name] = self._time_fields.get(name, 0) + 1
            self._times.add(seconds, nbytes)
        self._add_type(_type_of(value), nbytes)

    def _add_type(self, name: str, nbytes: int) -> None:
        sums = self._types.get(name)
        if sums is None:
            sums = self._other_types
            if len(self._types) < _TYPES_MAX:
                sums = self._types[name] = [0, 0]
        sums[0] += 1
        sums[1] += nbytes

    def sizes(self) -> Sizes | None:
        """How large the payloads are; None if there are none."""
        if self._least is None:
            return None
        steps = sorted(self._sizes.items())
        octaves: dict[int, int] = {}
        for size, records in steps:
            octaves[size.bit_length()] = octaves.get(size.bit_length(), 0) + records
        return Sizes(
            self._least,
            self._most,
            self.bytes / self.records,
            self._quantile(steps, 0.5),
            self._quantile(steps, 0.95),
            self._quantile(steps, 0.99),
            tuple(
                Size(0 if bits == 0 else 1 << (bits - 1), (1 << bits) - 1, octaves.get(bits, 0))
                for bits in range(min(octaves), max(octaves) + 1)
            ),
        )

    def _quantile(self, steps: list[tuple[int, int]], share: float) -> int:
        passed = 0
        for size, records in steps:
            passed += records
            if passed >= share * self.records:
                return max(size, self._least or 0)
        return self._most

    def times(self) -> Times | None:
        """The records by the times in the payloads; None without times."""
        first, last = self._times.first, self._times.last
        if first is None or last is None:
            return None
        seconds, outside, found = self._times.stretches(COLUMNS_MAX)
        return Times(
            ", ".join(sorted(self._time_fields, key=lambda name: -self._time_fields[name])),
            _at(first),
            _at(last),
            self._times.records,
            outside,
            seconds,
            tuple(Stretch(_at(begin), records, nbytes) for begin, records, nbytes in found),
        )

    def types(self) -> tuple[Type, ...]:
        """The most frequent types, and the rest as ``(other)``."""
        order = sorted(self._types.items(), key=lambda item: (-item[1][0], item[0]))
        rest = [sums for _, sums in order[_TYPES_KEPT:]] + [self._other_types]
        shown = [Type(name, *sums) for name, sums in order[:_TYPES_KEPT]]
        other = Type("(other)", sum(one for one, _ in rest), sum(one for _, one in rest))
        return (*shown, other) if other.records else tuple(shown)


def _leading(size: int) -> int:
    """The size without the lower bits."""
    lower = max(0, size.bit_length() - _EXACT_BITS)
    return size >> lower << lower


def _object(payload: bytes) -> dict[str, Any] | None:
    """The payload as a JSON object; None for anything else."""
    if not payload[:64].lstrip().startswith(b"{") or len(payload) > _JSON_BYTES_MAX:
        return None
    try:
        value = _decode(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _type_of(value: dict[str, Any]) -> str:
    """The type of an object: the field for the type, else the keys."""
    for name in _TYPE_FIELDS:
        found = value.get(name)
        if isinstance(found, str | int) and not isinstance(found, bool):
            return _short(found if isinstance(found, str) else f"{name} {found}")
    keys = sorted(value)
    more = ", …" if len(keys) > _KEYS_MAX else ""
    return _short("{" + ", ".join(keys[:_KEYS_MAX]) + more + "}")


def _short(text: str) -> str:
    # JSON allows a surrogate as an escape, but no file can hold a surrogate as text.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _TYPE_CHARS_MAX else text[: _TYPE_CHARS_MAX - 1] + "…"


def _at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)
