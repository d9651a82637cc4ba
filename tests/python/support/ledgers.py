"""Ledgers: files made from the specification alone, damage to them, and their events."""

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from deedbook import Ledger


def record(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def file_of(path: Path, index: int, payloads: Iterable[bytes], base: str = "events") -> Path:
    path.mkdir(exist_ok=True)
    file = path / f"{index}-{base}"
    file.write_bytes(b"".join(map(record, payloads)))
    return file


def events(index: int, count: int = 3) -> list[bytes]:
    return [b'{"file":%d,"n":%d}' % (index, n) for n in range(count)]


def files(ledger: Path, *indexes: int) -> list[bytes]:
    for index in indexes:
        file_of(ledger, index, events(index))
    return [payload for index in indexes for payload in events(index)]


def damage(file: Path, number: int = 1) -> int:
    """Invert a bit in a payload; returns the byte at which the record begins."""
    raw = bytearray(file.read_bytes())
    size = len(raw) // 3
    raw[number * size + 10] ^= 1
    file.write_bytes(raw)
    return number * size


def payloads(ledger: Ledger) -> list[bytes]:
    result = ledger.fetch()
    return [] if result is None else [event for batch in result.data for event in batch.records()]
