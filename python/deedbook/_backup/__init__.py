"""Backups of logs beside their writers: copies that open as the logs do.

A backup is files of the log's format. What a copy has already is not copied again; a copy that was
interrupted is a log, too, and is continued by the next one.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deedbook._backup._files import Copier
from deedbook._backup._logs import backup_log
from deedbook._backup._others import backup_ledger, backup_pier
from deedbook._backup._store import backup_store
from deedbook._backup._target import alone, make_target
from deedbook._core import Book, Wal
from deedbook._errors import InvalidArgumentError, LockedError, NotALogError
from deedbook._formats import find, missing, require
from deedbook._formats.writer import writer_of
from deedbook._sidecar import SIDECAR, sidecar_of

__all__ = ["BackupReport", "backup"]

Named = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path as Python takes it everywhere."""


@dataclass(frozen=True)
class BackupReport:
    """What a backup did, and what it has now."""

    source: str
    """The log."""
    target: str
    """The backup."""
    format: str
    """Name of the format."""
    copied_files: int
    """Files that were written."""
    copied_bytes: int
    """Bytes that were written."""
    new_records: int | None
    """Records that were copied and read back; None where the whole backup was read."""
    bounds: tuple[int, int] | None
    """Positions of the first and the last record of the backup; None where it has none."""
    total_bytes: int
    """Bytes of the backup's records, from the log's first byte on."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from deedbook._shown import html_of_report

        return html_of_report(self)


BackupReport.__module__ = "deedbook"  # from where it is imported


def backup(
    source: Named,
    target: Named,
    *,
    progress: Callable[[int], object] | None = None,
) -> BackupReport:
    """Copy a log beside its writer, or bring such a copy up to date. Restoring is opening the copy.

    The copy has every record that was acknowledged before the call, with the same numbers or LSNs,
    consumers and committed transactions. What is new in it is read back, and its checksums are
    compared. When this returns it is on stable storage. The next call continues what was
    interrupted.

    The log may be written meanwhile. A ``target`` whose files are no beginning of the log's, or a
    backup of another event store, is an InvalidArgumentError, and stays as it is. ``progress`` gets
    the bytes read so far; what it raises ends the copy.

    >>> with deedbook.Book.create("log") as book:
    ...     lsns = book.append_many([b"one", b"two"])
    ...     deedbook.backup("log", "copy").bounds
    (1, 2)

    Raises MissingError, also where the directory above ``target`` is not there, NotALogError for a
    ``target`` of another format and for a link or a FIFO in place of a file of the log, LockedError
    for one that is written or backed up, CorruptError, UnsupportedError, TooLargeError, IoError or
    OSError.
    """
    ours, theirs = (Path(os.path.abspath(os.fsdecode(one))) for one in (source, target))
    found = require(ours)
    if found.saved:
        raise InvalidArgumentError(f"{ours} is what was cut off a log; copy it as a file")
    name = found.format.name
    if ours.is_file() and name != "wal":
        raise InvalidArgumentError(
            f"{ours} is a file of a {found.format.title}: name its directory"
        )
    _check_target(ours, theirs, name)
    if not theirs.parent.is_dir():
        raise missing(os.strerror(errno.ENOENT), theirs.parent)
    if ours.is_dir() and not theirs.exists():
        make_target(theirs, ours)
    copier = Copier(progress or (lambda done: None))
    with alone(theirs, ours.is_file()):
        if name == "pier":
            copied = backup_pier(ours, theirs, copier)
        elif name == "ledger":
            copied = backup_ledger(ours, theirs, copier)
        elif name == "nostr":
            copied = backup_store(ours, theirs, copier)
        else:
            copied = backup_log(ours, theirs, Wal if name == "wal" else Book, copier)
    return BackupReport(
        str(ours),
        str(theirs),
        name,
        copier.files,
        copier.bytes,
        copied.new_records,
        copied.bounds,
        copied.total_bytes,
    )


def _check_target(source: Path, target: Path, name: str) -> None:
    is_there = os.path.lexists(target)
    if is_there and source.samefile(target):
        raise InvalidArgumentError(f"{target} is the log itself")
    ours, theirs = source.resolve(), target.resolve()
    if source.is_dir() and (ours in theirs.parents or theirs in ours.parents):
        raise InvalidArgumentError(
            f"{source} and {target} lie in each other: choose another directory"
        )
    if not is_there:
        return
    if source.is_dir() != target.is_dir():
        raise NotALogError(
            f"{target} is no directory as {source} is"
            if source.is_dir()
            else f"{target} is a directory, {source} a file"
        )
    there = find(target)
    if there is not None and there.format.name != name:
        raise NotALogError(f"{target} holds a {there.format.title}, {source} another format")
    if there is None and target.is_dir() and any(item.name != SIDECAR for item in target.iterdir()):
        raise InvalidArgumentError(
            f"{target} holds other files and no log: choose another directory"
        )
    writer = writer_of(sidecar_of(str(target), target.is_file()))
    if writer.held:
        raise LockedError(f"{target} is open for writing, by process {writer.pid}")
