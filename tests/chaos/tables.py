"""The contents of a trial's logs and tables, read without Spark and without the pipeline's code."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from chaos.inputs.events import judge
from chaos.inputs.notes import digest
from deedbook import Book, Error, Wal
from deedbook import Record as RecordOfWal


@dataclass(frozen=True)
class Record:
    position: int
    sha256: str
    key: str | None
    payload: bytes = field(repr=False)


@dataclass
class Bronze:
    records: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def bronze_of(path: Path, format: str) -> Bronze:
    found = Bronze()
    try:
        _read(Book if format == "book" else Wal, path, found)
    except (Error, OSError) as error:
        found.problems.append(str(error))
    return found


def _read(kind: type[Book] | type[Wal], path: Path, found: Bronze) -> None:
    report = kind.verify(path)
    if not report.ok:
        found.problems.append(f"verify says {report.verdict}")
    with kind.open(path) as log:
        due = log.epoch + 1 if isinstance(log, Book) else log.head
        for record in log.iter(on_corrupt="skip"):
            at, payload = record.position or 0, record.payload
            if at != due:
                found.problems.append(f"a record at {at} where {due} is due")
            due = record.next_lsn if isinstance(record, RecordOfWal) else due + 1
            found.records.append(Record(at, digest(payload), judge(payload)[0], payload))


def rows_of(table: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table of a stream or a view. Raises OSError, or the errors of pyarrow."""
    import pyarrow.parquet as pq

    for file in files_of(table):
        yield from pq.ParquetFile(file).read().to_pylist()


def files_of(table: Path) -> list[Path]:
    """The valid files: for a stream, the files in its log; a kill may leave others."""
    log = table / "_spark_metadata"
    if not log.is_dir():
        return sorted(table.glob("*.parquet"))
    found = []
    for note in _notes(log):
        for line in note.read_text().splitlines()[1:]:
            entry = json.loads(line)
            assert entry["action"] == "add", entry
            found.append(_path(entry["path"]))
    assert len(found) == len(set(found)), f"{log} has a file twice"
    return found


def files_by_plan(checkpoint: Path) -> Iterator[tuple[int, Path]]:
    """The planned files of a stream of files, each with the number of the plan."""
    for note in _notes(checkpoint / "sources" / "0"):
        for line in note.read_text().splitlines()[1:]:
            entry = json.loads(line)
            yield entry["batchId"], _path(entry["path"])


def plans_of(checkpoint: Path) -> dict[int, int]:
    files = [file for file in (checkpoint / "offsets").iterdir() if file.name.isdecimal()]
    # A line for the version, a line for settings, then a line for each source.
    last = {int(file.name): file.read_text().splitlines()[2] for file in files}
    return {batch: int(json.loads(line)["logOffset"]) for batch, line in sorted(last.items())}


def _notes(log: Path) -> list[Path]:
    """The files of one of Spark's logs: the last N.compact, with all before it, and later files."""
    notes = [file for file in log.iterdir() if file.name.partition(".")[0].isdecimal()]
    compacted = max((_number(file) for file in notes if file.suffix == ".compact"), default=-1)
    later = [file for file in notes if _number(file) > compacted]
    whole = [log / f"{compacted}.compact"] if compacted >= 0 else []
    return whole + sorted(later, key=_number)


def _number(file: Path) -> int:
    return int(file.name.partition(".")[0])


def _path(url: str) -> Path:
    return Path(unquote(urlparse(url).path))
