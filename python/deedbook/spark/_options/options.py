"""The options of a read, a stream or a write, as given and parsed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from deedbook import InvalidArgumentError
from deedbook.spark._options.option_table import KIB, OPTIONS, Scope

__all__ = ["NO_TABLE", "Mode", "ReadOptions", "parse"]

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Verify = Literal["crc", "none"]
Include = Literal["live", "all"]
ReadUntil = Literal["durable", "written"]

NO_TABLE = (
    "cannot work: Spark keeps neither path nor options of such a table when it reads it; use"
    " CREATE TEMPORARY VIEW name USING deedbook OPTIONS (path '...')"
)
"""The error for a table in Spark's catalog, with the way that works."""

_PATH_OPTIONS = ("path", "paths")
_SPARKS_OWN = ("checkpointlocation", "queryname")
"""The options that Spark adds to a stream's sink."""
_OF_A_TABLE = ("provider", "owner")
"""The options that Spark puts in place of the options of a table in the catalog."""


_ONLY_FOR: dict[tuple[Scope, ...], str] = {
    ("read",): "is for batch reads; a stream has startingPosition",
    ("stream",): "is for streams, spark.readStream",
    ("write",): "is for writing",
}
"""The error for an option in the wrong place."""


@dataclass(frozen=True)
class ReadOptions:
    """The options of a read, a stream or a write, parsed. Sizes are bytes; ``end`` is exclusive."""

    log: str | None = None
    start: int | None = None
    end: int | None = None
    columns: tuple[str, ...] | None = None
    split_size: int = 64 * KIB**2
    min_partitions: int | None = None
    batch_rows: int = 16384
    batch_bytes: int = 16 * KIB**2
    verify: Verify = "crc"
    mode: Mode = "FAILFAST"
    column_name_of_corrupt_record: str = "_corrupt_record"
    base: str | None = None
    live_log: str | None = None
    ignore_missing_files: bool = False
    filter: str | None = None
    include: Include = "live"
    starting_position: str | int = "earliest"
    max_rows_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    fail_on_data_loss: bool = True
    read_until: ReadUntil = "durable"
    consumer: str | None = None
    segment_size: int | None = None
    epoch_size: int = 64 * KIB**2
    txn_app_id: str | None = None
    txn_version: int | None = None
    txn_query: str | None = None
    lock_timeout: float = 60.0

    @property
    def empty(self) -> bool:
        """Whether ``start`` and ``end`` leave nothing."""
        return self.end is not None and self.end <= (self.start or 0)


def parse(options: Mapping[str, str], scope: Scope | None = "read") -> ReadOptions:
    """Parse the options of a use, or with None of any; names in any case.

    Path options and Spark's own options are left aside. Raises `InvalidArgumentError` with the
    option and the allowed values, or for a table in Spark's catalog.
    """
    if any(name.lower() in _OF_A_TABLE for name in options):
        raise InvalidArgumentError(f"CREATE TABLE ... USING deedbook {NO_TABLE}")
    known = {option.name.lower(): option for option in OPTIONS}
    values: dict[str, Any] = {}
    for name, text in options.items():
        if name.lower() in (*_PATH_OPTIONS, *_SPARKS_OWN):
            continue
        option = known.get(name.lower())
        if option is None:
            raise InvalidArgumentError(_unknown(name))
        # Options of a view may be options for reading, in every use of the view.
        if scope is not None and scope not in option.scopes and scope != "write":
            raise InvalidArgumentError(f"option {option.name}: {_ONLY_FOR[option.scopes]}")
        try:
            values[_attribute(option.name)] = option.parse(text.strip())
        except ValueError:
            raise InvalidArgumentError(
                f"option {option.name}: {text!r} is not allowed; allowed: {option.allowed}"
            ) from None
    return ReadOptions(**values)


def _unknown(name: str) -> str:
    names = [option.name for option in OPTIONS]
    by_lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f" (did you mean {by_lower[close[0]]}?)" if close else ""
    return f"unknown option {name}{hint}; allowed: path, {', '.join(names)}"


def _attribute(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), name)
