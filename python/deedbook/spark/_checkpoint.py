"""The checkpoint of a stream, which Spark writes and does not sync."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deedbook import InvalidArgumentError
from deedbook._durable import sync_file, sync_folder
from deedbook.spark._paths import local_path

__all__ = ["files_of_batch", "files_seen", "sync_checkpoint"]


def sync_checkpoint(checkpoint: str, batch: int) -> None:
    """Put what Spark noted of a batch on stable storage, before the batch is in a log.

    Else a power cut could take the plan of the batch and leave the batch. Spark would plan another
    one of that number, with more rows, and the log would take it for a repeat.

    A checkpoint that is no folder of this machine is left to what keeps it. Raises OSError.
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

    Raises OSError, and ValueError for notes that Spark did not write.
    """
    for file in _notes(checkpoint / "sources" / "0"):
        for line in file.read_text(encoding="utf-8").splitlines()[1:]:
            found = json.loads(line)
            yield str(local_path(found["path"])), found["batchId"]


def files_of_batch(checkpoint: Path, batch: int) -> set[str]:
    """The files that are planned for a batch. Raises as `files_seen`."""
    first, last = (_plan_of(checkpoint, number) for number in (batch - 1, batch))
    return {file for file, plan in files_seen(checkpoint) if first < plan <= last}


def _plan_of(checkpoint: Path, batch: int) -> int:
    """The last plan that a batch has; -1 before the first batch."""
    if batch < 0:
        return -1
    # A line for the version, one for settings, then one for each source.
    line = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2]
    return int(json.loads(line)["logOffset"])


def _notes(source: Path) -> list[Path]:
    """What a source of files has noted: N, or N.compact, which has all before it, too."""
    return [file for file in source.iterdir() if file.name.split(".")[0].isdecimal()]


def _written(top: Path, batch: int) -> Iterator[Path]:
    """The files that Spark writes before the tasks of a batch run."""
    yield top / "metadata"
    yield top / "offsets" / str(batch)
    for source in (top / "sources").glob("*"):
        if noted := _notes(source):
            yield max(noted, key=lambda file: int(file.name.split(".")[0]))
