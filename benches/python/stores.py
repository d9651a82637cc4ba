"""The compared stores: one small class each, used as the documentation of the store shows.

A store opens for appending, gets records in order, and returns the number of its last record. Keys
are made before the clock runs. Each peer runs in its fastest mode with the guarantee of the
measurement; `batch_mode` and `each_mode` name the mode.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sqlite3
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

Jams = Sequence[bytes]

PART = 1000
"""Records per call, for peers with which one huge batch would be slower or impossible."""


def parts(jams: Jams) -> Iterator[Jams]:
    """Cut into parts of `PART` records."""
    for start in range(0, len(jams), PART):
        yield jams[start : start + PART]


class Store(ABC):
    """One store in one directory. `first` is the number of the first record, at least 1."""

    name: ClassVar[str]
    package: ClassVar[str | None] = None
    checks: ClassVar[str]
    """The checks of a read."""
    batch_mode: ClassVar[str]
    each_mode: ClassVar[str]
    """The way to append one record at a time, safe from kill -9."""
    reopen_mode: ClassVar[str] = "opened for appending, last record known"
    threads: ClassVar[bool] = False
    """Whether threads with simultaneous commits may share a sync."""

    def __init__(self, path: Path, keys: Sequence[bytes]) -> None:
        self.path = path
        self.keys = keys

    @classmethod
    def version(cls) -> str:
        """Version of the package; raises `ImportError` if it cannot be used."""
        if cls.package is None:
            return ""
        try:
            return metadata.version(cls.package)
        except metadata.PackageNotFoundError as missing:
            raise ImportError(cls.package) from missing

    @abstractmethod
    def open(self, durable: bool = False) -> None:
        """Create or open the store; `durable` is for `append_durable`."""

    @abstractmethod
    def append_batch(self, first: int, jams: Jams) -> None:
        """Append all without a sync; the records survive kill -9 after the call."""

    @abstractmethod
    def append_each(self, first: int, jams: Jams) -> None:
        """Append one by one; each record survives kill -9 before the next append begins."""

    @abstractmethod
    def append_durable(self, first: int, jams: Jams) -> None:
        """Append one by one; each record is on stable storage before the next append begins."""

    @abstractmethod
    def last(self) -> int:
        """Number of the last record; a part of the cost of reopening."""

    @abstractmethod
    def jams(self) -> Iterator[bytes]:
        """All payloads as `bytes`, in the store's fastest way."""

    @abstractmethod
    def close(self) -> None:
        """Close in the way of the store's documentation."""


class OwnStore(Store):
    """The common part of all logs of Deedbook."""

    threads = True
    wrapper: ClassVar[str]
    """The class of `deedbook.aio` for the log."""
    log: Any
    """The log, which Arrow can read."""

    @classmethod
    def version(cls) -> str:
        import deedbook

        return deedbook.__version__

    def append_batch(self, first: int, jams: Jams) -> None:
        self.log.append_many(jams)

    def append_each(self, first: int, jams: Jams) -> None:
        append = self.log.append
        for jam in jams:
            append(jam)

    append_durable = append_each

    def append_in_tasks(self, jams: Jams, each: int) -> None:
        """Append in tasks of one event loop, `each` records per task, all of them durable."""
        from deedbook import aio

        log = getattr(aio, self.wrapper)(self.log)

        async def task(first: int) -> None:
            for jam in jams[first : first + each]:
                await log.commit(jam)

        async def all_tasks() -> None:
            await asyncio.gather(*(task(first) for first in range(0, len(jams), each)))

        asyncio.run(all_tasks())

    @abstractmethod
    def is_durable(self) -> bool:
        """Whether every record is on stable storage."""

    def close(self) -> None:
        self.log.close()


class DeedbookStore(OwnStore):
    name = "deedbook"
    wrapper = "AsyncBook"
    checks = "CRC-32 of every record"
    batch_mode = "append_many, durability manual"
    each_mode = "append, durability manual"

    def open(self, durable: bool = False) -> None:
        from deedbook import Book

        self.log = Book.open(self.path, "a", durability="always" if durable else "manual")

    def last(self) -> int:
        last: int = self.log.last
        return last

    def is_durable(self) -> bool:
        durable: bool = self.log.durable_last == self.log.last
        return durable

    def jams(self) -> Iterator[bytes]:
        jams: Iterator[bytes] = self.log.payloads()
        return jams


