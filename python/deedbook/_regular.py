"""The one opener of files that lie in or below a log, in a copy of one, or in a job's work folder.

Other people's programs may have written such a directory. A link there may lead to any file of the
user, a FIFO makes an opening wait for ever, and a small file may be as large as the disk. So an
opening follows no link, waits for nobody, takes regular files alone, and holds at most
`SMALL_BYTES_MAX` of a file. A directory there must be a directory, and no link to one.

A file that the user names on the command line is opened as usual: it may be a link or a pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from deedbook._errors import CorruptError, NotALogError, TooLargeError

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

SMALL_BYTES_MAX: Final = 16 << 20
"""A small file is held in memory whole, so a larger one is refused."""
_FLAGS: Final = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_MODES: Final = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "r+b"}


def open_regular(
    file: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o600
) -> BinaryIO:
    """Open a regular file; ``flags`` and the ``mode`` of a new file are those of ``os.open``.

    Raises `NotALogError` for a link, a FIFO, a directory and all else, and OSError.
    """
    kind = _kind_of(file)
    if kind not in (None, "a regular file"):
        raise _refused(file, f"{kind}, must be a regular file")
    try:
        fd = os.open(file, flags | _FLAGS, mode)
    except OSError:
        # The name may be another one since: a link, or a FIFO that nobody reads.
        if (kind := _kind_of(file)) not in (None, "a regular file"):
            raise _refused(file, f"{kind}, must be a regular file") from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _refused(file, "no regular file")
        # The file has its path for a name, where `os.fdopen` would give it the number.
        opened = open(file, _MODES[flags & (os.O_WRONLY | os.O_RDWR)], opener=lambda *_: fd)  # noqa: SIM115
        return cast(BinaryIO, opened)
    except BaseException:
        os.close(fd)
        raise


def create_new(file: str | os.PathLike[str], mode: int = 0o600) -> BinaryIO:
    """Create a file for writing, in place of a left one of that name. Raises OSError.

    The left one goes as a name: where it is a link, nothing that it leads to is changed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)
    return open_regular(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)


def read_small(file: str | os.PathLike[str]) -> bytes:
    """Everything that a small file holds.

    Raises `NotALogError`, `TooLargeError` for more than `SMALL_BYTES_MAX`, and OSError.
    """
    with open_regular(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        # The file may grow under the reading.
        content = opened.read(SMALL_BYTES_MAX + 1) if size <= SMALL_BYTES_MAX else b""
    if size > SMALL_BYTES_MAX or len(content) > SMALL_BYTES_MAX:
        error = TooLargeError(
            f"{os.fspath(file)} has {max(size, len(content))} bytes, at most {SMALL_BYTES_MAX} are"
            " held of a small file"
        )
        error.path = os.fspath(file)
        raise error
    return content


def parse_json(text: bytes | str) -> Any:
    """The value of a JSON text that others wrote. Raises ValueError, also where it is too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_json(file: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON object in a small file.

    Raises `CorruptError` for what is none, and as `read_small`.
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


def is_file(file: str | os.PathLike[str]) -> bool:
    """Whether a regular file is there. Raises `NotALogError` for all else, and OSError."""
    kind = _kind_of(file)
    if kind not in (None, "a regular file"):
        raise _refused(file, f"{kind}, must be a regular file")
    return kind is not None


def is_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether a directory is there. Raises `NotALogError` for all else, and OSError."""
    kind = _kind_of(folder)
    if kind not in (None, "a directory"):
        raise _refused(folder, f"{kind}, must be a directory")
    return kind is not None


def names_in(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a directory, in order; none if it is not there. Raises as `is_folder`."""
    try:
        return sorted(os.listdir(folder)) if is_folder(folder) else []
    except FileNotFoundError:
        return []


def below(folder: Path, name: str) -> Path:
    """The path that a name from a file has below a folder.

    Raises ValueError for a name that leaves the folder, and `NotALogError` for a link in place of a
    directory on the way: behind either lies what is not ours to read, move or delete.
    """
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts) or Path(name).is_absolute():
        raise ValueError(f"{name!r} does not lie below {folder}")
    path = folder
    for part in parts:
        is_folder(path)
        path = path / part
    return path


def _kind_of(path: str | os.PathLike[str]) -> str | None:
    """What lies at a path itself; None if nothing does."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    kinds = {
        stat.S_IFREG: "a regular file",
        stat.S_IFDIR: "a directory",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def _refused(path: str | os.PathLike[str], why: str) -> NotALogError:
    error = NotALogError(f"{os.fspath(path)} is {why}")
    error.path = os.fspath(path)
    return error


def _damaged(file: str | os.PathLike[str], reason: str) -> CorruptError:
    error = CorruptError(f"{os.fspath(file)}: {reason}")
    error.path, error.reason = os.fspath(file), reason
    return error
