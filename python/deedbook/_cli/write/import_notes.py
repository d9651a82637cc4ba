"""The progress of an import into an event store: the next import continues there.

The note is the file ``.deedbook/imports.json`` of the store. The import writes the note only after
a commit of the noted lines. If an input or a setting changed, the import begins again, and skips
stored events: only time is lost. A repair that may lose events removes the note.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, Final

from deedbook import CorruptError
from deedbook._system.durable import load_json, store_json, sync_folder
from deedbook.reports import BadLine, ImportReport

HEAD_BYTES: Final = 64 << 10
"""Bytes to compare at the beginning of an input."""
_VERSION: Final = 1


class Notes:
    """The note of a store about imports.

    An import with other ``settings`` begins again.
    """

    def __init__(self, store: str, settings: dict[str, Any]) -> None:
        self._file = Path(store, ".deedbook", "imports.json")
        self._settings = {"version": _VERSION, **settings}
        self._inputs = self._load()

    def _load(self) -> dict[str, Any]:
        try:
            found = load_json(self._file) or {}
        except CorruptError:
            found = {}
        inputs = found.get("inputs")
        is_ours = found.get("settings") == self._settings and isinstance(inputs, dict)
        return inputs if is_ours and inputs is not None else {}

    def find(self, file: str) -> tuple[ImportReport, int] | None:
        """The noted report of an input and size of the aside file; None without a note."""
        noted = self._inputs.get(os.path.abspath(file))
        try:
            if noted is None or noted["identity"] != _identity(file):
                return None
            facts = dict(noted["done"])
            facts["bad_lines"] = [BadLine(**bad) for bad in facts["bad_lines"]]
            return ImportReport(**facts), int(noted["aside_bytes"])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None  # not a note of ours: import the file again

    def keep(self, file: str, done: ImportReport, aside_bytes: int) -> None:
        """Note the report of an input, durably. The store must be committed. Raises OSError."""
        self._inputs[os.path.abspath(file)] = {
            "identity": _identity(file),
            "done": done.to_dict(),
            "aside_bytes": aside_bytes,
        }
        store_json(self._file, {"settings": self._settings, "inputs": self._inputs}, 0o600)

    def clear(self) -> None:
        """Delete the note: all inputs are stored. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            self._file.unlink()
            sync_folder(self._file.parent)


def _identity(file: str) -> list[Any]:
    """Facts that change with an input."""
    with open(file, "rb") as opened:
        found = os.fstat(opened.fileno())
        head = hashlib.sha256(opened.read(HEAD_BYTES)).hexdigest()
    return [found.st_size, found.st_mtime_ns, head]


class Aside:
    """The file of bad lines. The first bad line creates the file.

    A killed import may have written more lines than the note has. The next import meets the same
    lines again, and must not write a line twice: ``noted_bytes`` is the size of the file at the
    time of the note.
    """

    def __init__(self, path: str, noted_bytes: int | None = None) -> None:
        self._path = path
        self._file: Any = None
        self._ahead = b""
        """Lines of the import after ``noted_bytes``, already in the file."""
        if noted_bytes is not None:
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                file.seek(noted_bytes)
                self._ahead = file.read()

    def write(self, data: Any) -> int:
        """Write a line, if the file does not have the line."""
        line = bytes(data)
        if self._ahead.startswith(line):
            self._ahead = self._ahead[len(line) :]
            return len(line)
        # The file may have a part of the last line. Other bytes come from other programs.
        begun = len(self._ahead) if line.startswith(self._ahead) else 0
        self._ahead = b""
        if self._file is None:
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115
        rest = memoryview(line)[begun:]
        while rest:  # a disk that is nearly full takes a part
            rest = rest[self._file.write(rest) :]
        return len(line)

    def sync(self) -> None:
        """Put all written lines on stable storage."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def end(self) -> int:
        """The size of the file up to the last line of the import."""
        try:
            return os.path.getsize(self._path) - len(self._ahead)
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