class WalStore(OwnStore):
    name = "deedbook WAL"
    wrapper = "AsyncWal"
    checks = "CRC-32C of every record"
    batch_mode = "append_many, durability manual"
    each_mode = "append, durability manual"

    def open(self, durable: bool = False) -> None:
        from deedbook import Wal

        self.log = Wal.open(self.path, "a", durability="always" if durable else "manual")

    def last(self) -> int:
        return len(self.log)

    def is_durable(self) -> bool:
        durable: bool = self.log.durable_end == self.log.end
        return durable

    def jams(self) -> Iterator[bytes]:
        payloads: Iterator[bytes] = self.log.payloads()
        return payloads


class TenLines(Store):
    """The usual code without a library: length, crc, payload, `os.write`."""

    name = "os.write, 10 lines"
    checks = "CRC-32 of every record"
    batch_mode = f"one os.write per {PART} records"
    each_mode = "one os.write each"
    head = struct.Struct("<II")

    def open(self, durable: bool = False) -> None:
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.count = sum(1 for _ in self.jams())

    def append_batch(self, first: int, jams: Jams) -> None:
        pack, crc32 = self.head.pack, zlib.crc32
        for part in parts(jams):
            os.write(self.fd, b"".join([pack(len(jam), crc32(jam)) + jam for jam in part]))
        self.count += len(jams)

    def append_each(self, first: int, jams: Jams) -> None:
        fd, pack, crc32, write = self.fd, self.head.pack, zlib.crc32, os.write
        for jam in jams:
            write(fd, pack(len(jam), crc32(jam)) + jam)
        self.count += len(jams)

    def append_durable(self, first: int, jams: Jams) -> None:
        fd, pack, crc32 = self.fd, self.head.pack, zlib.crc32
        for jam in jams:
            os.write(fd, pack(len(jam), crc32(jam)) + jam)
            os.fdatasync(fd)
        self.count += len(jams)

    def last(self) -> int:
        return self.count

    def jams(self) -> Iterator[bytes]:
        unpack, crc32, size = self.head.unpack_from, zlib.crc32, self.head.size
        with open(self.path, "rb") as file:
            data = b""
            while block := file.read(1 << 20):
                data, at = data + block, 0
                while at + size <= len(data):
                    length, crc = unpack(data, at)
                    jam = data[at + size : at + size + length]
                    if len(jam) < length:
                        break
                    if crc32(jam) != crc:
                        raise ValueError(f"checksum at byte {at} of a block")
                    yield jam
                    at += size + length
                data = data[at:]

    def close(self) -> None:
        os.close(self.fd)


class Lmdb(Store):
    name = "py-lmdb"
    package = "lmdb"
    checks = "nothing"
    batch_mode = "one putmulti(append=True) in one transaction, sync=False, writemap=True"
    each_mode = "a transaction each, sync=False, writemap=True"

    @classmethod
    def version(cls) -> str:
        import lmdb  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        import lmdb

        # With a sync per commit, commits without a map are faster.
        self.env = lmdb.open(
            str(self.path), map_size=4 << 30, sync=durable, writemap=not durable, metasync=durable
        )

    def append_batch(self, first: int, jams: Jams) -> None:
        with self.env.begin(write=True) as txn:
            keys = self.keys[first : first + len(jams)]
            txn.cursor().putmulti(zip(keys, jams, strict=True), append=True)

    def append_each(self, first: int, jams: Jams) -> None:
        begin = self.env.begin
        for key, jam in zip(self.keys[first : first + len(jams)], jams, strict=True):
            with begin(write=True) as txn:
                txn.put(key, jam, append=True)

    append_durable = append_each

    def last(self) -> int:
        with self.env.begin() as txn, txn.cursor() as cursor:
            return int.from_bytes(cursor.key(), "big") if cursor.last() else 0

    def jams(self) -> Iterator[bytes]:
        with self.env.begin() as txn, txn.cursor() as cursor:
            yield from cursor.iternext(keys=False, values=True)

    def close(self) -> None:
        self.env.close()


