"""Files of ledgers, made from the specification alone, and damage to them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path


def record(payload: bytes) -> bytes:
    """A record by the specification."""
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def file_of(path: Path, index: int, payloads: Iterable[bytes], base: str = "events") -> Path:
    """A finished file, made without Deedbook."""
    path.mkdir(exist_ok=True)
    file = path / f"{index}-{base}"
    file.write_bytes(b"".join(map(record, payloads)))
    return file


def events(index: int, count: int = 3) -> list[bytes]:
    """Payloads of a file."""
    return [b'{"file":%d,"n":%d}' % (index, n) for n in range(count)]


def damage(file: Path, number: int = 1) -> int:
    """Invert a bit in a payload; the byte at which its record begins."""
    raw = bytearray(file.read_bytes())
    size = len(raw) // 3
    raw[number * size + 10] ^= 1
    file.write_bytes(raw)
    return number * size
