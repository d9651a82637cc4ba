"""The checkpoint of a stream. Spark writes the checkpoint without a sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from deedbook import InvalidArgumentError
from deedbook._system.durable import sync_file, sync_folder
from deedbook._system.regular import open_regular, parse_json, read_small
from deedbook.spark._options.paths import local_path

__all__ = ["files_of_batch", "files_seen", "sync_checkpoint"]

_LINE_BYTES_MAX: Final = 16 << 20


def sync_checkpoint(checkpoint: str, batch: int) -> None:
    """Put Spark's notes of a batch on stable storage, before the batch is in a log.

    Otherwise a power cut could lose the plan of the batch and leave the batch. Spark would plan
    another batch of the same number, with more rows, and the log would skip the batch as a repeat.

    A checkpoint outside of this machine's folders is left to its storage. Raises OSError.
    """
    try:
        top = local_path(checkpoint)
    except InvalidArgumentError:
        return
    for file in _written(top, batch):
        for part in (file, file.with_name(f".{file.name}.crc")):
            with suppress(FileNotFoundError):
                sync_file(part)
    folders = [top.parent, top, top / "offsets", top / "sources", *(top / "sources").glob("*")]
    for folder in folders:
        with suppress(FileNotFoundError):
            sync_folder(folder)


def files_seen(checkpoint: Path) -> Iterator[tuple[str, int]]:
    """The files that a stream has planned to read, each with the number of its plan.

    Raises OSError, and ValueError for foreign notes.
    """
    for file in _notes(checkpoint / "sources" / "0"):
        for found in _entries(file):
            yield str(local_path(found["path"])), found["batchId"]


def files_of_batch(checkpoint: Path, batch: int) -> set[str]:
    """The files planned for a batch. Raises as `files_seen`."""
    before, last = (_plan_of(checkpoint, number) for number in (batch - 1, batch))
    plans = range(before + 1, last + 1)
    return {
        str(local_path(found["path"]))
        for note in _notes_of(checkpoint / "sources" / "0", plans)
        for found in _entries(note)
        if found["batchId"] in plans
    }


def _plan_of(checkpoint: Path, batch: int) -> int:
    """The last plan of a batch; -1 before the first batch."""
    if batch < 0:
        return -1
    # A line for the version, a line for settings, then a line for each source.
    line = read_small(checkpoint / "offsets" / str(batch)).decode().splitlines()[2]
    return int(parse_json(line)["logOffset"])


def _notes(source: Path) -> list[Path]:
    """The notes of a source of files: N, or N.compact, which also has all earlier notes."""
    return [file for file in source.iterdir() if file.name.split(".")[0].isdecimal()]


def _notes_of(source: Path, plans: range) -> set[Path]:
    """The shortest notes with the plans, because N.compact may have millions of files."""
    notes = _notes(source)
    found: set[Path] = set()
    for plan in plans:
        # N itself, or else the first N.compact after N.
        having = [note for note in notes if _number(note) == plan or note.suffix]
        having = [note for note in having if _number(note) >= plan]
        found.update(sorted(having, key=lambda note: (_number(note), note.suffix))[:1])
    return found


def _number(note: Path) -> int:
    return int(note.name.split(".")[0])


def _entries(note: Path) -> Iterator[dict[str, Any]]:
    """The lines of a note, without the first line, the version."""
    with open_regular(note) as lines:
        lines.readline(_LINE_BYTES_MAX)
        while line := lines.readline(_LINE_BYTES_MAX):
            yield parse_json(line)


def _written(top: Path, batch: int) -> Iterator[Path]:
    """The files written by Spark before the tasks of a batch run."""
    yield top / "metadata"
    yield top / "offsets" / str(batch)
    for source in (top / "sources").glob("*"):
        if noted := _notes(source):
            yield max(noted, key=_number)
