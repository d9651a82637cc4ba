"""What a pipeline's logs and tables hold, read without Spark and without the pipeline's code."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from deedbook import Book, Error, Event, EventStore, InvalidArgumentError, Wal
from deedbook.pipeline.events import is_signed, judge
from deedbook.pipeline.notes import digest

__all__ = [
    "Bronze",
    "Record",
    "Silver",
    "UnreadableError",
    "bronze_of",
    "rows_of",
    "silver_of",
    "times_of_files",
]

_EPOCH: Final = date(1970, 1, 1)
_EVENT: Final = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"]


@dataclass(frozen=True)
class Record:
    """One record of a bronze log."""

    position: int
    """Event of a book, LSN of a WAL, number from 1 of an event store."""
    sha256: str
    """Of the payload; of a stored event, of its JSON."""
    id: str | None
    """Of a payload that is a good event."""


@dataclass
class Bronze:
    """A bronze log."""

    records: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is damaged, missing or out of order."""


@dataclass
class Silver:
    """A table of events as far as it can be read, and the counts that follow from it."""

    problem: str | None = None
    """Why it cannot be read."""

    ids: Counter[str] = field(default_factory=Counter)
    rows: Counter[bytes] = field(default_factory=Counter)
    """By a hash of all columns."""
    forged: int = 0
    """Rows whose content is not what the id says, or the signature, where it is checked."""
    misplaced: int = 0
    """Rows whose ``day`` is not that of their time."""
    windows: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Events by the second at which their window begins, and kind."""
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Bytes of content, likewise."""
    authors: Counter[str] = field(default_factory=Counter)


def bronze_of(path: Path, format: str, check: str = "id") -> Bronze:
    """Read a log as far as it can be read; ``check`` says what makes a payload a good event."""
    found = Bronze()
    try:
        if format == "nostr":
            _read_store(path, check, found)
        elif format == "book":
            _read_book(path, check, found)
        else:
            _read_wal(path, check, found)
    except (Error, OSError) as error:
        found.problems.append(str(error))
    return found


def _read_book(path: Path, check: str, found: Bronze) -> None:
    report = Book.verify(path)
    if not report.ok:
        found.problems.append(f"verify says {report.verdict}")
    with Book.open(path) as book:
        for number, deed in enumerate(book.iter(on_corrupt="skip"), book.epoch + 1):
            if deed.event != number:
                found.problems.append(f"event {deed.event} where {number} is due")
            found.records.append(_record(deed.event or 0, deed.jam, check))


def _read_wal(path: Path, check: str, found: Bronze) -> None:
    report = Wal.verify(path)
    if not report.ok:
        found.problems.append(f"verify says {report.verdict}")
    with Wal.open(path) as wal:
        due = wal.head
        for record in wal.iter(on_corrupt="skip"):
            if record.lsn != due:
                found.problems.append(f"a record at LSN {record.lsn} where {due} is due")
            due = record.next_lsn
            found.records.append(_record(record.lsn, record.payload, check))


def _read_store(path: Path, check: Any, found: Bronze) -> None:
    with EventStore.open(path) as store:
        report = EventStore.verify(path, check=check)
        if not report.ok:
            found.problems.append(f"verify finds {report.faults} faults")
        if store.opening.is_loss:
            found.problems.append("acknowledged events are missing")
        events = store.iter(include="all", on_corrupt="skip")
        for number, event in enumerate(events, 1):
            data = event.to_json().encode()
            found.records.append(Record(number, digest(data), event.id))


def _record(position: int, payload: bytes, check: str) -> Record:
    return Record(position, digest(payload), judge(payload, check)[0])


class UnreadableError(Exception):
    """A table cannot be read, or not as a table."""


def rows_of(path: Path, kind: str = "parquet") -> Iterator[dict[str, Any]]:
    """The rows of a table, ``parquet`` or ``delta``; none if there is no table.

    Times are whole seconds since 1970. Raises `UnreadableError`.
    """
    with _as_unreadable(path):
        dataset = _dataset(path, kind)
        for batch in () if dataset is None else dataset.to_batches():
            yield from _in_seconds(batch).to_pylist()


def times_of_files(path: Path, kind: str, column: str) -> Iterator[tuple[Path, list[int]]]:
    """The files of a table, each with what it has in a column of times.

    Raises `UnreadableError`.
    """
    with _as_unreadable(path):
        dataset = _dataset(path, kind)
        for fragment in () if dataset is None else dataset.get_fragments():
            batches = map(_in_seconds, fragment.to_batches(columns=[column]))
            yield path / fragment.path, [at for batch in batches for at in batch[0].to_pylist()]


@contextmanager
def _as_unreadable(path: Path) -> Iterator[None]:
    """Raise `UnreadableError` for what the library of a table raises."""
    try:
        yield
    except Exception as error:  # of pyarrow and delta-rs, which have no error in common
        first, *_ = str(error).splitlines() or [type(error).__name__]
        raise UnreadableError(f"{path}: {first}") from error


def _dataset(path: Path, kind: str) -> Any:
    """A table; None if there is none."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if kind == "delta":
        from deltalake import DeltaTable

        there = DeltaTable.is_deltatable(str(path))
        return DeltaTable(str(path)).to_pyarrow_dataset() if there else None
    if not any(path.rglob("*.parquet")):
        return None
    day = ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")
    partitioned = any(path.glob("day=*"))
    return ds.dataset(path, format="parquet", partitioning=day if partitioned else None)


def _in_seconds(batch: Any) -> Any:
    """Rows whose times are numbers."""
    import pyarrow as pa

    for name in batch.schema.names:
        column = batch.schema.get_field_index(name)
        if pa.types.is_timestamp(batch.schema.field(column).type):
            unit = batch[name].cast(pa.timestamp("s", "UTC"), safe=True).cast(pa.int64())
            batch = batch.set_column(column, name, unit)
    return batch


def silver_of(path: Path, kind: str, window: int, checks: Mapping[str, str]) -> Silver:
    """Read a table of events, which are counted by windows of so many seconds.

    ``checks`` says of each source what is checked of its events.
    """
    found = Silver()
    try:
        _read_silver(path, kind, window, checks, found)
    except UnreadableError as error:
        found.problem = str(error)
    return found


def _read_silver(
    path: Path, kind: str, window: int, checks: Mapping[str, str], found: Silver
) -> None:
    for row in rows_of(path, kind):
        event = row["id"].hex()
        found.ids[event] += 1
        values = repr([row[name] for name in ("source", *_EVENT)] + [str(row["day"])])
        found.rows[hashlib.sha256(values.encode()).digest()] += 1
        found.forged += not _is_true(row, checks.get(row["source"], "id"))
        found.misplaced += not _is_on_its_day(row)
        content = row["content"].encode()
        place = row["created_at"] // window * window, row["kind"]
        found.windows[place] += 1
        found.sizes[place] += len(content)
        found.authors[row["pubkey"].hex()] += 1


def _is_on_its_day(row: dict[str, Any]) -> bool:
    """Whether the day, by which the table is partitioned, is that of the time, in UTC."""
    day: date | None = row["day"]
    return day is not None and (day - _EPOCH).days == row["created_at"] // 86_400


def _is_true(row: dict[str, Any], check: str) -> bool:
    """Whether the id is the hash of the content, and signed by the author if that is checked."""
    values = {name: row[name] for name in _EVENT}
    values.update({name: row[name].hex() for name in ("id", "pubkey", "sig")})
    try:
        event = Event(**values)
        event.check_id()
    except InvalidArgumentError:
        return False
    return check != "signature" or is_signed(event.to_json().encode())
