"""The place of a streaming query, for Spark to keep in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deedbook import InvalidArgumentError
from deedbook.spark._logs.format import Place

__all__ = ["Offset"]

_VERSION = 1


class Offset(NamedTuple):
    """Places in logs, by the logs' paths."""

    log: str
    """The format."""
    places: Mapping[str, Place]

    def to_json(self) -> dict[str, Any]:
        """The JSON for Spark: ``{"version": 1, "log": "wal", "logs": {PATH: PLACE}}``."""
        return {"version": _VERSION, "log": self.log, "logs": dict(self.places)}

    @classmethod
    def of_json(cls, json: Mapping[str, Any], log: str) -> Offset:
        """Read it back.

        Raises `InvalidArgumentError` for an offset of another version, format or source.
        """
        found = (json.get("version"), json.get("log"))
        if found != (_VERSION, log) or not isinstance(json.get("logs"), Mapping):
            raise InvalidArgumentError(
                f"the checkpoint is not this query's: it has version {found[0]} and format"
                f" {found[1]}, this query version {_VERSION} and format {log}"
            )
        return cls(log, dict(json["logs"]))
