"""Backups of event stores, beside their writers.

The write-ahead log is copied before the segments, and the last segment last, to its end: what
opening a copy replays is there already or goes where it was, and a flag that was copied has its
event. A checkpoint, a new segment or a compaction that comes meanwhile is seen by the manifest and
by the files of the log; then the copy goes on with what changed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from deedbook._backup._files import NEW, Changed, Copier, read_if_there
from deedbook._backup._logs import COPIED, SAVED, Copied, read_beside, wait_until_none
from deedbook._errors import CorruptError, InvalidArgumentError
from deedbook._formats import by_name
from deedbook._formats.writer import writer_of
from deedbook._regular import is_file, is_folder, names_in, parse_json
from deedbook._sidecar import SIDECAR

__all__ = ["backup_store"]

MANIFEST: Final = "manifest.json"
LOG: Final = "wal"
UNDER_WAY: Final = "transaction"
INDEX: Final = "events"
"""Of the sidecar, and derived: it is made again."""
SEGMENTS: Final = Path("data", "segments")
BESIDE: Final = {"manifest", "consumers", "loss", "settings", "transactions"}
"""The small files of the sidecar that a backup has. How far imports came is of the store alone."""
NOT_REMOVED: Final = {"lock", "backup-lock", UNDER_WAY, "imports.json"}
"""Of a backup that was opened and written."""
LOG_FILE: Final = re.compile(r"wal\.([0-9]{6,}\.)?log")
SEGMENT: Final = re.compile(r"data\.(0|[1-9][0-9]*)(\.seg)?")
ATTEMPTS: Final = 50
DAMAGED_MAX: Final = 3
SETTLED_NS: Final = 1_000_000_000
"""A file that changed so long ago shows a later change by its time."""


class _State(NamedTuple):
    """What is another one after a checkpoint, a rotation, a compaction or a commit."""

    manifest: bytes | None
    log_files: list[str]
    transactions: bytes | None


def backup_store(source: Path, target: Path, copier: Copier) -> Copied:
    """Bring the backup of an event store up to date, and read all of it.

    Raises `Error` and OSError.
    """
    if is_file(target / MANIFEST):
        _refuse_other(source, target)
        # Damage is not to replace what an earlier backup has.
        _check(source, f"{source} is damaged, and its backup {target} stays as it is")
    staged = _Staged(source, target, copier)
    damaged = 0
    for _ in range(ATTEMPTS):
        try:
            total = _copy(source, target, copier, staged)
            _check(target, f"{target}: the backup is damaged, as the store may be")
            return Copied(None, None, total)
        except Changed as error:
            why = str(error)
        except CorruptError:
            # A page that was read while it was written is whole in the next pass; damage stays.
            damaged += 1
            if damaged == DAMAGED_MAX or writer_of(str(source / SIDECAR)).held is False:
                raise
            staged.known.clear()
    raise InvalidArgumentError(
        f"{source} changed under the backup {ATTEMPTS} times, the last time because {why}: do it "
        "again when less is written"
    )


class _Staged:
    """Files that were copied under another name, until all are there and fit each other."""

    def __init__(self, source: Path, target: Path, copier: Copier) -> None:
        self._source, self._target, self._copier = source, target, copier
        self.known: dict[Path, tuple[int, int, int]] = {}
        """The files that need not be read again, as they were when they were copied."""
        self._new: dict[Path, Path] = {}

    def add(self, file: Path) -> int:
        """Copy a file unless that was done; returns its bytes. Raises `Changed` if it is gone."""
        target = self._target / file.relative_to(self._source)
        try:
            status = file.lstat()
            known = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self.known.get(file) != known:
                self.known.pop(file, None)
                now = time.time_ns()
                new = self._copier.staged(file, target)
                self._new.pop(target, None)
                if new is not None:
                    self._new[target] = new
                if status.st_mtime_ns < now - SETTLED_NS:
                    self.known[file] = known
        except FileNotFoundError as error:
            raise Changed(f"{file} is gone") from error
        return status.st_size

    @property
    def has_new(self) -> bool:
        """Whether any file of the backup becomes another one."""
        return bool(self._new)

    def put(self, targets: set[Path]) -> None:
        """Give the files their names."""
        for target, new in list(self._new.items()):
            if target in targets:
                new.replace(target)
                del self._new[target]


def _copy(source: Path, target: Path, copier: Copier, staged: _Staged) -> int:
    """One pass; returns the bytes of all files. Raises `Changed` if they may not fit each other."""
    wait_until_none(source, [source / SIDECAR / UNDER_WAY], source / SIDECAR)
    state = _state_of(source)
    files = list(_files(source, state.manifest))
    # What a mark vouches for is in what is copied after it.
    small = [file for file in files if SIDECAR in file.relative_to(source).parts]
    beside = {file: read_beside(file) for file in small}
    large = [file for file in files if file not in beside and file.name != MANIFEST]
    total = sum(staged.add(file) for file in large)
    if _state_of(source) != state or is_file(source / SIDECAR / UNDER_WAY):
        raise Changed("a checkpoint, a compaction or a commit came")
    kept = {target / file.relative_to(source) for file in files}
    if staged.has_new:
        # One of a copy that was opened and written covers events that now go.
        shutil.rmtree(target / SIDECAR / INDEX, ignore_errors=True)
    staged.put(kept)
    for file, content in sorted(beside.items(), key=lambda item: (item[0].name == "mark", item)):
        copier.whole(file, target / file.relative_to(source), content)
    copier.whole(source / MANIFEST, target / MANIFEST, state.manifest)
    copier.sync_names()
    for left in (*_below(target), target / (MANIFEST + NEW)):
        is_left = left not in kept and left.name not in NOT_REMOVED
        if is_left and os.path.lexists(left) and not stat.S_ISDIR(left.lstat().st_mode):
            copier.remove(left)
    copier.sync_names()
    return total


def _refuse_other(source: Path, target: Path) -> None:
    """Raises `InvalidArgumentError` for a target that is no earlier state of the store."""
    ours, theirs = (_manifest(read_if_there(store / MANIFEST)) for store in (source, target))
    if ours is None or theirs is None:
        return
    for name, what in (("created_at", "began at second"), ("last_checkpoint_lsn", "has entry")):
        here, there = ours[name], theirs[name]
        if there > here or (name == "created_at" and there != here):
            raise InvalidArgumentError(
                f"{target} is no earlier state of {source}: it {what} {there}, the store {here}; "
                "it is the backup of another store, or was written: choose another directory"
            )


def _state_of(store: Path) -> _State:
    log = store / LOG
    names = names_in(log)
    transactions = read_if_there(store / SIDECAR / "transactions")
    return _State(read_if_there(store / MANIFEST), names, transactions)


def _files(store: Path, manifest: bytes | None) -> Iterator[Path]:
    """The files of an event store in the order of copying, but for locks and what is derived.

    With a manifest, without segments that it does not name: a compaction that goes on writes them,
    or one that ended left them.
    """
    found = [file for file in _below(store) if _is_copied(file.relative_to(store))]
    if is_file(store / MANIFEST):
        found.append(store / MANIFEST)
    named = _named(manifest)

    def order(file: Path) -> tuple[bool, int, Path]:
        segment = SEGMENT.fullmatch(file.name)
        return file.parent != store / LOG, int(segment[1]) if segment else -1, file

    for file in sorted(found, key=order):
        segment = SEGMENT.fullmatch(file.name)
        if segment is None or named is None or int(segment[1]) in named:
            yield file


def _below(store: Path) -> Iterator[Path]:
    """All that lies in the directories of a store. Raises `NotALogError` for a link to one."""
    is_folder(store / SEGMENTS.parent)
    logs = [Path(LOG, SIDECAR, name) for name in names_in(store / LOG / SIDECAR)]
    logs = [folder for folder in logs if LOG_FILE.fullmatch(folder.name)]
    for folder in (SEGMENTS, Path(LOG), Path(LOG, SIDECAR), *logs, Path(SIDECAR)):
        for name in names_in(store / folder):
            yield store / folder / name


def _is_copied(file: Path) -> bool:
    """Whether a file of that place in a store is one that a backup has."""
    if file.parent == SEGMENTS:
        return bool(SEGMENT.fullmatch(file.name) or SAVED.fullmatch(file.name))
    if file.parent == Path(LOG):
        return bool(LOG_FILE.fullmatch(file.name) or SAVED.fullmatch(file.name))
    return file.name in (BESIDE if file.parent == Path(SIDECAR) else COPIED)


def _named(manifest: bytes | None) -> set[int] | None:
    """The segments that a manifest names; None without one that can be understood."""
    fields = _manifest(manifest)
    return None if fields is None else {segment["id"] for segment in fields["active_segments"]}


def _manifest(text: bytes | None) -> dict[str, Any] | None:
    """The fields of a manifest; None of one that cannot be understood."""
    try:
        fields = parse_json(text or b"")
        numbers = [fields["created_at"], fields["last_checkpoint_lsn"]]
        numbers += [segment["id"] for segment in fields["active_segments"]]
    except (ValueError, TypeError, KeyError):
        return None
    return fields if all(isinstance(number, int) for number in numbers) else None


def _check(store: Path, wrong: str) -> None:
    """Read a whole store. Raises `CorruptError` if it is not as it should be."""
    outcome = by_name("nostr").verify(str(store), lambda done, total: None)
    if not outcome.ok:
        raise CorruptError(f"{wrong}: " + "; ".join(outcome.lines))
