"""Logs that are damaged on purpose, and what a reader must give of each.

The oracle knows what was appended and acknowledged, and has no line of the package.

A log is bytes as one, its segments joined. A damage changes a copy of these bytes.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deedbook import Book, Wal
from spark_cluster import encode_deed

__all__ = ["BESIDE", "DAMAGES", "KINDS", "SEGMENT_DAMAGES", "Case", "Specimen"]

KINDS = ("book", "single", "segments")
BESIDE = {
    "open": "the mark of a writer that synced all and died",
    "older open": "that of one that synced half of it, appended the rest and died",
    "closed": "that of a writer that closed the log",
    "older closed": "that of one that closed it half as long; another program appended the rest",
    "none": "no sidecar",
}
SECTOR = 512
SEGMENT = 2048
RECORDS = 24
HALF = 12
NESTED = 9
"""The record whose payload holds records at its begin, middle and end."""


def encode(kind: str, payload: bytes) -> bytes:
    """A record's bytes in the log, made from the specification alone."""
    if kind == "book":
        return encode_deed(payload)
    checked = struct.pack("<I", len(payload)) + payload
    return struct.pack("<I", _crc32c(checked)) + checked


def _table(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_TABLE = [_table(byte) for byte in range(256)]


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _payloads(kind: str) -> list[bytes]:
    sizes = [30 + 7 * number if number % 4 else 900 + 90 * number for number in range(RECORDS)]
    plain = [(b"%03d." % number) * (size // 4) for number, size in enumerate(sizes)]
    inner = _inner(kind)
    plain[NESTED] = inner[0] + inner[1] + b"between" * 99 + inner[2] + inner[3] + b"end"
    return plain


def _inner(kind: str) -> list[bytes]:
    """The records inside the record `NESTED`."""
    return [encode(kind, b"inner %d " % number * 9) for number in range(4)]


@dataclass(frozen=True)
class Specimen:
    """A kind of log before it is damaged."""

    kind: str
    payloads: list[bytes]
    edges: list[int]
    """Where each record begins, and where the last one ends."""
    space: bytes

    @staticmethod
    def of(kind: str) -> Specimen:
        """The specimen of one of `KINDS`."""
        payloads = _payloads(kind)
        space = struct.pack("<IIQ", 0x424F4F4B, 1, 1) if kind == "book" else b""
        edges = [len(space)]
        for payload in payloads:
            space += encode(kind, payload)
            edges.append(len(space))
        return Specimen(kind, payloads, edges, space)

    def write(self, directory: Path, beside: str) -> Path:
        """Write it with one of `BESIDE`, by the package's own writer; where it is."""
        directory.mkdir(parents=True)
        path = directory / ("log.wal" if self.kind == "single" else "log")
        sidecar = (path.parent if self.kind == "single" else path) / ".deedbook"
        first = self.payloads[: HALF if beside.startswith("older") else None]
        with self._open(path, "x") as log:
            log.append_many(first)
            log.sync()
            if beside.endswith("open"):
                shutil.copytree(sidecar, directory / "kept")
                log.append_many(self.payloads[len(first) :])
        if beside.endswith("closed"):
            shutil.copytree(sidecar, directory / "kept")
            with self._open(path, "a") as log:
                log.append_many(self.payloads[len(first) :])
        shutil.rmtree(sidecar)
        if beside != "none":
            (directory / "kept").rename(sidecar)
        assert b"".join(map(Path.read_bytes, self.files(path))) == self.space
        return path

    def _open(self, path: Path, mode: str) -> Book | Wal:
        if self.kind == "book":
            return Book.open(path, mode, durability="manual")  # type: ignore[call-overload]
        size = SEGMENT if self.kind == "segments" else None
        return Wal.open(path, mode, segment_bytes=size, single_file=self.kind == "single")

    def files(self, path: Path) -> list[Path]:
        """The files that hold the bytes of the log at ``path``."""
        if self.kind == "segments":
            return sorted(path.glob("*.wal"))
        return [path / "book.log" if self.kind == "book" else path]

    def rewrite(self, path: Path, space: bytes) -> None:
        """Put other bytes into the files, which stay the files that the mark knows."""
        size = SEGMENT if self.kind == "segments" else max(len(space), 1)
        for number, file in enumerate(self.files(path)):
            file.write_bytes(space[number * size : (number + 1) * size])
            if number and number * size >= len(space):
                file.unlink()
        for number in range(len(self.files(path)), -(-len(space) // size)):
            file = path / f"{number:020d}.wal"
            file.write_bytes(space[number * size : (number + 1) * size])

    def read(self, path: Path) -> bytes:
        """The bytes of the log; of a segment that is missing or short, zeros."""
        if self.kind != "segments":
            return self.files(path)[0].read_bytes()
        space = b""
        for file in self.files(path):
            space = space.ljust(int(file.stem) * SEGMENT, b"\0") + file.read_bytes()
        return space


Damage = Callable[[Specimen, bytearray], None]


def _flip(record: int, byte: Callable[[Specimen], int] | int) -> Damage:
    def damage(log: Specimen, space: bytearray) -> None:
        space[log.edges[record] + (byte if isinstance(byte, int) else byte(log))] ^= 0x10

    return damage


def _both(*damages: Damage) -> Damage:
    def damage(log: Specimen, space: bytearray) -> None:
        for each in damages:
            each(log, space)

    return damage


def _sectors(change: Callable[[bytearray, int], None], at: int) -> Damage:
    return lambda _, space: change(space, at * SECTOR)


def _fill(byte: int, sectors: int = 1) -> Callable[[bytearray, int], None]:
    def fill(space: bytearray, at: int) -> None:
        space[at : at + sectors * SECTOR] = bytes([byte]) * (sectors * SECTOR)

    return fill


def _swap(space: bytearray, at: int) -> None:
    first, second = space[at : at + SECTOR], space[at + SECTOR : at + 2 * SECTOR]
    space[at : at + 2 * SECTOR] = second + first


def _double(space: bytearray, at: int) -> None:
    space[at + SECTOR : at + 2 * SECTOR] = space[at : at + SECTOR]


def _cut(record: int, more: int) -> Damage:
    def damage(log: Specimen, space: bytearray) -> None:
        del space[log.edges[record] + more :]

    return damage


def _zeros(record: int, begin: int, end: int) -> Damage:
    def damage(log: Specimen, space: bytearray) -> None:
        at = log.edges[record]
        space[at + begin : at + end] = bytes(end - begin)

    return damage


def _length(log: Specimen) -> int:
    return 1 if log.kind == "book" else 5


_TOP_OF_LENGTH = 7
"""A length above the limit claims nothing. Of two that may be true, the first hides records."""


DAMAGES: dict[str, Damage] = {
    "nothing": lambda _, __: None,
    "bit in a length": _flip(3, _length),
    "bit in a payload": _flip(3, 20),
    "bit in a record's last byte": _flip(4, -1),
    "bit in the first payload": _flip(0, 20),
    "bit in the last payload": _flip(RECORDS - 1, 20),
    "bits in two payloads": _both(_flip(2, 20), _flip(15, 20)),
    "bits in two lengths": _both(_flip(2, _TOP_OF_LENGTH), _flip(17, _TOP_OF_LENGTH)),
    "bits in neighbours": _both(_flip(5, 20), _flip(6, 20)),
    "sector of zeros": _sectors(_fill(0), 8),
    "two sectors of zeros": _sectors(_fill(0, 2), 3),
    "stale sector": _sectors(_fill(0xA5), 9),
    "sectors apart": _both(_sectors(_fill(0), 5), _sectors(_fill(0xA5), 14)),
    "sectors swapped": _sectors(_swap, 8),
    "sector written twice": _sectors(_double, 11),
    "cut at an edge": _cut(17, 0),
    "cut in a record": _cut(17, 30),
    "cut in the last record": _cut(RECORDS, -3),
    "cut among nested records": _cut(NESTED, 8 + 2 * 90),
    "nested: bit in the length": _flip(NESTED, _length),
    "nested: bit in the payload": _flip(NESTED, 30),
    "nested: head of zeros": _zeros(NESTED, 0, 8),
    "zeros at the end": lambda _, space: space.extend(bytes(600)),
    "half a record at the end": lambda log, space: space.extend(log.space[log.edges[8] :][:200]),
}


def _missing(number: int) -> Callable[[list[Path]], None]:
    return lambda files: files[number].unlink()


def _segments(change: Callable[[list[Path], list[bytes]], None]) -> Callable[[list[Path]], None]:
    return lambda files: change(files, [file.read_bytes() for file in files])


def _swap_segments(files: list[Path], held: list[bytes]) -> None:
    files[1].write_bytes(held[2])
    files[2].write_bytes(held[1])


SEGMENT_DAMAGES: dict[str, Callable[[list[Path]], None]] = {
    "first segment missing": _missing(0),
    "middle segment missing": _missing(2),
    "two segments missing": lambda files: (files[2].unlink(), files[4].unlink(), None)[-1],
    "segments swapped": _segments(_swap_segments),
    "segment written over another": _segments(lambda files, held: _write(files[1], held[2])),
    "short segment": _segments(lambda files, held: _write(files[1], held[1][:1000])),
}


def _write(file: Path, held: bytes) -> None:
    file.write_bytes(held)


@dataclass(frozen=True)
class Case:
    """A damaged log, and what must be read of it."""

    log: Specimen
    beside: str
    damage: str
    path: Path
    space: bytes

    def __str__(self) -> str:
        return f"{self.log.kind}, {self.beside}, {self.damage}"

    @property
    def acknowledged(self) -> int:
        """The end of what was acknowledged, as far as the sidecar says."""
        if self.beside == "none":
            return 0
        return self.log.edges[HALF if self.beside.startswith("older") else RECORDS]

    @property
    def first_bad(self) -> int:
        """The first record that is not as it was appended; `RECORDS` if all are."""
        return next((i for i in range(RECORDS) if not self.is_intact(i)), RECORDS)

    def is_intact(self, record: int) -> bool:
        """Whether the record is there, where it was appended, as it was appended."""
        at, end = self.log.edges[record : record + 2]
        return self.space[at:end] == self.log.space[at:end]

    @property
    def ends_torn(self) -> bool:
        """Whether something that is no record follows the last one."""
        return any(self.space[self.log.edges[RECORDS] :])

    @property
    def valid_end(self) -> int:
        """The end of the records before the first damage."""
        return min(self.log.edges[self.first_bad], len(self.space))

    @property
    def expected(self) -> list[int]:
        """The records that every reader must give.

        Above the end of an open mark nothing was acknowledged: the first damage there is the end.
        """
        torn = RECORDS
        if self.beside.endswith("open"):
            bad = (i for i in range(RECORDS) if not self.is_intact(i))
            torn = next((i for i in bad if self.log.edges[i] >= self.acknowledged), RECORDS)
        return [i for i in range(torn) if self.is_intact(i)]

    @property
    def verdict(self) -> str:
        """How the log ends: ``whole``, ``torn`` or ``corrupt``.

        Where no open mark says that nothing more was acknowledged, an intact record after damage
        makes a log corrupt, also one that may lie inside another.
        """
        if self.valid_end < self.acknowledged or any(i > self.first_bad for i in self.expected):
            return "corrupt"
        if not self.beside.endswith("open") and self._is_any_nested_left:
            return "corrupt"
        is_short = self.first_bad < RECORDS and len(self.space) > self.valid_end
        rest = self.space[self.valid_end :]
        return "torn" if self.ends_torn or (is_short and any(rest)) else "whole"

    @property
    def _is_any_nested_left(self) -> bool:
        if self.first_bad != NESTED:
            return False
        return any(inner in self.space[self.valid_end :] for inner in _inner(self.log.kind))

    def is_appended(self, offset: int, payload: bytes) -> bool:
        """Whether this was appended at this place."""
        if offset not in self.log.edges[:-1]:
            return False
        return self.log.payloads[self.log.edges.index(offset)] == payload

    def is_there(self, offset: int, payload: bytes) -> bool:
        """Whether such a record lies there, which was appended there or not."""
        whole = encode(self.log.kind, payload)
        return self.space[offset : offset + len(whole)] == whole


def cases(root: Path) -> Iterator[Case]:
    """Write every log of the matrix."""
    for kind in KINDS:
        log = Specimen.of(kind)
        for beside in BESIDE:
            for name, damage in DAMAGES.items():
                path = log.write(root / f"{kind}-{beside}-{name}".replace(" ", "-"), beside)
                space = bytearray(log.space)
                damage(log, space)
                log.rewrite(path, space)
                yield Case(log, beside, name, path, bytes(space))
            for name, change in SEGMENT_DAMAGES.items() if kind == "segments" else ():
                path = log.write(root / f"{kind}-{beside}-{name}".replace(" ", "-"), beside)
                change(log.files(path))
                yield Case(log, beside, name, path, log.read(path))
