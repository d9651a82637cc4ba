"""Spools, the stores of unsent events: the ledger, and the alternatives.

An event is a JSON object. Each spool is used as its documentation shows, in its default form and,
if this differs, in the fastest form whose events survive kill -9.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from random import Random
from typing import Any, ClassVar

from stores import PART, Jams, OwnStore, Sqlite, Store, parts

from deedbook import Durability

BATCH_BYTES = 475_000
"""The services' limit for one request, and the ledger's default size of a file."""
BLOCK_BYTES = 1 << 16
"""A reader's block of a body."""


def events(count: int, size: int, seed: int) -> list[bytes]:
    """Different JSON objects of ``size`` bytes each."""
    random = Random(seed)
    made = []
    for number in range(count):
        event = {"event": "page_view", "user": number, "text": ""}
        room = size - len(json.dumps(event))
        event["text"] = random.randbytes(max(room, 0) // 2 + 1).hex()[: max(room, 0)]
        made.append(json.dumps(event).encode())
    return made


class Spool(Store):
    """A store of events, which returns its payloads once and in order, the oldest first."""

    checks = "nothing"
    power: ClassVar[str] = "what the system had not written"
    """The loss of events after a power cut, with one append per event."""
    slowness: ClassVar[int] = 1
    """The spool gets only a part of the events, for a shorter run."""
    batches: ClassVar[bool] = True
    """Whether a call or transaction can have several events."""
    syncs: ClassVar[bool] = True
    """Whether an event can be on stable storage before the next event."""

    read_mode: ClassVar[str | None] = None
    """The way to read a request's body, if it is measured."""

    @classmethod
    def given(cls, events: int) -> int:
        """The number of events for this spool, of ``events``."""
        return events // cls.slowness

    def last(self) -> int:
        return sum(1 for _ in self.jams())

    def body(self, count: int) -> int:
        """Read the oldest `count` events as the JSON array of a request; returns the bytes."""
        return len(b"[%b]" % b",".join(islice(self.jams(), count)))


class LedgerSpool(Spool):
    name = "Ledger"
    checks = "CRC-32 of every record, at the fetch and again while it is read"
    batch_mode = f"append_many of {PART}"
    each_mode = "append, durability none, the default"
    read_mode: ClassVar[str | None] = "fetch(1), readinto a buffer of 64 KiB"
    durability: ClassVar[Any] = "none"

    @classmethod
    def version(cls) -> str:
        return OwnStore.version()

    def open(self, durable: bool = False) -> None:
        from deedbook import Ledger

        self.ledger = Ledger.open(
            self.path, "a", durability="always" if durable else self.durability
        )

    def append_batch(self, first: int, jams: Jams) -> None:
        for part in parts(jams):
            self.ledger.append_many(part)

    def append_each(self, first: int, jams: Jams) -> None:
        append = self.ledger.append
        for jam in jams:
            append(jam)

    append_durable = append_each

    def last(self) -> int:
        return self.ledger.verify(self.path).records

    def jams(self) -> Iterator[bytes]:
        while (result := self.ledger.fetch()) is not None:
            for body in result.data:
                yield from body.records()
            self.ledger.remove(result.removable)

    def body(self, count: int) -> int:
        result = self.ledger.fetch(1)
        assert result is not None
        (body,) = result.data
        buffer, done = bytearray(BLOCK_BYTES), 0
        while read := body.readinto(buffer):
            done += read
        assert body.count == count
        return done

    def close(self) -> None:
        self.ledger.close()


class RotatingLedger(LedgerSpool):
    name = "Ledger, rotate"
    each_mode = "append, each file synced when it is finished"
    durability = "manual"
    read_mode = None
    power = "what the file being written holds"


class IntervalLedger(LedgerSpool):
    name = "Ledger, interval:100"
    each_mode = "append, synced every 100 ms in the background"
    durability = timedelta(milliseconds=100)
    read_mode = None
    power = "the last 100 ms"


class BytesLedger(LedgerSpool):
    name = "Ledger, bytes:1048576"
    each_mode = "append, synced after each MiB"
    durability = Durability.bytes(1048576)
    read_mode = None
    power = "the last MiB"


class Lines(Spool):
    name = "JSON-lines file"
    batch_mode = f"one write and flush per {PART} lines"
    each_mode = "write and flush each line (without the flush, kill -9 loses events)"
    read_mode: ClassVar[str | None] = "the file read, split, and joined as a JSON array"

    def open(self, durable: bool = False) -> None:
        self.file = open(self.path, "ab")  # noqa: SIM115 (closed by close)

    def append_batch(self, first: int, jams: Jams) -> None:
        for part in parts(jams):
            self.file.write(b"\n".join(part) + b"\n")
            self.file.flush()

    def append_each(self, first: int, jams: Jams) -> None:
        write, flush = self.file.write, self.file.flush
        for jam in jams:
            write(jam + b"\n")
            flush()

    def append_durable(self, first: int, jams: Jams) -> None:
        for jam in jams:
            self.file.write(jam + b"\n")
            self.file.flush()
            os.fdatasync(self.file.fileno())

    def jams(self) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            for line in file:
                yield line.removesuffix(b"\n")

    def body(self, count: int) -> int:
        with open(self.path, "rb") as file:
            return len(b"[" + b",".join(file.read().splitlines()) + b"]")

    def close(self) -> None:
        self.file.close()


class WrittenLines(Lines):
    name = "JSON-lines file, os.write"
    batch_mode = f"one os.write per {PART} lines"
    each_mode = "os.write each line"
    read_mode = "readinto a buffer of 64 KiB, the lines as they are: a copy of the file"

    def append_batch(self, first: int, jams: Jams) -> None:
        for part in parts(jams):
            os.write(self.file.fileno(), b"\n".join(part) + b"\n")

    def append_each(self, first: int, jams: Jams) -> None:
        fd, write = self.file.fileno(), os.write
        for jam in jams:
            write(fd, jam + b"\n")

    def append_durable(self, first: int, jams: Jams) -> None:
        fd = self.file.fileno()
        for jam in jams:
            os.write(fd, jam + b"\n")
            os.fdatasync(fd)

    def body(self, count: int) -> int:
        buffer, done = bytearray(BLOCK_BYTES), 0
        with open(self.path, "rb", buffering=0) as file:
            while read := file.readinto(buffer):
                done += read
        return done


class OpenedLines(Lines):
    name = "JSON-lines file, opened each time"
    each_mode = "open, write and close for each line"
    read_mode = None
    slowness = 4
    batches = False
    syncs = False

    def append_each(self, first: int, jams: Jams) -> None:
        for jam in jams:
            with open(self.path, "ab") as file:
                file.write(jam + b"\n")


class PersistQueue(Spool):
    name = "persist-queue Queue"
    package = "persist-queue"
    each_mode = "put each, 100 events a file, the default; each file is synced at its end"
    batch_mode = "it has none"
    power = "its index, which is never synced: at worst all"
    slowness = 20
    batches = False
    syncs = False
    options: ClassVar[dict[str, Any]] = {}
    queue: Any

    def open(self, durable: bool = False) -> None:
        import persistqueue

        self.queue = persistqueue.Queue(str(self.path), **self.options)

    def append_batch(self, first: int, jams: Jams) -> None:
        put = self.queue.put
        for jam in jams:
            put(jam)

    append_each = append_durable = append_batch

    def last(self) -> int:
        size: int = self.queue.qsize()
        return size

    def jams(self) -> Iterator[bytes]:
        while self.queue.qsize():
            yield self.queue.get()
            self.queue.task_done()

    def close(self) -> None:
        del self.queue


class PersistQueueLarge(PersistQueue):
    name = "persist-queue Queue, large files"
    each_mode = "put each, 10^6 events a file, so that none is synced"
    options: ClassVar[dict[str, Any]] = {"chunksize": 1_000_000}


class PersistSqlite(PersistQueue):
    name = "persist-queue SQLiteQueue"
    each_mode = "put each, the default: a synced transaction each"
    power = "nothing"
    syncs = True
    slowness = 100

    def open(self, durable: bool = False) -> None:
        import persistqueue

        self.queue = persistqueue.SQLiteQueue(str(self.path))


class PersistSqliteOff(PersistSqlite):
    name = "persist-queue SQLiteQueue, not synced"
    each_mode = "put each, PRAGMA synchronous=OFF through its private connection"
    power = Spool.power
    syncs = False
    slowness = 4

    def open(self, durable: bool = False) -> None:
        super().open(durable)
        self.queue._putter.execute("PRAGMA synchronous=OFF")


class LiteQueue(Spool):
    name = "litequeue"
    package = "litequeue"
    batch_mode = f"put, a transaction per {PART}"
    each_mode = "put each, synchronous=NORMAL, the default"
    power = "what was put since the last checkpoint"
    slowness = 4

    def open(self, durable: bool = False) -> None:
        import litequeue

        self.queue = litequeue.LiteQueue(str(self.path))
        if durable:
            self.queue.conn.execute("PRAGMA synchronous=FULL")

    def append_batch(self, first: int, jams: Jams) -> None:
        for part in parts(jams):
            with self.queue.transaction():
                self.append_each(first, part)

    def append_each(self, first: int, jams: Jams) -> None:
        put = self.queue.put
        for jam in jams:
            put(jam.decode())

    append_durable = append_each

    def last(self) -> int:
        size: int = self.queue.qsize()
        return size

    def jams(self) -> Iterator[bytes]:
        while (message := self.queue.pop()) is not None:
            yield message.data.encode()
            self.queue.done(message.message_id)

    def close(self) -> None:
        self.queue.close()


class SqliteSpool(Sqlite, Spool):
    name = "sqlite3, WAL"
    each_mode = "a transaction each, synchronous=OFF"
    batch_mode = f"executemany, a transaction per {PART}, synchronous=OFF"
    read_mode: ClassVar[str | None] = "SELECT, joined as a JSON array"

    def append_batch(self, first: int, jams: Jams) -> None:
        for part in parts(jams):
            super().append_batch(first, part)

    def body(self, count: int) -> int:
        rows = self.connection.execute("SELECT jam FROM log ORDER BY n LIMIT ?", (count,))
        return len(b"[" + b",".join([jam for (jam,) in rows]) + b"]")


class SqliteNormal(SqliteSpool):
    name = "sqlite3, WAL, NORMAL"
    read_mode = None
    each_mode = "a transaction each, synchronous=NORMAL"
    batch_mode = f"executemany, a transaction per {PART}, synchronous=NORMAL"
    power = LiteQueue.power
    syncs = False

    def open(self, durable: bool = False) -> None:
        super().open(durable)
        self.connection.execute("PRAGMA synchronous=NORMAL")


SPOOLS: list[type[Spool]] = [
    LedgerSpool,
    RotatingLedger,
    IntervalLedger,
    BytesLedger,
    Lines,
    WrittenLines,
    OpenedLines,
    SqliteSpool,
    SqliteNormal,
    LiteQueue,
    PersistQueue,
    PersistQueueLarge,
    PersistSqlite,
    PersistSqliteOff,
]
LEDGER = LedgerSpool.name
OURS = {spool.name for spool in SPOOLS if issubclass(spool, LedgerSpool)}
LINES = {spool.name for spool in SPOOLS if issubclass(spool, Lines)}
PERSIST = {spool.name for spool in SPOOLS if issubclass(spool, PersistQueue)}
