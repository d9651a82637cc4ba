"""Backups of piers, whose epochs are books, and of ledgers, whose files go."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deedbook._backup._files import Changed, Copier, read_if_there, same
from deedbook._backup._logs import SAVED, TRANSACTIONS, Copied, backup_log, wait_until_none
from deedbook._core import Book, LedgerSnapshot, Pier
from deedbook._durable import sync_folder
from deedbook._errors import CorruptError, Error, LockedError
from deedbook._formats import by_name
from deedbook._formats.writer import writer_of
from deedbook._regular import is_file, is_folder, names_in, open_regular
from deedbook._sidecar import SIDECAR

__all__ = ["backup_ledger", "backup_pier"]

_CONSUMERS: Final = "consumers"
_METADATA: Final = "data.mdb"
"""Where Vere keeps a pier's metadata, in LMDB."""
_EPOCH: Final = re.compile(r"0i(0|[1-9][0-9]*)")
_LEDGER_FILE: Final = re.compile(r"(0|[1-9][0-9]*)-(.+)", re.DOTALL)
_RECORD: Final = struct.Struct("<II")
_COUNTER: Final = "next-"
_JOBS: Final = "jobs-"
_QUARANTINE: Final = "quarantine"
_PASSES_MAX: Final = 10
"""Of the files of a ledger, whose sender removes some in each. Enough for refusals and replays."""
_LETTERS: Final = "dead-letters"
_SMALL: Final = ("settings",)


def backup_pier(source: Path, target: Path, copier: Copier) -> Copied:
    """The epochs one after the other. One that is begun meanwhile is for the next backup.

    What the pier dropped, and is gone, goes from the backup, too.
    """
    records = 0
    while True:
        with Pier.open(source) as pier:
            log = Path(pier.log_path)
        _refuse_links(source, log)
        epochs, transactions = _epochs_without_a_commit(source, log)
        theirs = target / os.path.relpath(log, source)
        _refuse_links(target, theirs)
        writer = writer_of(str(theirs / SIDECAR))
        if writer.held:
            raise LockedError(f"{target} is open for writing, by process {writer.pid}")
        total = 0
        try:
            for path in epochs:
                copied = backup_log(path, theirs / path.name, Book, copier)
                records += copied.new_records or 0
                total += copied.total_bytes
        except (Error, OSError):
            if all(path.is_dir() for path in epochs):
                raise
            continue  # one was dropped meanwhile
        break
    consumers = read_if_there(log / SIDECAR / _CONSUMERS)
    for name, content in ((_CONSUMERS, consumers), (TRANSACTIONS, transactions)):
        copier.whole(log / SIDECAR / name, theirs / SIDECAR / name, content)
    _copy_metadata(log / _METADATA, theirs / _METADATA, copier)
    copier.sync_names()
    _remove_epochs_before(theirs, epochs[0].name)
    with Pier.open(target) as copy:
        return Copied(copy.bounds, records, total)


def _refuse_links(top: Path, log: Path) -> None:
    """Raise `NotALogError` for a link in place of a directory from a pier's down to its epochs."""
    below = [log, *log.parents]
    for folder in below[: below.index(top)]:
        is_folder(folder)
    is_folder(log / SIDECAR)
    for name in filter(_EPOCH.fullmatch, names_in(log)):
        is_folder(log / name)


def _copy_metadata(source: Path, target: Path, copier: Copier) -> None:
    """Copy a file that LMDB may write: a copy is whole if a second reading finds the same bytes.

    Where the pier has no such file, the backup keeps its own: nothing else can make it again.
    """
    if not is_file(source):
        return
    for _ in range(_PASSES_MAX):
        new = copier.staged(source, target)
        if new is None:
            return
        if same(source, new):
            new.replace(target)
            return
        new.unlink()
    raise LockedError(f"{source} is written again and again: back the pier up once more")


def _epochs_without_a_commit(source: Path, log: Path) -> tuple[list[Path], bytes | None]:
    """The epochs, and the pier's record of transactions, between two commits that make epochs."""
    intent, record = (log / SIDECAR / name for name in ("transaction", TRANSACTIONS))
    while True:
        wait_until_none(source, [intent], log / SIDECAR)
        transactions = read_if_there(record)
        with Pier.open(source) as pier:
            epochs = [Path(epoch.path) for epoch in pier.epochs]
        if not is_file(intent) and read_if_there(record) == transactions:
            return epochs, transactions