class Plyvel(Store):
    name = "plyvel (LevelDB)"
    package = "plyvel"
    checks = "nothing (verify_checksums is off by default)"
    batch_mode = f"write_batch of {PART} records"
    each_mode = "put each (write-ahead log, not synced)"
    threads = True

    @classmethod
    def version(cls) -> str:
        import plyvel  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        import plyvel

        self.db = plyvel.DB(str(self.path), create_if_missing=True)

    def append_batch(self, first: int, jams: Jams) -> None:
        for i, part in enumerate(parts(jams)):
            at = first + i * PART
            with self.db.write_batch() as batch:
                put = batch.put
                for key, jam in zip(self.keys[at : at + len(part)], part, strict=True):
                    put(key, jam)

    def append_each(self, first: int, jams: Jams) -> None:
        put = self.db.put
        for key, jam in zip(self.keys[first : first + len(jams)], jams, strict=True):
            put(key, jam)

    def append_durable(self, first: int, jams: Jams) -> None:
        put = self.db.put
        for key, jam in zip(self.keys[first : first + len(jams)], jams, strict=True):
            put(key, jam, sync=True)

    def last(self) -> int:
        for key in self.db.iterator(reverse=True, include_value=False):
            return int.from_bytes(key, "big")
        return 0

    def jams(self) -> Iterator[bytes]:
        return iter(self.db.iterator(include_key=False))

    def close(self) -> None:
        self.db.close()


class RocksDict(Store):
    name = "rocksdict (RocksDB)"
    package = "rocksdict"
    checks = "block checksums"
    batch_mode = f"WriteBatch of {PART} records, raw mode"
    each_mode = "put each (write-ahead log, not synced), raw mode"
    threads = True

    @classmethod
    def version(cls) -> str:
        import rocksdict  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        from rocksdict import Options, Rdict, WriteOptions

        self.db = Rdict(str(self.path), Options(raw_mode=True))
        if durable:
            options = WriteOptions()
            options.sync = True
            self.db.set_write_options(options)

    def append_batch(self, first: int, jams: Jams) -> None:
        from rocksdict import WriteBatch

        for i, part in enumerate(parts(jams)):
            at = first + i * PART
            batch = WriteBatch(raw_mode=True)
            put = batch.put
            for key, jam in zip(self.keys[at : at + len(part)], part, strict=True):
                put(key, jam)
            self.db.write(batch)

    def append_each(self, first: int, jams: Jams) -> None:
        put = self.db.put
        for key, jam in zip(self.keys[first : first + len(jams)], jams, strict=True):
            put(key, jam)

    append_durable = append_each

    def last(self) -> int:
        cursor = self.db.iter()
        cursor.seek_to_last()
        return int.from_bytes(cursor.key(), "big") if cursor.valid() else 0

    def jams(self) -> Iterator[bytes]:
        return iter(self.db.values())

    def close(self) -> None:
        self.db.close()


SCHEMA = "CREATE TABLE IF NOT EXISTS log (n INTEGER PRIMARY KEY, jam BLOB NOT NULL)"
INSERT = "INSERT INTO log (jam) VALUES (?)"


class Sqlite(Store):
    name = "sqlite3 (WAL)"
    checks = "nothing"
    batch_mode = "executemany in one transaction, WAL, synchronous=OFF"
    each_mode = "a transaction each, WAL, synchronous=OFF"

    @classmethod
    def version(cls) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def connect(self) -> Any:
        return sqlite3.connect(self.path, isolation_level=None)

    def open(self, durable: bool = False) -> None:
        self.connection = self.connect()
        execute = self.connection.execute
        execute("PRAGMA journal_mode=WAL").fetchall()
        execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
        execute(SCHEMA)

    def append_batch(self, first: int, jams: Jams) -> None:
        connection = self.connection
        connection.execute("BEGIN")
        connection.executemany(INSERT, ((jam,) for jam in jams))
        connection.execute("COMMIT")

    def append_each(self, first: int, jams: Jams) -> None:
        execute = self.connection.execute
        for jam in jams:
            execute(INSERT, (jam,))

    append_durable = append_each

    def last(self) -> int:
        for (last,) in self.connection.execute("SELECT max(n) FROM log"):
            return last or 0
        return 0

    def jams(self) -> Iterator[bytes]:
        return (jam for (jam,) in self.connection.execute("SELECT jam FROM log ORDER BY n"))

    def close(self) -> None:
        self.connection.close()


