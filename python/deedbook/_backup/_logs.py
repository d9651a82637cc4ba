"""Backups of books and write-ahead logs, whose files grow up to a mark that says what is durable.

The mark is read first and written last. What is copied in between is at least what it vouches for:
so a backup has everything that was acknowledged before it began, and one that was interrupted is
the one before, with a tail that was not acknowledged.
"""

from __future__ import annotations

import os
import re
import struct
import time
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from deedbook._backup._files import Changed, Copier, read_if_there
from deedbook._core import Book, Wal
from deedbook._errors import CorruptError, InvalidArgumentError, TooLargeError
from deedbook._formats.writer import writer_of
from deedbook._regular import is_file, is_folder, names_in, open_regular
from deedbook._sidecar import sidecar_of

__all__ = ["SAVED", "Copied", "backup_log", "read_beside", "wait_until_none"]

UNDER_WAY: Final = ("transaction", "cut")
"""In the sidecar while a commit of staged records, or a cut, is under way."""
LAST: Final = "mark"
"""Of the small files. The first is `FIRST`."""
FIRST: Final = "settings"
INDEX: Final = "index"
COPIED: Final = {FIRST, LAST, INDEX, "consumers", "loss", "transactions"}
"""The small files of a sidecar that a backup has. Whatever else lies there is not the log's."""
BESIDE: Final = ("meta.bin", "epoc.txt", "vere.txt")
HEADER_BYTES: Final = {"packed": 16, "padded": 16, "slots": 8192}
SLOT_BYTES: Final = 4096
SLOT: Final = struct.Struct("<IIQQQQII")
"""Magic, version, event before the first, last event, commit, deeds of the batch, two checksums."""
HEAD: Final = "head"
SEGMENT: Final = re.compile(r"[0-9]{20}\.wal")
SAVED: Final = re.compile(r".*(\.cut-[0-9]+(\.[0-9]+)?|\.wal\.cut)")
WAITED_SECONDS: Final = 30.0
LOOKS: Final = 5
TRANSACTIONS: Final = "transactions"
ATTEMPTS: Final = 25
STRICT_ATTEMPTS: Final = 20
"""Later ones copy a log whose consumers move all the time, which hides a commit without a name."""
PART_BYTES: Final = 64 << 20


class Copied(NamedTuple):
    """What a backup of one log has."""

    bounds: tuple[int, int] | None
    """Positions of the first and the last record."""
    new_records: int | None
    """Records that were copied, and read back; None where the whole backup was read."""
    total_bytes: int
    """Up to the end of the last record, from the first byte on."""


class _Files(NamedTuple):
    """Where a log's files are."""

    log: Path
    """A directory, or the single file."""
    folder: Path
    sidecar: Path

    @staticmethod
    def of(path: Path, is_file: bool) -> _Files:
        sidecar = Path(sidecar_of(str(path), is_file))
        return _Files(path, path.parent if is_file else path, sidecar)


def backup_log(source: Path, target: Path, kind: type[Book] | type[Wal], copier: Copier) -> Copied:
    """Bring the backup of a book or a write-ahead log up to date, and read back what is new.

    Raises `Error` and OSError.
    """
    is_single = source.is_file() and kind is Wal
    ours, theirs = _Files.of(source, is_single), _Files.of(target, is_single)
    for files in (ours, theirs):
        if is_single:
            is_folder(files.sidecar.parent)
        is_folder(files.sidecar)
    for attempt in range(ATTEMPTS):
        try:
            return _copy(ours, theirs, kind, copier, strict=attempt < STRICT_ATTEMPTS)
        except Changed as error:
            why = str(error)
    raise InvalidArgumentError(
        f"{source} changed under the backup {ATTEMPTS} times, the last time because {why}: do it "
        "again when less is dropped"
    )