def _remove_epochs_before(log: Path, first: str) -> None:
    """Remove the epochs of a backup that the pier has no more, the oldest first."""
    numbers = sorted(int(name[2:]) for name in os.listdir(log) if _EPOCH.fullmatch(name))
    aside = log / SIDECAR / "dropped"
    for number in numbers:
        if number >= int(first[2:]):
            break
        if not is_folder(aside.parent):
            aside.parent.mkdir(0o700)
        shutil.rmtree(aside, ignore_errors=True)
        (log / f"0i{number}").rename(aside)
        sync_folder(log)
        shutil.rmtree(aside)


def backup_ledger(source: Path, target: Path, copier: Copier) -> Copied:
    """The files that wait to be sent, and dead letters. What is gone goes from the backup, too."""
    bases = LedgerSnapshot.bases(source)
    ours, theirs = source / SIDECAR, target / SIDECAR
    copier.make_folder(theirs)
    for base in bases:
        is_folder(ours / f"{_JOBS}{base}")
    wait_until_none(source, [ours / f"{_JOBS}{base}" / "transaction" for base in bases])
    # Before the files, and after them: a file that is refused under the copying becomes letters.
    letters = _copy_letters(ours, theirs, copier, set())
    for _ in range(_PASSES_MAX):
        sizes: dict[str, int] = {}
        names = _ledger_files(source, bases)
        for name in names:
            with contextlib.suppress(Changed, FileNotFoundError):  # it was sent
                end = _whole_records(source / name)
                copier.grow(source / name, target / name, 0, end)
                sizes[name] = end
        # What is gone by now was sent, or is in one of the folders that come next.
        there = set(_ledger_files(source, bases))
        # Before a file goes: its index must not come again.
        for file in _small_files(ours):
            copier.whole(file, theirs / file.relative_to(ours), read_if_there(file))
        for name in names_in(ours / _QUARANTINE):
            if _LEDGER_FILE.fullmatch(name) or SAVED.fullmatch(name):
                file = ours / _QUARANTINE / name
                copier.grow(file, theirs / _QUARANTINE / name, 0, file.lstat().st_size)
        letters |= _copy_letters(ours, theirs, copier, letters)
        copier.sync_names()
        # A file that is gone may have been refused, and its letters replayed into another file.
        if there.issuperset(names):
            break
    for name in _ledger_files(target, bases):
        if name not in there:
            copier.remove(target / name)
    for letter in _letters(theirs) - letters:
        copier.remove(theirs / letter)
    copier.sync_names()
    outcome = by_name("ledger").verify(str(target), lambda done, total: None)
    if not outcome.ok:
        raise CorruptError(
            f"{target}: the backup is damaged, as the ledger may be: " + "; ".join(outcome.lines)
        )
    return Copied(None, None, sum(sizes.values()))


def _letters(sidecar: Path) -> set[Path]:
    """The files of dead letters, in the folders of all ledgers."""
    return {
        Path(folder, name)
        for folder in names_in(sidecar)
        if folder == _LETTERS or folder.startswith(f"{_LETTERS}-")
        for name in names_in(sidecar / folder)
        if name.endswith(".jsonl") and name[0] != "."
    }


def _copy_letters(ours: Path, theirs: Path, copier: Copier, done: set[Path]) -> set[Path]:
    """Copy the files of dead letters but those that are done; returns all that there are."""
    found = _letters(ours)
    for letter in sorted(found - done):
        with contextlib.suppress(FileNotFoundError):  # it was replayed
            new = copier.staged(ours / letter, theirs / letter)
            if new is not None:
                new.replace(theirs / letter)
    return found


def _ledger_files(folder: Path, bases: list[str]) -> list[str]:
    """The names of the files of these ledgers, by their indexes."""
    found = [match for name in os.listdir(folder) if (match := _LEDGER_FILE.fullmatch(name))]
    found = [match for match in found if match[2] in bases]
    return [match[0] for match in sorted(found, key=lambda match: (match[2], int(match[1])))]


def _whole_records(file: Path) -> int:
    """Where the last whole record of a file ends, by the lengths; else where the file does."""
    at = 0
    with open_regular(file) as read:
        size = os.fstat(read.fileno()).st_size
        while at + _RECORD.size <= size:
            read.seek(at)
            length, _ = _RECORD.unpack(read.read(_RECORD.size))
            if length == 0 or at + _RECORD.size + length > size:
                return at if length else size
            at += _RECORD.size + length
    return at if at == size else size


def _small_files(sidecar: Path) -> Iterator[Path]:
    """The small files of a ledger's sidecar that a backup has."""
    for name in names_in(sidecar):
        if name in _SMALL or name.startswith(_COUNTER):
            yield sidecar / name
        elif name.startswith(_JOBS) and is_folder(sidecar / name):
            yield sidecar / name / TRANSACTIONS