class Apsw(Sqlite):
    name = "apsw (SQLite WAL)"
    package = "apsw"

    @classmethod
    def version(cls) -> str:
        import apsw

        return f"{metadata.version('apsw')}, SQLite {apsw.sqlite_lib_version()}"

    def connect(self) -> Any:
        import apsw

        return apsw.Connection(str(self.path))


class JsonLines(Store):
    name = "JSON lines"
    checks = "nothing"
    batch_mode = f"one write per {PART} lines; payloads are base64, a third longer"
    each_mode = "write and flush each line (without the flush, kill -9 loses records)"

    def open(self, durable: bool = False) -> None:
        self.file = open(self.path, "a+b")  # noqa: SIM115 (closed by close)
        self.file.seek(0)
        self.count, last = 0, b""
        for line in self.file:
            self.count, last = self.count + 1, line
        if last:
            json.loads(last)

    @staticmethod
    def line(jam: bytes) -> str:
        return json.dumps({"jam": base64.b64encode(jam).decode("ascii")}) + "\n"

    def append_batch(self, first: int, jams: Jams) -> None:
        line = self.line
        for part in parts(jams):
            self.file.write("".join([line(jam) for jam in part]).encode("ascii"))
            self.file.flush()

    def append_each(self, first: int, jams: Jams) -> None:
        file, line = self.file, self.line
        for jam in jams:
            file.write(line(jam).encode("ascii"))
            file.flush()

    def append_durable(self, first: int, jams: Jams) -> None:
        file, line = self.file, self.line
        for jam in jams:
            file.write(line(jam).encode("ascii"))
            file.flush()
            os.fdatasync(file.fileno())

    def last(self) -> int:
        return self.count

    def jams(self) -> Iterator[bytes]:
        loads, decode = json.loads, base64.b64decode
        with open(self.path, "rb") as file:
            for line in file:
                yield decode(loads(line)["jam"])

    def close(self) -> None:
        self.file.close()


class FastAvro(Store):
    name = "fastavro"
    package = "fastavro"
    checks = "nothing (sync markers only)"
    batch_mode = "Writer of plain bytes, no codec, blocks of 16 kB, flushed at the end"
    each_mode = "a block each, flushed (without the flush, kill -9 loses records)"

    @classmethod
    def version(cls) -> str:
        import fastavro  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        import fastavro
        from fastavro.write import Writer

        self.count = 0
        if self.path.exists():
            with open(self.path, "rb") as file:
                self.count = sum(block.num_records for block in fastavro.block_reader(file))
        self.file = open(self.path, "a+b")  # noqa: SIM115 (closed by close)
        self.writer = Writer(self.file, fastavro.parse_schema("bytes"))

    def append_batch(self, first: int, jams: Jams) -> None:
        write = self.writer.write
        for jam in jams:
            write(jam)
        self.writer.flush()

    def append_each(self, first: int, jams: Jams) -> None:
        write, flush = self.writer.write, self.writer.flush
        for jam in jams:
            write(jam)
            flush()

    def append_durable(self, first: int, jams: Jams) -> None:
        for jam in jams:
            self.writer.write(jam)
            self.writer.flush()
            os.fdatasync(self.file.fileno())

    def last(self) -> int:
        return self.count

    def jams(self) -> Iterator[bytes]:
        import fastavro

        with open(self.path, "rb") as file:
            records: Iterator[Any] = fastavro.reader(file)
            yield from records

    def close(self) -> None:
        self.file.close()


