"""Where a streaming query is: what Spark keeps in the query's checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deedbook import InvalidArgumentError
from deedbook.spark._format import Place

__all__ = ["Offset"]

_VERSION = 1


class Offset(NamedTuple):
    """Places in logs, by the logs' paths."""

    log: str
    """The format."""
    places: Mapping[str, Place]

    def to_json(self) -> dict[str, Any]:
        """As Spark writes it: ``{"version": 1, "log": "wal", "logs": {PATH: PLACE}}``."""
        return {"version": _VERSION, "log": self.log, "logs": dict(self.places)}

    @classmethod
    def of_json(cls, json: Mapping[str, Any], log: str) -> Offset:
        """Read it back.

        Raises `InvalidArgumentError` for one of another version or format, or of another source.
        """
        found = (json.get("version"), json.get("log"))
        if found != (_VERSION, log) or not isinstance(json.get("logs"), Mapping):
            raise InvalidArgumentError(
                f"the checkpoint is not this query's: it has version {found[0]} and format"
                f" {found[1]}, this query version {_VERSION} and format {log}"
            )
        return cls(log, dict(json["logs"]))
