"""The place of a streaming query, for Spark to keep in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deedbook import InvalidArgumentError
from deedbook.spark._logs.format import Place

__all__ = ["Offset"]

_VERSION = 1
_TEXTS = ("before", "first", "identity", "last", "refused", "refusedFile")
"""The values of places that are texts; the others are numbers."""


class Offset(NamedTuple):
    """Places in logs, by the logs' paths."""

    log: str
    """The format."""
    places: Mapping[str, Place]

    def to_json(self) -> dict[str, Any]:
        """The JSON for Spark: ``{"version": 1, "log": "wal", "logs": {PATH: PLACE}}``."""
        return {"version": _VERSION, "log": self.log, "logs": dict(self.places)}

    @classmethod
    def of_json(cls, json: object, log: str) -> Offset:
        """Read it back.

        Raises `InvalidArgumentError` for an offset of another version, format or source.
        """
        given: dict[str, Any] = json if isinstance(json, dict) else {}
        found = (given.get("version"), given.get("log"))
        if found != (_VERSION, log) or not isinstance(given.get("logs"), dict):
            raise InvalidArgumentError(
                f"the checkpoint is not this query's: it has version {found[0]} and format"
                f" {found[1]}, this query version {_VERSION} and format {log}"
            )
        for path, place in given["logs"].items():
            if not isinstance(place, dict) or not all(map(_fits, place, place.values())):
                raise InvalidArgumentError(
                    f"the checkpoint is not this query's: its place in {path} is {place}"
                )
        return cls(log, given["logs"])


def _fits(name: str, value: object) -> bool:
    """Whether a value of a place has the type of its name."""
    if name in _TEXTS:
        return isinstance(value, str)
    least = -1 if name in ("after", "origin") else 0  # before the first file
    return type(value) is int and least <= value < 1 << 63