class ArrowStream(Store):
    name = "pyarrow IPC stream"
    package = "pyarrow"
    checks = "nothing; the file is mapped"
    batch_mode = "a record batch of 10,000 rows at a time"
    each_mode = "a record batch each, flushed (without the flush, kill -9 loses records)"
    reopen_mode = "all batches read; a stream cannot be appended to again"
    ROWS = 10_000

    @classmethod
    def version(cls) -> str:
        import pyarrow  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        import pyarrow as pa

        self.schema = pa.schema([("jam", pa.binary())])
        self.file: Any = None
        self.writer: Any = None
        self.count = 0
        if not self.path.exists():
            self.file = open(self.path, "wb")  # noqa: SIM115 (closed by close)
            self.writer = pa.ipc.new_stream(self.file, self.schema)
            self.file.flush()
            return
        with pa.memory_map(str(self.path)) as file:
            self.count = sum(batch.num_rows for batch in self.readable(file))

    @staticmethod
    def readable(file: Any) -> Iterator[Any]:
        """The batches up to the end, also of a stream without an end marker."""
        import pyarrow as pa

        reader = pa.ipc.open_stream(file)
        while True:
            try:
                yield reader.read_next_batch()
            except (StopIteration, pa.ArrowInvalid):
                return

    def write(self, jams: Jams) -> None:
        import pyarrow as pa

        array = pa.array(jams, pa.binary())
        self.writer.write_batch(pa.record_batch([array], schema=self.schema))
        self.file.flush()

    def append_batch(self, first: int, jams: Jams) -> None:
        for start in range(0, len(jams), self.ROWS):
            self.write(jams[start : start + self.ROWS])

    def append_each(self, first: int, jams: Jams) -> None:
        for jam in jams:
            self.write([jam])

    def append_durable(self, first: int, jams: Jams) -> None:
        for jam in jams:
            self.write([jam])
            os.fdatasync(self.file.fileno())

    def last(self) -> int:
        return self.count

    def jams(self) -> Iterator[bytes]:
        import pyarrow as pa

        with pa.memory_map(str(self.path)) as file:
            for batch in self.readable(file):
                yield from batch.column(0).to_pylist()

    def close(self) -> None:
        if self.writer is not None and self.file is not None:
            self.writer.close()
            self.file.close()


class Mcap(Store):
    name = "mcap"
    package = "mcap"
    checks = "nothing (validate_crcs is off by default)"
    batch_mode = "chunks of 1 MiB, uncompressed"
    each_mode = "without chunks, flushed each (with chunks, kill -9 loses records)"
    reopen_mode = "the summary is read; a file cannot be appended to again"

    @classmethod
    def version(cls) -> str:
        import mcap.writer  # noqa: F401

        return super().version()

    def open(self, durable: bool = False) -> None:
        self.file: Any = None
        self.writer: Any = None
        self.count = 0
        if self.path.exists():
            from mcap.reader import make_reader

            with open(self.path, "rb") as file:
                summary = make_reader(file).get_summary()
                assert summary is not None and summary.statistics is not None
                self.count = summary.statistics.message_count
            return
        self.file = open(self.path, "wb")  # noqa: SIM115 (closed by close)

    def begin(self, chunks: bool) -> int:
        """Begin writing; only the first append decides about chunks."""
        from mcap.writer import CompressionType, Writer

        if self.writer is None:
            self.writer = Writer(self.file, use_chunking=chunks, compression=CompressionType.NONE)
            self.writer.start()
            schema = self.writer.register_schema("jam", "", b"")
            self.channel: int = self.writer.register_channel("jam", "", schema)
        return self.channel

    def append_batch(self, first: int, jams: Jams) -> None:
        channel = self.begin(chunks=True)
        add = self.writer.add_message
        for n, jam in enumerate(jams, first):
            add(channel, n, jam, n, n)
        self.file.flush()

    def add_each(self, first: int, jams: Jams, durable: bool) -> None:
        channel = self.begin(chunks=False)
        add, flush, fd = self.writer.add_message, self.file.flush, self.file.fileno()
        for n, jam in enumerate(jams, first):
            add(channel, n, jam, n, n)
            flush()
            if durable:
                os.fdatasync(fd)

    def append_each(self, first: int, jams: Jams) -> None:
        self.add_each(first, jams, durable=False)

    def append_durable(self, first: int, jams: Jams) -> None:
        self.add_each(first, jams, durable=True)

    def last(self) -> int:
        return self.count

    def jams(self) -> Iterator[bytes]:
        from mcap.reader import make_reader

        with open(self.path, "rb") as file:
            for _, _, message in make_reader(file).iter_messages():
                yield message.data

    def close(self) -> None:
        if self.writer is not None and self.file is not None:
            self.writer.finish()
            self.file.close()


STORES: list[type[Store]] = [
    DeedbookStore,
    WalStore,
    TenLines,
    Lmdb,
    Plyvel,
    RocksDict,
    Apsw,
    Sqlite,
    JsonLines,
    FastAvro,
    ArrowStream,
    Mcap,
]
OURS = DeedbookStore.name
WAL = WalStore.name
LOOP = TenLines.name


def make_keys(count: int) -> list[bytes]:
    """Keys in the order of the numbers; `keys[n]` belongs to record `n`."""
    pack = struct.Struct(">Q").pack
    return [pack(n) for n in range(count + 1)]
