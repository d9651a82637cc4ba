"""The read options: one table, from which parsing and documentation both come."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from deedbook import InvalidArgumentError

__all__ = ["NO_TABLE", "OPTIONS", "Mode", "Option", "ReadOptions", "parse"]

Mode = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Verify = Literal["crc", "none"]
Include = Literal["live", "all"]

NO_TABLE = (
    "cannot work: Spark keeps neither path nor options of such a table when it reads it; use"
    " CREATE TEMPORARY VIEW name USING deedbook OPTIONS (path '...')"
)
"""Why a table in Spark's catalog cannot be read, and what can."""

_POSITION_MAX = 2**63 - 1
_KIB = 1024
_UNITS = {"": 1, "k": _KIB, "m": _KIB**2, "g": _KIB**3}
_PATH_OPTIONS = ("path", "paths")
_SPARKS_OWN = ("checkpointlocation", "queryname")
"""What Spark adds to the options of a stream's sink."""
_OF_A_TABLE = ("provider", "owner")
"""What Spark puts in the place of the options of a table in its catalog."""


@dataclass(frozen=True)
class Option:
    """One option: how it is named, shown in the documentation, and parsed.

    ``parse`` takes the text that the user gave and raises ValueError where it is not allowed.
    """

    name: str
    default: str
    allowed: str
    meaning: str
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class ReadOptions:
    """The options of a batch read, parsed. Sizes are in bytes; ``end`` is exclusive."""

    log: str | None = None
    start: int | None = None
    end: int | None = None
    columns: tuple[str, ...] | None = None
    split_size: int = 64 * _KIB**2
    min_partitions: int | None = None
    batch_rows: int = 16384
    batch_bytes: int = 16 * _KIB**2
    verify: Verify = "crc"
    mode: Mode = "FAILFAST"
    column_name_of_corrupt_record: str = "_corrupt_record"
    base: str | None = None
    ignore_missing_files: bool = False
    filter: str | None = None
    include: Include = "live"

    @property
    def empty(self) -> bool:
        """Whether ``start`` and ``end`` leave nothing."""
        return self.end is not None and self.end <= (self.start or 0)


def parse(options: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a read; names in any case, path options and Spark's own left aside.

    Raises `InvalidArgumentError`, which names the option and what is allowed, or says that a table
    in Spark's catalog cannot be read.
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


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse_choice(text: str) -> str:
        for value in allowed:
            if value.lower() == text.lower():
                return value
        raise ValueError

    return parse_choice


def _position(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text) or int(text) > _POSITION_MAX:
        raise ValueError
    return int(text)


def _count(count_max: int) -> Callable[[str], int]:
    def parse_count(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,7}", text) or not 1 <= int(text) <= count_max:
            raise ValueError
        return int(text)

    return parse_count


def _size(size_max: int) -> Callable[[str], int]:
    def parse_size(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,18}) *([kmg]?)(?:i?b)?", text.lower())
        size = int(match[1]) * _UNITS[match[2]] if match else 0
        if not 1 <= size <= size_max:
            raise ValueError
        return size

    return parse_size


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError
    return names


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _filter(text: str) -> str:
    """A filter as it is: the core says what is wrong with a field, and this only what is none."""
    found = json.loads(text)
    filters = found if isinstance(found, list) else [found]
    if not all(isinstance(one, dict) and "limit" not in one for one in filters):
        raise ValueError
    return text


def _flag(text: str) -> bool:
    flags = {"true": True, "false": False}
    if text.lower() not in flags:
        raise ValueError
    return flags[text.lower()]


OPTIONS: tuple[Option, ...] = (
    Option(
        "log",
        "detected",
        "`book`, `wal`, `ledger`, `nostr`",
        "Format of the logs, if there are logs of several at the paths.",
        _choice("book", "wal", "ledger", "nostr"),
    ),
    Option(
        "start",
        "the first event or record",
        "an event number, an LSN, a file's index or a segment's number, 0 to 2^63 - 1",
        "First event to read, **inclusive**; of a WAL the LSN of the first record, which must be"
        " there; of a ledger the index of the first file, of an event store the number of the first"
        " segment.",
        _position,
    ),
    Option(
        "end",
        "after the last event or record",
        "an event number, an LSN, a file's index or a segment's number, 0 to 2^63 - 1",
        "Event before which reading stops, **exclusive**: `start=10`, `end=20` reads events"
        " 10 to 19. `end` not above `start` gives an empty DataFrame. Of a WAL an LSN, as `start`:"
        " both must lie between records. Of a ledger the index of a file, of an event store the"
        " number of a segment.",
        _position,
    ),
    Option(
        "columns",
        "the default columns",
        "names of columns, separated by commas",
        "Columns to read, in this order. Spark does not tell a Python source which columns a"
        " query uses, so naming them here, or in a schema, saves the most time.",
        _names,
    ),
    Option(
        "splitSize",
        "`64m`",
        "bytes, or a number with `k`, `m` or `g` (powers of 1024), up to `1024g`",
        "About how many bytes one partition reads: of one log, across its segments, or of several"
        " short ones. Logs are cut at blocks of their index, at least 64 KiB.",
        _size(1024 * _KIB**3),
    ),
    Option(
        "minPartitions",
        "none",
        "1 to 100000",
        "At least so many partitions, for short logs on many cores: `splitSize` is made smaller"
        " for it, down to a block of the index.",
        _count(100_000),
    ),
    Option(
        "batchRows",
        "`16384`",
        "1 to 1000000",
        "Most rows of an Arrow batch on its way to the JVM.",
        _count(1_000_000),
    ),
    Option(
        "batchBytes",
        "`16m`",
        "bytes, or a number with `k`, `m` or `g` (powers of 1024), up to `1g`",
        "About the most payload bytes of an Arrow batch; a larger event is a batch of its own.",
        _size(_KIB**3),
    ),
    Option(
        "verify",
        "`crc`",
        "`crc`, `none`",
        "`crc` checks the checksum of every event read; `none` checks lengths only.",
        _choice("crc", "none"),
    ),
    Option(
        "mode",
        "`FAILFAST`",
        "`FAILFAST`, `DROPMALFORMED`, `PERMISSIVE`",
        "What damage does: `FAILFAST` fails the query with file, byte and reason;"
        " `DROPMALFORMED` reads on after it; `PERMISSIVE` does so and adds a row for each"
        " damaged stretch.",
        _choice("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
    ),
    Option(
        "columnNameOfCorruptRecord",
        "`_corrupt_record`",
        "a name",
        "With `PERMISSIVE`, the string column that says what is damaged.",
        _name,
    ),
    Option(
        "base",
        "that of the only ledger there",
        "what the files' names end with",
        "Of ledgers: which one, where several lie in one directory.",
        _name,
    ),
    Option(
        "ignoreMissingFiles",
        "`false`",
        "`true`, `false`",
        "Of ledgers: whether a file that was sent, and so removed, after the query was planned is"
        " passed over; else the query fails, whatever the mode.",
        _flag,
    ),
    Option(
        "filter",
        "all events",
        "a filter of NIP-01 as JSON, or a list of them, without `limit`",
        'Of event stores: only events that it matches, as `{"kinds":[1],"since":1700000000}`;'
        " what it leaves out is not turned into columns.",
        _filter,
    ),
    Option(
        "include",
        "`live`",
        "`live`, `all`",
        "Of event stores: the events that count, or also those that are deleted or replaced and"
        " still stored, as the column `flags` says.",
        _choice("live", "all"),
    ),
)
