"""The steps of `compact` for each format: look at a source, copy many logs into a new log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Final

from deedbook import (
    CorruptError,
    EventStore,
    InvalidArgumentError,
    Ledger,
    OutOfRangeError,
)
from deedbook._formats import by_name

__all__ = ["COPIES", "Copies", "Source", "first_of"]

Source = dict[str, Any]
"""A source in the plan: path, records, bytes; a book's first event, a ledger's base."""
_BATCH_BYTES: Final = 4 << 20
_EVENTS: Final = 4096
_RECORD_BYTES_MAX: Final = 1 << 20
"""Bytes of a ledger's file, unless a source has longer files."""


class Copies(ABC):
    """Copying logs of a format into a new log."""

    @abstractmethod
    def look(self, path: str) -> Source:
        """A source for the plan. Raises `CorruptError` for a damaged source."""

    @abstractmethod
    def size(self, path: str) -> int:
        """The bytes of a source, as `look` counts them; without reading records."""

    def check(self, source: Source) -> None:
        """Raise `OutOfRangeError` for a source of another length than in the plan."""
        _same(source, "bytes", self.size(source["path"]))

    @abstractmethod
    def fill(self, making: Path, sources: Sequence[Source]) -> Iterator[tuple[int, int]]:
        """Make a log from the sources, synced and counted. Yields records and bytes done."""

    def records(self, path: Path) -> int | None:
        """The number of records of a new log, if the sources do not have the number."""
        return None


class _Log(Copies):
    """Books and WALs."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._column = "jam" if format == "book" else "payload"

    def look(self, path: str) -> Source:
        with by_name(self._format).open(path, "r") as log:
            if log.recovery.verdict == "corrupt":
                raise _damaged(path)
            first = log.bounds[0] if self._format == "book" and log.bounds else None
            return {"path": path, "records": len(log), "bytes": log.end, "first": first}

    def size(self, path: str) -> int:
        with by_name(self._format).open(path, "r") as log:
            return int(log.end)

    def fill(self, making: Path, sources: Sequence[Source]) -> Iterator[tuple[int, int]]:
        options: dict[str, Any] = {"durability": "manual"}
        if self._format == "book":
            options["epoch"] = first_of(sources) - 1
        with by_name(self._format).open(str(making), "x", **options) as made:
            for source in sources:
                before = len(made)
                for payloads, mugs in self._read(source["path"]):
                    if self._format == "book":
                        made.append_many(payloads, mugs=mugs)
                    else:
                        made.append_many(payloads)
                    yield len(payloads), sum(map(len, payloads))
                _same(source, "records", len(made) - before)
            made.sync()
        with by_name(self._format).open(str(making), "r") as made:
            _check_made(making, len(made), sum(one["records"] for one in sources))

    def _read(self, path: str) -> Iterator[tuple[list[bytes], list[int]]]:
        """Payloads, with the mugs of a book, in batches."""
        import pyarrow as pa

        columns = [self._column, "mug"] if self._format == "book" else [self._column]
        with by_name(self._format).open(path, "r") as log:
            for batch in log.batches(columns=columns, batch_bytes=_BATCH_BYTES):
                rows = pa.record_batch(batch)
                payloads: list[Any] = rows[self._column].to_pylist()
                mugs: list[Any] = rows["mug"].to_pylist() if len(columns) > 1 else []
                yield payloads, [mug & 0xFFFFFFFF for mug in mugs]


class _Ledgers(Copies):
    """Ledgers: copies finished files into files of the usual size."""

    def look(self, path: str) -> Source:
        with Ledger.open(path) as snapshot:
            active = next((file.path for file in snapshot.files if file.active), None)
            if active is not None:
                raise InvalidArgumentError(
                    f"{active} is being written: close the ledger that does, and compact then"
                )
            records = _count_ledger(snapshot)
            size = _bytes_of(snapshot)
            longest = max((file.bytes for file in snapshot.files), default=0)
            base = snapshot.base
        if records is None:
            raise _damaged(path)
        return {"path": path, "records": records, "bytes": size, "base": base, "longest": longest}

    def size(self, path: str) -> int:
        with Ledger.open(path) as snapshot:
            return _bytes_of(snapshot)

    def fill(self, making: Path, sources: Sequence[Source]) -> Iterator[tuple[int, int]]:
        import pyarrow as pa

        base = sources[0]["base"]
        longest = max(_RECORD_BYTES_MAX, *(one["longest"] for one in sources))
        with Ledger.open(
            making, "x", base=base, durability="manual", record_bytes_max=longest
        ) as made:
            for source in sources:
                copied = 0
                with Ledger.open(source["path"], base=base) as snapshot:
                    for batch in snapshot.batches(columns=["payload"], batch_bytes=_BATCH_BYTES):
                        payloads: list[Any] = pa.record_batch(batch)["payload"].to_pylist()
                        made.append_many(payloads)
                        copied += len(payloads)
                        yield len(payloads), sum(map(len, payloads))
                _same(source, "records", copied)
            made.sync()
        with Ledger.open(making, base=base) as there:
            _check_made(making, _count_ledger(there), sum(one["records"] for one in sources))


class _Stores(Copies):
    """Event stores: the visible events, each id once in a new store, by the store's rules."""

    def look(self, path: str) -> Source:
        with EventStore.open(path) as store:
            records = _count_events(store, "live")
            return {"path": path, "records": records, "bytes": _bytes_of_store(store)}

    def size(self, path: str) -> int:
        with EventStore.open(path) as store:
            return _bytes_of_store(store)

    def fill(self, making: Path, sources: Sequence[Source]) -> Iterator[tuple[int, int]]:
        stored = 0
        with EventStore.create(making, durability="manual") as made:
            for source in sources:
                with EventStore.open(source["path"]) as store:
                    # By bytes, because the number of visible events shrinks when events expire.
                    _same(source, "bytes", _bytes_of_store(store))
                    events = store.iter()
                    while batch := list(islice(events, _EVENTS)):
                        stored += sum(one.stored for one in made.append_many(batch))
                        yield len(batch), sum(len(event.content) for event in batch)
            made.checkpoint()
        with EventStore.open(making) as there:
            _check_made(making, _count_events(there, "all"), stored)

    def records(self, path: Path) -> int | None:
        with EventStore.open(path) as store:
            return _count_events(store, "live")


