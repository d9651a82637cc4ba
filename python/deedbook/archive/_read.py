"""Reading an archive: the pieces of a range come into a temporary log, which the core reads.

A WAL comes in windows between entries of the index, a pier by epochs, a ledger by files. So damage
has one judge, and a long archive needs the space of one window or one piece.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from deedbook._core import Book, Ledger, Pier, Wal, _wal_head
from deedbook._errors import CorruptError, Error, InvalidArgumentError, OutOfRangeError
from deedbook._system.regular import create_new
from deedbook.archive._logs.source import check_log, open_source
from deedbook.archive._manifest import Manifest, Piece, load
from deedbook.archive._restore import place_of, unfinished, write_piece
from deedbook.archive._store import RANGE_BYTES, TIMEOUT_SECONDS, Store

_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_WINDOW_BYTES: Final = 8 << 20
"""Bytes of a WAL in one window, about."""
_PIECES_MAX: Final = 64
"""Files of a ledger in one window."""


def open(
    url: str, *, log: _Path | None = None, base: str | None = None, timeout: float = TIMEOUT_SECONDS
) -> Archive:
    """Open the archive at a URL for reading; with ``log``, the archive and the log as one log.

    >>> import deedbook, pathlib
    >>> url = pathlib.Path("store").absolute().as_uri()
    >>> with deedbook.Wal.create("wal", segment_bytes=4096) as wal:
    ...     _ = wal.append_many(b"%d" % number * 100 for number in range(100))
    >>> _ = deedbook.archive.upload("wal", url)
    >>> [record.payload[:2] for record in deedbook.archive.open(url).iter(108, 324)]
    [b'11', b'22']
    >>> len(list(deedbook.archive.open(url, log="wal").payloads()))
    100

    ``base`` and ``timeout`` as in `upload`. Raises `MissingError` without an archive,
    `CorruptError` for a damaged manifest, `NotALogError` if ``log`` is not the log of the archive,
    and `IoError` if the store fails.
    """
    store = Store(url, timeout)
    archive = Archive(store, load(store)[0], None if log is None else (log, base))
    if log is not None:
        with archive._live():
            pass
    return archive


class Archive:
    """The records of an archive, as the manifest lists them at the opening.

    Positions are those of the log: LSNs, events, or for a ledger ``(file, record)``.
    """

    def __init__(
        self, store: Store, manifest: Manifest, log: tuple[_Path, str | None] | None
    ) -> None:
        self._store, self._manifest, self._log = store, manifest, log
        self._pieces = manifest.pieces

    @property
    def url(self) -> str:
        """The archive."""
        return self._store.url

    @property
    def format(self) -> str:
        """``"wal"``, ``"pier"`` or ``"ledger"``."""
        return self._manifest.format

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The first position, and the position after the last whole record, without the log.

        For a ledger, numbers of files. None without pieces.
        """
        if not self._pieces:
            return None
        first = self._manifest.facts["head"] if self.format == "wal" else self._pieces[0].begin
        return first, self._end()

    def iter(self, start: Any = None, stop: Any = None) -> Iterator[Any]:
        """The records from position ``start`` to before ``stop``; checksums are compared.

        The records have the types of the log: `Record`, `Deed` or `LedgerRecord`. A ``stop`` after
        the end is the end. Raises `OutOfRangeError` for a start before the first record or within a
        record, `CorruptError` for damage, and `IoError` if the store fails.
        """
        if self.format == "ledger":
            yield from self._ledger(start, stop)
            return
        bounds = self.bounds
        if bounds is None and self._log is None:
            return
        with ExitStack() as stack:
            live: Any = None if self._log is None else stack.enter_context(self._live())
            border = self._end() if live is None else _first(live)
            if bounds is not None:
                if border > bounds[1]:
                    raise OutOfRangeError(
                        f"{self.url}: the archive ends at {bounds[1]}, the log begins at {border}"
                    )
                begin = bounds[0] if start is None else start
                if begin < bounds[0]:
                    raise OutOfRangeError(f"{self.url}: begins at {bounds[0]}, not at {begin}")
                read = self._wal if self.format == "wal" else self._pier
                yield from read(begin, border if stop is None else min(stop, border))
            if live is not None and (stop is None or stop > border):
                yield from live.iter(border if start is None else max(start, border), stop)

    def payloads(self, start: Any = None, stop: Any = None) -> Iterator[bytes]:
        """Only the payloads of the same records."""
        return (record.payload for record in self.iter(start, stop))

    def read(self, position: Any) -> Any:
        """The record at a position. Raises `OutOfRangeError`, and as `iter`."""
        for record in self.iter(position):
            if record.position == position:
                return record
            break
        raise OutOfRangeError(f"{self.url}: no record at {position}")

    def _end(self) -> int:
        """The position after the last whole record."""
        last = unfinished(self._pieces)
        return (self._pieces[-1].end if self._pieces else 0) if last is None else last

    @contextmanager
    def _live(self) -> Iterator[Any]:
        """The log, opened. Raises `NotALogError` if the log is not the log of the archive."""
        assert self._log is not None
        with open_source(*self._log) as (log, source):
            check_log(self._store, self._manifest, source)
            yield log

    def _wal(self, start: int, stop: int) -> Iterator[Any]:
        """Records of a WAL, by windows between records."""
        borders = [entry[0] for piece in self._pieces for entry in piece.index] + [self._end()]
        at = max(bisect_right(borders, start) - 1, 0)
        while at < len(borders) - 1 and borders[at] < stop:
            after = bisect_right(borders, borders[at] + _WINDOW_BYTES, lo=at + 1) - 1
            after = max(min(after, bisect_left(borders, stop)), at + 1)
            begin, end = borders[at], borders[after]
            with self._temporary() as folder:
                self._write_window(folder, begin, end)
                facts = self._manifest.facts
                with Wal.open(
                    folder,
                    segment_bytes=facts["segment_bytes"],
                    record_bytes_max=facts["record_bytes_max"],
                ) as wal:
                    yield from wal.iter(max(start, begin), min(stop, end))
            at = after

    def _write_window(self, folder: Path, begin: int, end: int) -> None:
        """The segments with the bytes ``begin..end``; the rest of them is a hole."""
        for piece in self._pieces:
            first, after = max(begin, piece.begin), min(end, piece.end)
            if first < after:
                with create_new(place_of(folder, piece.path)) as file:
                    for at in range(first, after, RANGE_BYTES):
                        upto = min(at + RANGE_BYTES, after)
                        data = self._store.range(piece.name, at - piece.begin, upto - piece.begin)
                        if len(data) != upto - at:
                            raise self._damaged(piece, f"ends before byte {upto - piece.begin}")
                        file.seek(at - piece.begin)
                        file.write(data)
        if begin:
            (folder / "head").write_bytes(_wal_head(begin))

    def _pier(self, start: int, stop: int) -> Iterator[Any]:
        for piece in self._pieces:
            if piece.end > start and piece.begin < stop:
                with self._temporary() as folder:
                    file = write_piece(self._store, piece, folder)[0]
                    with Book.open(file.parent) as book:
                        yield from book.iter(max(start, piece.begin), min(stop, piece.end))

    def _ledger(self, start: Any, stop: Any) -> Iterator[Any]:
        """Records of a ledger's files in the order of their numbers, archived or not."""
        first, after = _place(start), _place(stop)
        waiting: list[Piece] = []
        with ExitStack() as stack:
            live: Any = None if self._log is None else stack.enter_context(self._live())
            here = set() if live is None else {f.index for f in live.files if not f.active}
            there = {piece.begin: piece for piece in self._pieces}
            for number in sorted(here | set(there)):
                if first is not None and number < first[0]:
                    continue
                if after is not None and (number, 0) >= after:
                    break
                if number in there:
                    waiting.append(there[number])
                if number not in there or len(waiting) == _PIECES_MAX:
                    yield from self._files(waiting, first, after)
                    waiting = []
                if number not in there:
                    begin, end = (number, 0), (number + 1, 0)
                    begin = begin if first is None else max(begin, first)
                    yield from live.iter(begin, end if after is None else min(end, after))
            yield from self._files(waiting, first, after)

    def _files(
        self, pieces: list[Piece], first: tuple[int, int] | None, after: tuple[int, int] | None
    ) -> Iterator[Any]:
        if not pieces:
            return
        with self._temporary() as folder:
            for piece in pieces:
                write_piece(self._store, piece, folder)
            with Ledger.open(folder, base=self._manifest.facts["base"]) as ledger:
                begin = first if first is not None and first[0] == pieces[0].begin else None
                end = after if after is not None and after[0] <= pieces[-1].begin else None
                yield from ledger.iter(begin, end)

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        """A directory for a part of the log; errors name the archive in its place."""
        with tempfile.TemporaryDirectory(prefix="deedbook-archive-") as folder:
            try:
                yield Path(folder)
            except Error as error:
                if folder not in str(error):
                    raise
                named = type(error)(str(error).replace(folder, self.url))
                named.format, named.path = error.format, self.url
                named.offset = error.offset
                raise named from None

    def _damaged(self, piece: Piece, reason: str) -> CorruptError:
        place = self._store.where(piece.name)
        error = CorruptError(f"{place}: {reason}")
        error.path, error.reason = place, reason
        return error


def _first(live: Wal | Pier) -> int:
    """The first position of a log, or the first position to come."""
    if isinstance(live, Wal):
        return live.head
    return live.last + 1 if live.bounds is None else live.bounds[0]


def _place(position: Any) -> tuple[int, int] | None:
    """A position in a ledger; a number is the beginning of a file."""
    if position is None:
        return None
    if isinstance(position, int):
        return position, 0
    try:
        file, record = position
        return int(file), int(record)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"position {position!r}, must be (file, record)") from None
