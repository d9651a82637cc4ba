"""Bytes of logs: books made from the specification alone, and damage to any file."""

import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

DEED_FRAMING_BYTES = 24
HEADER_BYTES = 16


def packed(jams: Iterable[bytes], first: int = 1) -> bytes:
    """The bytes of a packed book, made from the specification alone; all mugs are 0."""
    parts = [struct.pack("<IIQ", 0x424F4F4B, 1, first)]
    for jam in jams:
        head = struct.pack("<QI", len(jam) + 4, 0) + jam
        parts += head, struct.pack("<IQ", zlib.crc32(head), len(jam) + 4)
    return b"".join(parts)


def make_book(path: Path, log: bytes) -> Path:
    path.mkdir(parents=True)
    (path / "book.log").write_bytes(log)
    return path


def write_book(path: Path, jams: Sequence[bytes], first: int = 1) -> Path:
    make_book(path, packed(jams, first if jams else 0))
    (path / "meta.bin").write_bytes(bytes(256))
    return path


def deed_offsets(jams: Sequence[bytes]) -> list[int]:
    offsets, at = [], HEADER_BYTES
    for jam in jams:
        offsets.append(at)
        at += len(jam) + DEED_FRAMING_BYTES
    return offsets


def overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def flip(file: Path, at: int, bits: int = 1) -> None:
    """Invert bits of a byte of a file; a negative place counts from its end."""
    data = file.read_bytes()
    overwrite(file, at % len(data), bytes([data[at] ^ bits]))