def _copy(
    ours: _Files, theirs: _Files, kind: type[Book] | type[Wal], copier: Copier, *, strict: bool
) -> Copied:
    before = _end_of(theirs, kind)
    since = _changed_at(ours.sidecar)
    small = _small(ours)
    header = _first_bytes(ours.log / "book.log") if kind is Book else b""
    with kind.open(ours.log) as log:
        layout = log.layout
        start, end = (log.head, log.end) if isinstance(log, Wal) else (0, log.end)
        durable = log.durable_end
        end = end if durable is None else min(durable, end)
        vouched = _last_in_slots(header) if layout == "slots" else 0
        if isinstance(log, Book) and vouched > 0:
            # The header, read after the mark, vouches for what was appended then, durable or not.
            # What came later is for the next backup: with this header it would be damage.
            end = log.bookmark(min(vouched, log.last) + 1).offset
        segment_bytes = log.segment_bytes if isinstance(log, Wal) else None
    # A commit that came meanwhile may be in the copy by half, or not be noted there.
    is_noted = read_if_there(ours.sidecar / TRANSACTIONS) == small.get(TRANSACTIONS)
    if not is_noted or (strict and _changed_at(ours.sidecar) != since):
        raise Changed("transactions were committed")
    # It may have dropped more since it was opened.
    head = read_if_there(ours.folder / HEAD) if segment_bytes is not None else None
    start = start if head is None else int.from_bytes(head[:8], "little")
    if start > end:
        raise Changed("all that was there was dropped")
    copier.make_folder(theirs.sidecar)
    copier.whole(ours.sidecar / FIRST, theirs.sidecar / FIRST, small.pop(FIRST, None))
    if segment_bytes is not None:
        _copy_segments(ours, theirs, (start, end), segment_bytes, copier)
        copier.whole(ours.folder / HEAD, theirs.folder / HEAD, head)
        copier.sync_names()
        for file in _segments(theirs.folder):
            if int(file.name[:20]) < start // segment_bytes:
                copier.remove(file)
    elif kind is Wal:
        copier.grow(ours.log, theirs.log, 0, end)
    else:
        header = header[: HEADER_BYTES[layout]]
        _copy_book(ours.log / "book.log", theirs.log / "book.log", header, end, copier)
    for name in BESIDE if kind is Book else ():
        copier.whole(ours.folder / name, theirs.folder / name, read_if_there(ours.folder / name))
    _copy_saved(ours, theirs, copier)
    # Not before all that it vouches for was read back.
    copied = _read_back(theirs.log, kind, before, end)
    mark = small.pop(LAST, None)
    for gone in _names(theirs.sidecar) - small.keys() - {FIRST, LAST}:
        copier.remove(theirs.sidecar / gone)
    for name, content in sorted(small.items()):
        copier.whole(ours.sidecar / name, theirs.sidecar / name, content)
    copier.sync_names()
    copier.whole(ours.sidecar / LAST, theirs.sidecar / LAST, mark)
    copier.sync_names()
    return copied


def _copy_saved(ours: _Files, theirs: _Files, copier: Copier) -> None:
    """What was cut off the log once, and saved."""
    for file in sorted(ours.folder.iterdir()):
        if SAVED.fullmatch(file.name) and (
            ours.log.is_dir() or file.name.startswith(ours.log.name)
        ):
            copier.grow(file, theirs.folder / file.name, 0, file.lstat().st_size)


def _segments(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if SEGMENT.fullmatch(file.name))


def _first_bytes(file: Path) -> bytes:
    """The first bytes of a book. Raises OSError."""
    with open_regular(file) as read:
        return read.read(max(HEADER_BYTES.values()))


def _last_in_slots(header: bytes) -> int:
    """The last event by the newest slot of a header; 0 if both are damaged."""
    newest: tuple[int, int] | None = None
    for at in range(0, len(header), SLOT_BYTES):
        slot = header[at : at + SLOT.size]
        if len(slot) == SLOT.size:
            _, _, _, last, seq, _, _, crc = SLOT.unpack(slot)
            # After the last number of all comes 0.
            is_newer = newest is None or 0 < (seq - newest[0]) % 2**64 < 2**63
            if crc == zlib.crc32(slot[:-4]) and is_newer:
                newest = seq, last
    return newest[1] if newest else 0


