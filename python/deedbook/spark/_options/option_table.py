"""The table of the options, for parsing and documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from deedbook._show import amounts
from deedbook._show.amounts import KIB

__all__ = ["KIB", "OPTIONS", "Option", "Scope"]

Scope = Literal["read", "stream", "write"]

_POSITION_MAX = 2**63 - 1


@dataclass(frozen=True)
class Option:
    """An option: name, documentation and parser.

    ``parse`` takes the user's text and raises ValueError for a forbidden value. ``scopes`` are the
    uses with this option: ``read``, ``stream``, ``write`` (batches and streams).
    """

    name: str
    default: str
    allowed: str
    meaning: str
    parse: Callable[[str], Any]
    scopes: tuple[Scope, ...] = ("read", "stream")


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


def _starting_position(text: str) -> str | int:
    return text.lower() if text.lower() in ("earliest", "latest") else _position(text)


def _count(count_max: int) -> Callable[[str], int]:
    def parse_count(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text) or not 1 <= int(text) <= count_max:
            raise ValueError
        return int(text)

    return parse_count


def _size(size_max: int) -> Callable[[str], int]:
    def parse_size(text: str) -> int:
        size = amounts.size(text)
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
    """An unchanged filter. The core checks the fields; this function only refuses other JSON."""
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
        "Format of the logs, if there are logs of several at the paths. For writing a log that is"
        " not there yet, which to create.",
        _choice("book", "wal", "ledger", "nostr"),
        ("read", "stream", "write"),
    ),
    Option(
        "start",
        "the first event or record",
        "an event number, an LSN, a file's index or a segment's number, 0 to 2^63 - 1",
        "First event to read, **inclusive**; of a WAL the LSN of the first record, which must be"
        " there; of a ledger the index of the first file, of an event store the number of the first"
        " segment.",
        _position,
        ("read",),
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
        ("read",),
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
        _size(1024 * KIB**3),
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
        _size(KIB**3),
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
        ("read", "stream", "write"),
    ),
    Option(
        "liveLog",
        "none",
        "the path of a log",
        "Of an [archive](archive.md#spark-and-sail): the log that it belongs to. The"
        " read has the records of both, each once: dropped records from the archive, the others"
        " from the log.",
        _name,
        ("read",),
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
        "Of event stores: the events that count, or also those that are still stored and deleted or"
        " replaced, as the column `flags` says, or over.",
        _choice("live", "all"),
    ),
    Option(
        "startingPosition",
        "`earliest`",
        "`earliest`, `latest`, an event number, an LSN, a file's index",
        "Of streams: where a new query begins; one that goes on begins where it was. A number is"
        " the first to read: an event of books, an LSN or a file of one WAL or ledger. A log that"
        " appears later is read from its first record on.",
        _starting_position,
        ("stream",),
    ),
    Option(
        "maxRowsPerTrigger",
        "none",
        "1 to 10^12",
        "Of streams: at most so many records in a batch, but one at least; of ledgers, whole"
        " files; of event stores, stored events.",
        _count(10**12),
        ("stream",),
    ),
    Option(
        "maxBytesPerTrigger",
        "none",
        "bytes, or a number with `k`, `m` or `g` (powers of 1024), up to `1024g`",
        "Of streams: at most so many bytes of the log in a batch, but one record at least; of"
        " ledgers, whole files. With both limits, whichever is reached first.",
        _size(1024 * KIB**3),
        ("stream",),
    ),
    Option(
        "failOnDataLoss",
        "`true`",
        "`true`, `false`",
        "Of streams: whether a query fails where what it has not read is gone: a log that was cut,"
        " dropped in front, replaced or removed. Else it goes on with what is there and logs a"
        " warning with both places.",
        _flag,
        ("stream",),
    ),
    Option(
        "readUntil",
        "`durable`",
        "`durable`, `written`",
        "Of streams of books and WALs: `durable` reads what the writer has synced, where the log"
        " knows it; `written` all that is written, so that a power cut can take what the query has"
        " read. Ledgers and event stores do not know it: all of a finished file, all that is in"
        " segments.",
        _choice("durable", "written"),
        ("stream",),
    ),
    Option(
        "consumer",
        "none",
        "a name without white space, of this query alone",
        "Of streams of WALs: what the query has not read yet is kept. Truncation and retention heed"
        " it as a named consumer of the log, which the query sets at its begin, and to the"
        " end of each batch as the next one begins, so the last batch is kept, too. It stays until"
        " `deedbook consumers LOG --remove NAME`. Without it, what is dropped"
        " before it was read is lost to the query, which says so.",
        _name,
        ("stream",),
    ),
    Option(
        "segmentSize",
        "`64m`",
        "bytes, or a number with `k`, `m` or `g` (powers of 1024), up to `1024g`",
        "Of a WAL that is created: the size of its segments.",
        _size(1024 * KIB**3),
        ("write",),
    ),
    Option(
        "epochSize",
        "`64m`",
        "bytes, or a number with `k`, `m` or `g` (powers of 1024), up to `1024g`",
        "Of a pier: a write whose tasks stage so many bytes or more on average makes an epoch of"
        " what each has staged, by renaming, instead of copying it to the last epoch.",
        _size(1024 * KIB**3),
        ("write",),
    ),
    Option(
        "txnAppId",
        "none; of a stream, its query's id",
        "a name without white space",
        "The application that writes. With `txnVersion`, a batch write that is repeated appends"
        " nothing. One application is one query, or one series of batch writes.",
        _name,
        ("write",),
    ),
    Option(
        "txnVersion",
        "none; of a stream, the batch's number",
        "0 to 2^63 - 1",
        "Number of a batch write: of one application, each is above the one before.",
        _position,
        ("write",),
    ),
    Option(
        "txnQuery",
        "none; of a stream, its query's id",
        "a name without white space",
        "For `foreachBatch`: the id of the query whose batch is written, beside `txnAppId` and"
        " `txnVersion`, the batch's number. As for a stream, another query of the same application"
        " is refused, and so is a batch that is neither the next nor the last.",
        _name,
        ("write",),
    ),
    Option(
        "lockTimeout",
        "`60s`",
        "a number with `ms`, `s`, `m` or `h`",
        "How long a commit waits while another process has the log open for writing.",
        amounts.duration,
        ("write",),
    ),
)
