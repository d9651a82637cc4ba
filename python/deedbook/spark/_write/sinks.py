"""The columns of a DataFrame for each format, and opening a log for writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from deedbook import (
    Book,
    EventStore,
    InvalidArgumentError,
    Ledger,
    Pier,
    UnsupportedError,
    Wal,
)
from deedbook.spark._options.options import ReadOptions

__all__ = ["CREATED", "SINKS", "Sink", "Taken", "bind_columns", "check_layout"]


@dataclass(frozen=True)
class Taken:
    """A column of a format: the name in the core, other names, types."""

    name: str
    types: tuple[DataType, ...]
    aliases: tuple[str, ...] = ()
    is_needed: bool = True


@dataclass(frozen=True)
class Sink:
    """A format for writing."""

    name: str
    columns: Sequence[Taken]
    assigned: Sequence[str]
    """Columns of a read that the log itself assigns."""
    open: Callable[[Path, str, ReadOptions], Any]
    """A handle in a mode, ``r`` or ``a``. The caller uses the attribute ``transactions``."""
    numbered: str | None = None
    """The column with the required numbers of records."""

    @property
    def called(self) -> str:
        """The value of option ``log``: a pier has the same name for writing and reading."""
        return "book" if self.name == "pier" else self.name


_BYTES = (BinaryType(), StringType())
_NUMBER = (LongType(), IntegerType())
_PAYLOAD = ("payload", "jam", "value")


def _payload(name: str) -> Taken:
    return Taken(name, _BYTES, tuple(other for other in _PAYLOAD if other != name))


def _open_book(path: Path, mode: str, options: ReadOptions) -> Book:
    return Book.open(path, mode)  # type: ignore[arg-type]


def _open_pier(path: Path, mode: str, options: ReadOptions) -> Pier:
    return Pier.open(path, mode, epoch_part_bytes=options.epoch_size)  # type: ignore[arg-type]


def _open_wal(path: Path, mode: str, options: ReadOptions) -> Wal:
    return Wal.open(path, mode, segment_bytes=options.segment_size)  # type: ignore[arg-type]


def _open_ledger(path: Path, mode: str, options: ReadOptions) -> Ledger:
    return Ledger.open(path, "a", base=options.base)


def _open_store(path: Path, mode: str, options: ReadOptions) -> EventStore:
    return EventStore.open(path, mode)  # type: ignore[arg-type]


_DEED = (
    _payload("jam"),
    Taken("mug", (IntegerType(),), is_needed=False),
    Taken("event", _NUMBER, is_needed=False),
)

SINKS: dict[str, Sink] = {
    sink.name: sink
    for sink in (
        Sink("book", _DEED, (), _open_book, numbered="event"),
        Sink("pier", _DEED, (), _open_pier, numbered="event"),
        Sink("wal", (_payload("payload"),), ("lsn",), _open_wal),
        Sink("ledger", (_payload("payload"),), ("file", "record"), _open_ledger),
        Sink(
            "nostr",
            (
                Taken("id", (BinaryType(),)),
                Taken("pubkey", (BinaryType(),)),
                Taken("created_at", (TimestampType(), LongType())),
                Taken("kind", _NUMBER),
                Taken("tags", (ArrayType(ArrayType(StringType())),)),
                Taken("content", (StringType(),)),
                Taken("sig", (BinaryType(),)),
            ),
            ("flags",),
            _open_store,
        ),
    )
}
CREATED = tuple(name for name in SINKS if name != "pier")
"""Formats of logs that a write may create. Only Urbit creates a pier."""


def check_layout(log: Any, path: Path) -> None:
    """Refuse a book in a read-only layout, before tasks run; in a pier, check the last book."""
    layout = log.epochs[-1].layout if isinstance(log, Pier) else getattr(log, "layout", None)
    if layout == "padded":
        error = UnsupportedError(
            f"{path} is a book in layout padded, which is only read; 'deedbook convert' makes a"
            " copy to append to"
        )
        error.format, error.path = "book", str(path)
        raise error


def bind_columns(sink: Sink, schema: StructType) -> dict[str, int]:
    """The place in the schema of each column of the format.

    Raises `InvalidArgumentError` for a column that is unknown, missing or of another type.
    """
    found: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        taken = next((one for one in sink.columns if _is(one, field.name)), None)
        if taken is None:
            why = (
                "the log assigns it"
                if field.name.lower() in sink.assigned
                else f"columns taken: {', '.join(one.name for one in sink.columns)}"
            )
            raise InvalidArgumentError(
                f"column {field.name}: a {sink.name} does not take it, {why}; leave it out with"
                f" .drop({field.name!r})"
            )
        if not any(_same(field.dataType, of) for of in taken.types):
            allowed = " or ".join(of.simpleString() for of in taken.types)
            raise InvalidArgumentError(
                f"column {field.name} is {field.dataType.simpleString()}, must be {allowed}"
            )
        if taken.name in found:
            other = schema.fields[found[taken.name]].name
            raise InvalidArgumentError(
                f"columns {other} and {field.name} are both the {taken.name}"
            )
        found[taken.name] = place
    for taken in sink.columns:
        if taken.is_needed and taken.name not in found:
            names = " or ".join((taken.name, *taken.aliases))
            raise InvalidArgumentError(
                f"no column {names} among {', '.join(schema.names) or 'none'}:"
                f" a {sink.name} needs it"
            )
    return found


def _is(taken: Taken, name: str) -> bool:
    return name.lower() in (taken.name, *taken.aliases)


def _same(left: DataType, right: DataType) -> bool:
    """Whether types are the same, except for nullability."""
    return left.simpleString() == right.simpleString()
