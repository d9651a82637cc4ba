"""Windows of an archive: a reader fetches one into a temporary directory, and the core reads it.

A WAL is cut between entries of the index, a pier at epochs, a ledger at files. So damage has one
judge, and a long archive needs the space of three windows: two come during the reading of one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import weakref
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from deedbook._core import Book, Ledger, Split, Wal, _wal_head
from deedbook._errors import CorruptError, Error
from deedbook._system.regular import create_new
from deedbook.archive._manifest import Manifest, Piece, corrupt
from deedbook.archive._restore import place_of, unfinished, write_piece
from deedbook.archive._store import RANGE_BYTES, Store, begin_call

Part = TypeVar("Part")
WINDOW_BYTES: Final = 16 << 20
"""Bytes of a WAL in one window, about."""


_LOCK: Final = threading.Lock()
_folders: set[str] = set()
"""The directories of this process."""
_ended = False

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_folders.clear)  # the parent still reads them


@atexit.register
def _end() -> None:
    """Remove the directories that threads still fill."""
    global _ended
    with _LOCK:
        _ended = True
    for name in list(_folders):
        _remove(name)


def _remove(name: str) -> None:
    if name not in _folders:
        return
    _folders.discard(name)
    gone = f"{name}.gone"
    try:
        os.rename(name, gone)  # a thread creates no file below a name that is gone
    except OSError:
        gone = name
    shutil.rmtree(gone, ignore_errors=True)


class Folder:
    """A temporary directory; goes with the last reference, which a thread may hold."""

    def __init__(self) -> None:
        with _LOCK:
            if _ended:
                raise RuntimeError("the process ends")
            self.name = tempfile.mkdtemp(prefix="deedbook-archive-")
            _folders.add(self.name)
        self._remove = weakref.finalize(self, _remove, self.name)
        self._remove.atexit = False

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *error: object) -> None:
        self._remove()


class Window(NamedTuple):
    """A range of an archive: positions, and the pieces with their bytes."""

    begin: int
    end: int
    pieces: tuple[Piece, ...]
    bytes: int
    """The bytes to fetch."""


AHEAD: Final = 2
"""Windows to fetch ahead."""


def whole_end(pieces: tuple[Piece, ...]) -> int:
    """The position after the last whole record; 0 without pieces."""
    last = unfinished(pieces)
    return (pieces[-1].end if pieces else 0) if last is None else last


def windows(manifest: Manifest, start: int | None, stop: int | None, size: int) -> Iterator[Window]:
    """The windows with the positions from ``start`` to before ``stop``; ``size`` is for a WAL."""
    pieces = manifest.pieces
    if manifest.format != "wal":
        for piece in pieces:
            if (start is None or piece.end > start) and (stop is None or piece.begin < stop):
                yield Window(piece.begin, piece.end, (_bare(piece),), piece.bytes)
        return
    borders = [entry[0] for piece in pieces for entry in piece.index]
    borders.append(whole_end(pieces))
    stop = borders[-1] if stop is None else stop
    if start is not None and start >= stop:
        return
    at = 0 if start is None else max(bisect_right(borders, start) - 1, 0)
    while at < len(borders) - 1 and borders[at] < stop:
        after = bisect_right(borders, borders[at] + size, lo=at + 1) - 1
        after = max(min(after, bisect_left(borders, stop)), at + 1)
        begin, end = borders[at], borders[after]
        first = bisect_right(pieces, begin, key=lambda piece: piece.end)
        last = bisect_left(pieces, end, lo=first, key=lambda piece: piece.begin)
        yield Window(begin, end, tuple(map(_bare, pieces[first:last])), end - begin)
        at = after


def _bare(piece: Piece) -> Piece:
    """A piece without the index, of which a reader has no use."""
    return Piece(**{**vars(piece), "index": []})


def fetch(store: Store, manifest: Manifest, window: Window) -> Folder:
    """The files of a window in a temporary directory. Raises as `Archive.iter`."""
    folder = Folder()
    for piece in window.pieces:
        if manifest.format == "wal":
            _write_range(store, piece, window, Path(folder.name))
        else:
            write_piece(store, piece, Path(folder.name))
    if manifest.format == "wal" and window.begin:
        Path(folder.name, "head").write_bytes(_wal_head(window.begin))
    return folder


def _write_range(store: Store, piece: Piece, window: Window, folder: Path) -> None:
    """The segment of a piece with the bytes in the window; the rest of the file is a hole."""
    first, after = max(window.begin, piece.begin), min(window.end, piece.end)
    with create_new(place_of(folder, piece.path)) as file:
        for at in range(first, after, RANGE_BYTES):
            upto = min(at + RANGE_BYTES, after)
            data = store.range(piece.name, at - piece.begin, upto - piece.begin)
            if len(data) != upto - at:
                reason = f"ends before byte {upto - piece.begin}"
                raise corrupt(store.where(piece.name), reason)
            file.seek(at - piece.begin)
            file.write(data)


def opened(manifest: Manifest, window: Window, folder: str) -> Wal | Book | Ledger:
    """The log of a fetched window."""
    facts = manifest.facts
    if manifest.format == "wal":
        limits = {name: facts[name] for name in ("segment_bytes", "record_bytes_max")}
        return Wal.open(folder, **limits)
    if manifest.format == "pier":
        return Book.open(Path(folder, window.pieces[0].path).parent)
    return Ledger.open(folder, base=facts["base"])


def splits(
    manifest: Manifest, window: Window, folder: str, start: int | None, stop: int | None
) -> list[Split]:
    """The parts of a fetched window. Raises `OutOfRangeError` for limits within a record."""
    if manifest.format != "wal" or (start, stop) != (window.begin, window.end):
        with opened(manifest, window, folder) as log:
            if isinstance(log, Ledger):
                return log.splits(1 << 62)
            found = log.splits(1 << 62, start, stop)
            if isinstance(log, Book):
                return found
    # To the reader of this part of a WAL, the end is no torn end.
    size = manifest.facts["segment_bytes"]
    return [Split("wal", folder, None, None, window.begin, window.end, segment_bytes=size)]


def ahead(
    parts: Iterable[Part], fetch: Callable[[Part], Folder], wanted: int = AHEAD
) -> Iterator[tuple[Part, Callable[[], Folder]]]:
    """Each part with a function that waits for the files.

    The next parts come meanwhile; with ``wanted`` 0 not before the reader asks for a second one.
    """
    coming: deque[tuple[Part, Callable[[], Folder]]] = deque()
    for part in parts:
        coming.append((part, begin_call(partial(fetch, part))))
        if len(coming) > wanted:
            yield coming.popleft()
            wanted = AHEAD
    while coming:
        yield coming.popleft()


@contextmanager
def named(folder: str, url: str) -> Iterator[None]:
    """Errors of a fetched log name the archive in place of the folder."""
    try:
        yield
    except Error as error:
        if folder not in str(error):
            raise
        made = type(error)(str(error).replace(folder, url))
        made.format, made.offset = error.format, error.offset
        made.path = None if error.path is None else error.path.replace(folder, url)
        if isinstance(error, CorruptError) and isinstance(made, CorruptError):
            made.next_intact = error.next_intact
            made.reason = None if error.reason is None else error.reason.replace(folder, url)
        raise made from None
