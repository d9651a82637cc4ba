"""Reading an archive by ranges, alone or with the live log; `_windows` fetches the pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

from deedbook._core import Wal
from deedbook._errors import InvalidArgumentError, OutOfRangeError
from deedbook.archive._logs.source import check_log, open_source
from deedbook.archive._manifest import Manifest, corrupt, load
from deedbook.archive._store import TIMEOUT_SECONDS, Store
from deedbook.archive._windows import (
    WINDOW_BYTES,
    Window,
    ahead,
    fetch,
    named,
    opened,
    whole_end,
    windows,
)

_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


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
        with live_log(archive):
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
        pieces = self._manifest.pieces
        if not pieces:
            return None
        first = self._manifest.facts["head"] if self.format == "wal" else pieces[0].begin
        return first, whole_end(pieces)

    def iter(self, start: Any = None, stop: Any = None) -> Iterator[Any]:
        """The records from position ``start`` to before ``stop``; checksums are compared.

        The records have the types of the log: `Record`, `Deed` or `LedgerRecord`. A ``stop`` after
        the end is the end. Raises `OutOfRangeError` for a start before the first record or within a
        record, `CorruptError` for damage, and `IoError` if the store fails.
        """
        return self._walk("iter", start, stop)

    def payloads(self, start: Any = None, stop: Any = None) -> Iterator[bytes]:
        """Only the payloads of the same records."""
        return self._walk("payloads", start, stop)

    def read(self, position: Any) -> Any:
        """The record at a position. Raises `OutOfRangeError`, and as `iter`."""
        for record in self.iter(position):
            if record.position == position:
                return record
            break
        raise OutOfRangeError(f"{self.url}: no record at {position}")

    def _walk(self, verb: str, start: Any, stop: Any) -> Iterator[Any]:
        """The results of a verb of the log, for each record of a range."""
        with live_log(self) as live:
            if self.format == "ledger":
                yield from self._ledger(verb, live, _place(start), _place(stop))
                return
            border = border_of(self, live)
            last = border if stop is None or stop > border else stop
            found = windows_of(self, start, last, WINDOW_BYTES)
            yield from self._records(verb, found, start, last)
            if live is not None and (stop is None or stop > border):
                begin = border if start is None else max(start, border)
                yield from getattr(live, verb)(begin, stop)

    def _records(self, verb: str, found: Iterator[Window], start: Any, stop: Any) -> Iterator[Any]:
        """The records of windows; the next window comes during the reading."""
        manifest = self._manifest
        for window, wait in ahead(found, partial(fetch, self._store, manifest), 0):
            begin: Any = window.begin
            end: Any = window.end
            if self.format == "ledger":
                begin, end = (begin, 0), (end, 0)
            begin = begin if start is None else max(start, begin)
            end = end if stop is None else min(stop, end)
            with (
                wait() as folder,
                named(folder, self.url),
                opened(manifest, window, folder) as log,
            ):
                yield from getattr(log, verb)(begin, end)
                if isinstance(log, Wal) and log.end < end:  # damage, for the core a torn end
                    damage = log.recovery.damage
                    reason = f"ends at {log.end}, must reach {end}"
                    raise corrupt(self.url, reason if damage is None else damage.reason)

    def _ledger(
        self, verb: str, live: Any, first: tuple[int, int] | None, after: tuple[int, int] | None
    ) -> Iterator[Any]:
        """Records of a ledger's files in the order of their numbers, archived or not."""
        here = set() if live is None else {file.index for file in live.files if not file.active}
        there = {piece.begin for piece in self._manifest.pieces}
        for archived, run in groupby(sorted(here | there), there.__contains__):
            files = list(run)
            begin = (files[0], 0) if first is None else max(first, (files[0], 0))
            end = (files[-1] + 1, 0) if after is None else min(after, (files[-1] + 1, 0))
            if begin < end and archived:
                found = windows_of(self, begin[0], end[0] + (end[1] > 0), WINDOW_BYTES)
                yield from self._records(verb, found, first, after)
            elif begin < end:
                yield from getattr(live, verb)(begin, end)


@contextmanager
def live_log(archive: Archive) -> Iterator[Any]:
    """The log, opened; None without one. Raises `NotALogError` for a log of another archive."""
    if archive._log is None:
        yield None
        return
    with open_source(*archive._log) as (log, source):
        check_log(archive._store, archive._manifest, source)
        yield log


def border_of(archive: Archive, live: Any) -> int:
    """The position at which the log goes on after the archive. Raises `OutOfRangeError`."""
    bounds = archive.bounds
    if live is None:
        return 0 if bounds is None else bounds[1]
    if isinstance(live, Wal):
        first = live.head
    else:
        first = live.last + 1 if live.bounds is None else live.bounds[0]
    if bounds is not None and first > bounds[1]:
        why = f"the archive ends at {bounds[1]}, the log begins at {first}"
        raise OutOfRangeError(f"{archive.url}: {why}")
    return first


def windows_of(
    archive: Archive, start: int | None, stop: int | None, size: int
) -> Iterator[Window]:
    """The windows of a range; none without pieces. Raises `OutOfRangeError`."""
    bounds = archive.bounds
    if bounds is not None and archive.format != "ledger":
        start = bounds[0] if start is None else start
        if start < bounds[0]:
            raise OutOfRangeError(f"{archive.url}: begins at {bounds[0]}, not at {start}")
    return windows(archive._manifest, start, stop, size)


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
