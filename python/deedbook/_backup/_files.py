"""Files of a backup: what grows is continued, what is small is replaced whole, durably."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from deedbook._durable import sync_folder
from deedbook._errors import InvalidArgumentError
from deedbook._regular import create_new, is_file, is_folder, open_regular, read_small
from deedbook._sidecar import SIDECAR

__all__ = ["NEW", "Changed", "Copier", "read_if_there", "same"]

COMPARED_BYTES: Final = 64 << 10
"""Of what a file of the backup has already, its end is compared with the source."""
PIECE_BYTES: Final = 4 << 20
NEW: Final = ".new"
"""What is replaced whole is written under this ending first."""


class Changed(Exception):
    """The source became another under the copy: it is to be looked at once more."""


def read_if_there(file: Path) -> bytes | None:
    """What a small file holds; None if there is none. Raises as `read_small`."""
    try:
        return read_small(file)
    except FileNotFoundError:
        return None


def same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes now. Raises as `open_regular`."""
    with open_regular(one) as first, open_regular(other) as second:
        if os.fstat(first.fileno()).st_size != os.fstat(second.fileno()).st_size:
            return False
        while piece := first.read(PIECE_BYTES):
            if second.read(PIECE_BYTES) != piece:
                return False
        return not second.read(1)


class Copier:
    """Brings files of a backup to the state of the source, and counts what it wrote.

    ``tell`` is called with the bytes read from the source so far.
    """

    def __init__(self, tell: Callable[[int], object]) -> None:
        self.files = 0
        self.bytes = 0
        self._tell = tell
        self._read = 0
        self._folders: set[Path] = set()

    def grow(self, source: Path, target: Path, start: int, end: int) -> None:
        """Continue a file that only grows with the source's bytes up to ``end``.

        The bytes before ``start`` are the caller's. Raises `Changed` if the source is gone or
        shorter, `InvalidArgumentError` if the target is no beginning of it.
        """
        try:
            with open_regular(source) as read:
                there = self._there(read, source, target, start, end)
                if there < end:
                    with open_regular(target, os.O_RDWR) as written:
                        written.seek(there)
                        read.seek(there)
                        self._copy(read, written, end - there)
                        self._done(written, target)
        except FileNotFoundError as error:
            if is_file(source):
                raise
            raise Changed(f"{source} is gone") from error

    def whole(self, source: Path, target: Path, content: bytes | None) -> None:
        """Write the content of a small source file to the target; without one, remove the target.

        Whatever happens, it is the old one or the new one, never a part.
        """
        if content is None:
            if is_file(target):
                target.unlink()
                self._folders.add(target.parent)
        elif read_if_there(target) != content:
            self.make_folder(target.parent)
            new = target.with_name(target.name + NEW)
            with _create(new, source) as file:
                file.write(content)
                self._done(file, target)
            new.replace(target)
            self.bytes += len(content)

    def staged(self, source: Path, target: Path) -> Path | None:
        """Copy a file beside the target, to its end of then; returns the path to be renamed.

        None if the target holds the same already.
        """
        if is_file(target) and same(source, target):
            return None
        new = target.with_name(target.name + NEW)
        with open_regular(source) as read:
            self.make_folder(target.parent)
            with _create(new, source) as written:
                while piece := read.read(PIECE_BYTES):
                    self._wrote(written, piece)
                self._done(written, target)
        return new

    def overwrite(self, target: Path, offset: int, content: bytes) -> None:
        """Write some bytes in place, durably, if others are there."""
        with open_regular(target, os.O_RDWR) as file:
            file.seek(offset)
            if file.read(len(content)) != content:
                file.seek(offset)
                file.write(content)
                self._done(file, target)
                self.bytes += len(content)

    def remove(self, target: Path) -> None:
        """Remove a file that the source has no more."""
        target.unlink()
        self._folders.add(target.parent)

    def sync_names(self) -> None:
        """Put the names of all files on stable storage."""
        for folder in sorted(self._folders):
            sync_folder(folder)
        self._folders.clear()

    def make_folder(self, folder: Path) -> None:
        """Have a folder, and those above it."""
        if not is_folder(folder):
            self.make_folder(folder.parent)
            folder.mkdir(0o700 if SIDECAR in folder.parts else 0o777, exist_ok=True)
            self._folders.add(folder.parent)

    def _there(self, read: BinaryIO, source: Path, target: Path, start: int, end: int) -> int:
        """How many bytes the target has, which are the source's."""
        try:
            there = target.lstat().st_size
        except FileNotFoundError:
            self.make_folder(target.parent)
            _create(target, source).close()
            self._folders.add(target.parent)
            return 0
        if there > end:
            wrong = f"{there} bytes, the log has {end}"
        else:
            first = min(max(start, there - COMPARED_BYTES), there)
            read.seek(first)
            with open_regular(target) as file:
                file.seek(first)
                if file.read(there - first) == read.read(there - first):
                    return there
            wrong = f"other bytes before byte {there} than the log"
        raise InvalidArgumentError(
            f"{target} is no beginning of {source}: it has {wrong}; it is the backup of another "
            "log, or this log lost its end and was written again: choose another directory"
        )

    def _copy(self, read: BinaryIO, written: BinaryIO, count: int) -> None:
        while count > 0:
            piece = read.read(min(count, PIECE_BYTES))
            if not piece:
                raise Changed(f"{read.name} ends {count} bytes too early")
            self._wrote(written, piece)
            count -= len(piece)

    def _wrote(self, written: BinaryIO, piece: bytes) -> None:
        with _naming(written):
            written.write(piece)
        self.bytes += len(piece)
        self._read += len(piece)
        self._tell(self._read)

    def _done(self, written: BinaryIO, target: Path) -> None:
        with _naming(written):
            written.flush()
            os.fsync(written.fileno())
        self.files += 1
        self._folders.add(target.parent)


@contextlib.contextmanager
def _naming(written: BinaryIO) -> Iterator[None]:
    """Name the file in the error of a full disk, which the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fsdecode(written.name)
        raise


def _create(file: Path, source: Path) -> BinaryIO:
    """A new file, which has the permissions of the source's where files have such."""
    opened = create_new(file)
    with contextlib.suppress(OSError):  # the source is gone, or the disk keeps no permissions
        if hasattr(os, "fchmod"):
            # The next backup writes to it, even if the source is read-only.
            os.fchmod(opened.fileno(), source.lstat().st_mode & 0o777 | 0o600)
    return opened