COPIES: Final[dict[str, Copies]] = {
    "book": _Log("book"),
    "wal": _Log("wal"),
    "ledger": _Ledgers(),
    "nostr": _Stores(),
}


def first_of(sources: Sequence[Source]) -> int:
    """The number of a new book's first event: from the sources, if they follow one another."""
    filled = [one for one in sources if one["records"]]
    follow = all(
        one["first"] == before["first"] + before["records"] for before, one in pairwise(filled)
    )
    first: int = filled[0]["first"] if filled and follow else 1
    return first


def _count_ledger(snapshot: Ledger) -> int | None:
    """The records of all files; None if damage hides records."""
    records = 0
    for file in snapshot.files:
        end = 0
        for part in snapshot.splits(start=(file.index, 0), stop=(file.index + 1, 0)):
            if part.records is None or part.offset != end:
                return None
            records, end = records + part.records, part.end
        if end != file.bytes:
            return None
    return records


def _count_events(store: EventStore, include: Any) -> int:
    import pyarrow as pa

    batches = store.batches(columns=["kind"], include=include)
    return sum(pa.record_batch(batch).num_rows for batch in batches)


def _bytes_of_store(store: EventStore) -> int:
    return sum(size for _, size in store.segments)


def _bytes_of(snapshot: Ledger) -> int:
    return sum(file.bytes for file in snapshot.files)


def _same(source: Source, unit: str, found: int) -> None:
    if found != source[unit]:
        raise OutOfRangeError(
            f"{source['path']} has {found} {unit}, the plan says {source[unit]}: it was changed"
        )


def _check_made(making: Path, found: int | None, expected: int) -> None:
    if found != expected:
        raise CorruptError(f"{making} has {found} records, {expected} were appended")


def _damaged(path: str) -> CorruptError:
    return CorruptError(f"{path} is damaged: verify says where; compact copies intact logs")
