"""Files replaced as a whole, and names that survive a power cut."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from deedbook._system.regular import create_new, open_regular, read_json

__all__ = [
    "Unnamed",
    "load_json",
    "store_json",
    "store_text",
    "sync_file",
    "sync_folder",
    "sync_folders",
    "unfinished",
]


class Unnamed:
    """A file written next to its place, and named once its bytes are durable.

    A context manager. A file without a name at the end is removed.
    """

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self.file = file
        """Open for writing."""
        self._path: str | os.PathLike[str] | None = path

    @classmethod
    def beside(cls, folder: str | os.PathLike[str], prefix: str, suffix: str = "") -> Unnamed:
        """Create the file in a folder, under a name that no other writer uses. Raises OSError."""
        fd, path = tempfile.mkstemp(suffix, prefix, folder)
        return cls(open(fd, "wb"), path)

    def name(self, target: str | os.PathLike[str]) -> None:
        """Sync the file and put it in the place of ``target``. Raises OSError.

        The caller syncs the folder. After an earlier power cut, the old file may be back.
        """
        assert self._path is not None
        self.file.flush()
        os.fsync(self.file.fileno())  # else a power cut could leave the name without the bytes
        self.file.close()
        os.replace(self._path, target)
        self._path = None

    def __enter__(self) -> Unnamed:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # of bytes that could not be written
            self.file.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


def store_json(file: Path, value: Mapping[str, Any], mode: int = 0o666) -> None:
    """Replace a file by a new one with ``value`` as JSON, durable on return. Raises OSError."""
    store_text(file, json.dumps(value), mode)


def store_text(file: Path, text: str, mode: int = 0o666) -> None:
    """Replace a file by a new one with ``text``, durable on return. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = unfinished(file)
    with Unnamed(create_new(new, mode), new) as written:
        written.file.write(text.encode())
        written.name(file)
    sync_folder(file.parent)


def unfinished(file: Path) -> Path:
    """The file that a killed `store_json` leaves; the next call writes over it."""
    return file.with_name(f".{file.name}.new")


def load_json(file: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no file. Raises as `read_json`."""
    try:
        return read_json(file)
    except FileNotFoundError:
        return None


def sync_file(file: Path) -> None:
    """Put a file's bytes on stable storage. Raises OSError."""
    # Windows syncs only files opened for writing; elsewhere the file may be read-only.
    with open_regular(file, os.O_RDWR if os.name == "nt" else os.O_RDONLY) as opened:
        os.fsync(opened.fileno())


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on stable storage, where the system can. Raises OSError."""
    if os.name != "nt":  # Windows opens no folder
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def sync_folders(top: Path, files: Iterable[Path]) -> None:
    """Sync ``top``'s own name, and all folders from there down to these files."""
    folders = {top.parent, top}
    for file in files:
        folders.update(parent for parent in file.parents if parent.is_relative_to(top))
    for folder in sorted(folders):
        sync_folder(folder)
