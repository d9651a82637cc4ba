"""The core's opener of files in or below a log, in a copy of one, or in a job's work folder.

Other people's programs may have written the directory. A link there may lead to any file of the
user, a FIFO makes an opening wait forever, and a small file may be as large as the disk. The core
refuses all three.

A file named on the command line is opened as usual, and may be a link or a pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from deedbook._core import _SMALL_BYTES_MAX as SMALL_BYTES_MAX
from deedbook._core import _is_directory as is_folder
from deedbook._core import _is_regular as is_file
from deedbook._core import _open_regular
from deedbook._core import _read_small as read_small
from deedbook._errors import CorruptError, TooLargeError

__all__ = [
    "SMALL_BYTES_MAX",
    "below",
    "create_new",
    "is_file",
    "is_folder",
    "names_in",
    "open_regular",
    "parse_json",
    "read_json",
    "read_small",
]

_MODES: Final = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "r+b"}


def open_regular(
    file: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o600
) -> BinaryIO:
    """Open a regular file; ``flags`` and the ``mode`` of a new file are as for ``os.open``.

    Raises `NotALogError` for a link, a FIFO, a directory and all else, and OSError.
    """
    access = flags & (os.O_WRONLY | os.O_RDWR)
    creates, is_new = bool(flags & os.O_CREAT), bool(flags & os.O_EXCL)
    fd = _open_regular(file, access != os.O_RDONLY, creates, is_new, mode)
    # The file's name is the path; `os.fdopen` would use the number.
    return cast(BinaryIO, open(file, _MODES[access], opener=lambda *_: fd))


def create_new(file: str | os.PathLike[str], mode: int = 0o600) -> BinaryIO:
    """Create a file for writing, in place of an old file. Raises OSError.

    Only the old name is removed: the target of a link stays unchanged.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)
    return open_regular(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)


def parse_json(text: bytes | str) -> Any:
    """The value of a foreign JSON text. Raises ValueError, also for a text that is too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(file: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a small file.

    Raises `CorruptError` for other text, and as `read_small`.
    """
    try:
        found = parse_json(read_small(file))
    except ValueError as error:
        if isinstance(error, TooLargeError):
            raise
        raise _damaged(file, f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise _damaged(file, f"JSON {type(found).__name__}, must be an object")
    return found


def names_in(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a directory, in order; empty without a directory. Raises as `is_folder`."""
    try:
        return sorted(os.listdir(folder)) if is_folder(folder) else []
    except FileNotFoundError:
        return []


def below(folder: Path, name: str) -> Path:
    """The path of a name below a folder; the name comes from a file.

    Raises ValueError for a name that leaves the folder, and `NotALogError` for a link in place of a
    directory on the way, because the files there belong to others.
    """
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts) or Path(name).is_absolute():
        raise ValueError(f"{name!r} does not lie below {folder}")
    path = folder
    for part in parts:
        is_folder(path)
        path = path / part
    return path


def _damaged(file: str | os.PathLike[str], reason: str) -> CorruptError:
    error = CorruptError(f"{os.fspath(file)}: {reason}")
    error.path, error.reason = os.fspath(file), reason
    return error