def _copy_segments(
    ours: _Files, theirs: _Files, extent: tuple[int, int], segment_bytes: int, copier: Copier
) -> None:
    start, end = extent
    last = end // segment_bytes
    for file in _segments(theirs.folder):
        if int(file.name[:20]) > last:
            copier.grow(ours.folder / f"{last:020}.wal", file, 0, 0)  # says what is wrong
    for index in range(start // segment_bytes, last + 1):
        name = f"{index:020}.wal"
        upto = min(segment_bytes, end - index * segment_bytes)
        if upto == 0 and not is_file(ours.folder / name):
            continue
        copier.grow(ours.folder / name, theirs.folder / name, 0, upto)


def _copy_book(source: Path, target: Path, header: bytes, end: int, copier: Copier) -> None:
    """The header of a book changes in place, a slot at a time: one of them is always whole."""
    if not is_file(target):
        copier.whole(source, target, header)
    elif len(header) < SLOT_BYTES:
        copier.overwrite(target, 0, header)
    copier.grow(source, target, len(header), max(end, len(header)))
    if len(header) > SLOT_BYTES:
        for at in range(0, len(header), SLOT_BYTES):
            copier.overwrite(target, at, header[at : at + SLOT_BYTES])


def _small(files: _Files) -> dict[str, bytes]:
    """The small files beside a log, once nothing is under way there."""
    wait_until_none(files.log, [files.sidecar / name for name in UNDER_WAY], files.sidecar)
    # The mark first: what it vouches for is in what is copied after it.
    names = sorted(_names(files.sidecar), key=lambda name: name != LAST)
    found = {name: read_beside(files.sidecar / name) for name in names}
    return {name: content for name, content in found.items() if content is not None}


def read_beside(file: Path) -> bytes | None:
    """What a small file of a sidecar holds; None if it is gone.

    And of an index that is too large for memory: opening the copy makes it again.
    """
    try:
        return read_if_there(file)
    except TooLargeError:
        if file.name != INDEX:
            raise
        return None


def wait_until_none(log: Path, intents: list[Path], sidecar: Path | None = None) -> None:
    """Wait until nothing is under way at a log: then none of these files is there.

    Where nobody holds the writer's lock in ``sidecar``, nobody brings it to its end.
    """
    until = time.monotonic() + WAITED_SECONDS
    alone = 0
    while any(is_file(intent) for intent in intents):
        # The writer may have begun, or ended, between the two looks.
        alone = alone + 1 if sidecar and writer_of(str(sidecar)).held is False else 0
        if alone == LOOKS or time.monotonic() > until:
            raise InvalidArgumentError(
                f"{log}: a commit or a cut has begun and does not end; open the log for writing "
                "once, which brings it to its end"
            )
        time.sleep(0.05)


def _changed_at(folder: Path) -> int | None:
    """When a folder last got, lost or renamed a file, ns from 1970; None without the folder."""
    return os.stat(folder).st_mtime_ns if is_folder(folder) else None


def _names(sidecar: Path) -> set[str]:
    """The small files in a log's sidecar that a backup has."""
    return COPIED.intersection(names_in(sidecar))


def _end_of(files: _Files, kind: type[Book] | type[Wal]) -> int | None:
    """The position after the last record of a backup that is there; None without one."""
    is_there = is_file(files.sidecar / LAST) and (kind is Wal or files.log.exists())
    if not is_there:
        return None
    with kind.open(files.log) as log:
        return log.last + 1 if isinstance(log, Book) else log.end


def _read_back(log: Path, kind: type[Book] | type[Wal], position: int | None, end: int) -> Copied:
    """Read the records of a backup from a position on, and compare their checksums.

    Raises `CorruptError` unless all up to byte ``end`` is intact.
    """
    records = 0
    with kind.open(log) as copy:
        damage = copy.recovery.damage
        if copy.recovery.verdict == "corrupt" or copy.end < end:
            reason = damage.reason if damage else f"the log was acknowledged up to byte {end}"
            raise CorruptError(
                f"{log}: the backup is damaged after byte {copy.end}, as the log may be: {reason}"
            )
        if copy.bounds is None:
            return Copied(None, 0, copy.end)
        first = copy.bounds[0]
        for part in copy.splits(PART_BYTES, first if position is None else max(first, position)):
            checked = part.check()
            if checked.damages:
                reason = checked.damages[0].reason
                raise CorruptError(f"{log}: the backup is damaged, as the log may be: {reason}")
            records += checked.records
        return Copied(copy.bounds, records, copy.end)
