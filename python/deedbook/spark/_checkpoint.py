"""The checkpoint of a stream, which Spark writes and does not sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from deedbook import InvalidArgumentError
from deedbook._durable import sync_file, sync_folder
from deedbook.spark._paths import local_path

__all__ = ["sync_checkpoint"]


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


def _written(top: Path, batch: int) -> Iterator[Path]:
    """The files that Spark writes before the tasks of a batch run."""
    yield top / "metadata"
    yield top / "offsets" / str(batch)
    for source in (top / "sources").glob("*"):
        # What a source of files has read, the last of which is N or N.compact.
        noted = [file for file in source.iterdir() if file.name.split(".")[0].isdecimal()]
        if noted:
            yield max(noted, key=lambda file: int(file.name.split(".")[0]))
