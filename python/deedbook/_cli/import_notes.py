"""How far the inputs of an import into an event store are stored: a later one goes on there.

The note lies in the store's ``.deedbook/imports.json``. It is written only after a commit that
covers it. An input that is not the same any more, or is imported otherwise, begins again: what is
stored already is passed over then, which costs time only. A repair that may lose events removes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, Final

from deedbook import CorruptError
from deedbook._durable import load_json, store_json, sync_folder
from deedbook.reports import BadLine, ImportReport

HEAD_BYTES: Final = 64 << 10
"""So much of the beginning of an input is compared."""
_VERSION: Final = 1


class Notes:
    """What is noted of a store's imports.

    ``settings`` are what an import depends on besides its input: with others, it begins again.
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
        """What was done with an input, and the bytes of the aside file then; None: nothing."""
        noted = self._inputs.get(os.path.abspath(file))
        if noted is None or noted["identity"] != _identity(file):
            return None
        facts = dict(noted["done"])
        facts["bad_lines"] = [BadLine(**bad) for bad in facts["bad_lines"]]
        return ImportReport(**facts), noted["aside_bytes"]

    def keep(self, file: str, done: ImportReport, aside_bytes: int) -> None:
        """Note what is done with an input, durably. The store must be committed. Raises OSError."""
        self._inputs[os.path.abspath(file)] = {
            "identity": _identity(file),
            "done": done.to_dict(),
            "aside_bytes": aside_bytes,
        }
        store_json(self._file, {"settings": self._settings, "inputs": self._inputs}, 0o600)

    def clear(self) -> None:
        """Forget all inputs: they are stored. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            self._file.unlink()
            sync_folder(self._file.parent)


def _identity(file: str) -> list[Any]:
    """What changes with an input."""
    with open(file, "rb") as opened:
        found = os.fstat(opened.fileno())
        head = hashlib.sha256(opened.read(HEAD_BYTES)).hexdigest()
    return [found.st_size, found.st_mtime_ns, head]


class Aside:
    """The file of bad lines, at whose end they are written; it is made with the first of them.

    An import that was killed may have written more lines than were noted. They come again, and are
    not written twice: ``noted_bytes`` is the size of the file when it was noted.
    """

    def __init__(self, path: str, noted_bytes: int | None = None) -> None:
        self._path = path
        self._file: Any = None
        self._ahead = b""
        """Lines of this import that are there already."""
        if noted_bytes is not None:
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                file.seek(noted_bytes)
                self._ahead = file.read()

    def write(self, data: Any) -> int:
        """Write a line, if it is not there."""
        line = bytes(data)
        if self._ahead.startswith(line):
            self._ahead = self._ahead[len(line) :]
            return len(line)
        # The last one may be there in part; what else is there is of others.
        begun = len(self._ahead) if line.startswith(self._ahead) else 0
        self._ahead = b""
        if self._file is None:
            self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115
        rest = memoryview(line)[begun:]
        while rest:  # a disk that is nearly full takes a part
            rest = rest[self._file.write(rest) :]
        return len(line)

    def sync(self) -> None:
        """Put what was written on stable storage."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def end(self) -> int:
        """The size of the file up to the last line of this import."""
        try:
            return os.path.getsize(self._path) - len(self._ahead)
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
