"""Notes about a pipeline's inputs: a line of JSON for each line or record."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.inputs.events import Fault, Line
from deedbook._system.compressed import read_all
from deedbook._system.regular import open_regular, parse_json


@dataclass(frozen=True)
class Note:
    n: int
    sha256: str
    id: str | None
    good: bool
    where: str | None
    """File and line, ``000001.jsonl:12``; None in a log."""
    fault: Fault | None
    at: float | None = None
    """The time of the acknowledgement, in seconds since 1970.

    None if unknown: a kill came before the note, or the note is old.
    """

    @classmethod
    def of(cls, n: int, line: Line, where: str | None, at: float | None) -> "Note":
        good = line.fault is None
        return cls(n, digest(line.data), line.id, good, where, line.fault, at)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def expected_file(directory: Path, source: str) -> Path:
    return directory / "expected" / f"{source}.jsonl"


def notes_of(file: Path) -> Iterator[Note]:
    """The notes of a file, without a torn last line. Raises OSError."""
    for found in json_lines(file):
        yield Note(**found)


def lines_of_files(path: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a file, or of a directory's files by name, each with ``FILE:NUMBER``."""
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.name[0] not in "._":
            lines = read_all(file).split(b"\n")
            for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
                yield f"{file.name}:{number}", line


def json_lines(file: Path) -> Iterator[dict[str, Any]]:
    with open_regular(file) as opened:
        for line in opened:
            if line.endswith(b"\n"):
                yield parse_json(line)


class JsonLines:
    """Appends lines to a file, after truncating a torn last line of a killed process."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file.open("ab+", buffering=0)
        _cut_torn(self._file)

    def add(self, values: Iterable[dict[str, Any]], *, sync: bool) -> None:
        """Append all values; with ``sync``, they are on stable storage on return."""
        data = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in values)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        if sync:
            os.fsync(self._file.fileno())

    def add_notes(self, notes: Sequence[Note]) -> None:
        self.add([vars(note) for note in notes], sync=True)

    def __enter__(self) -> "JsonLines":
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()


def _cut_torn(file: Any) -> None:
    size = end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - (1 << 16))
        file.seek(begin)
        at = file.read(end - begin).rfind(b"\n")
        if at >= 0:
            end = begin + at + 1
            break
        end = begin
    if end < size:
        file.truncate(end)
