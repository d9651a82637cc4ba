"""An open log as the source of an upload, and the proof that an archive belongs to the log."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deedbook._core import EventStore, Ledger, Pier, Wal
from deedbook._errors import UnsupportedError
from deedbook._formats import open as open_log
from deedbook._system.regular import open_regular
from deedbook.archive._logs.ledger import LedgerSource
from deedbook.archive._logs.pier import PierSource
from deedbook.archive._logs.sealed import Sealed, Source
from deedbook.archive._logs.wal import WalSource
from deedbook.archive._manifest import Manifest, check_same, other_log
from deedbook.archive._store import Store


@contextmanager
def open_source(
    log: str | bytes | os.PathLike[str] | os.PathLike[bytes], base: str | None
) -> Iterator[tuple[Wal | Pier | Ledger, Source]]:
    """The log, opened for reading. Raises `UnsupportedError` for a log without sealed files."""
    options: dict[str, Any] = {} if base is None else {"base": base}
    with open_log(log, **options) as opened:
        if isinstance(opened, Wal):
            yield opened, WalSource(opened)
        elif isinstance(opened, Pier):
            yield opened, PierSource(opened)
        elif isinstance(opened, Ledger):
            yield opened, LedgerSource(opened)
        else:
            is_store = isinstance(opened, EventStore)
            why = "an event store changes its files" if is_store else "a book is one file"
            raise UnsupportedError(
                f"{os.fsdecode(log)}: {why}, and only the sealed files of a WAL, a pier or a ledger"
                " go to an archive"
            )


def check_log(store: Store, manifest: Manifest, source: Source) -> list[Sealed]:
    """The sealed files that the archive lacks.

    Raises `NotALogError` if the archive belongs to another log.
    """
    check_same(store, manifest, Manifest(source.format, source.facts))
    sealed = source.sealed()
    there = {piece.path: piece for piece in manifest.pieces}
    both = [one for one in sealed if one.path in there]
    new = [one for one in sealed if one.path not in there]
    for one in both[:1] + both[-1:]:
        if sha256_of(one.file) != there[one.path].sha256:
            raise other_log(store, f"{one.path} has other bytes there")
    if there and not source.is_contiguous:
        last = manifest.pieces[-1]
        if not both and new and new[0].begin <= last.begin:
            raise other_log(store, f"it has {last.path}, and the log begins at {new[0].path}")
    elif there and not both:
        raise other_log(store, "no archived file is left in the log, to compare the two")
    elif there and both[-1].path != manifest.pieces[-1].path:
        raise other_log(store, f"it goes on after {both[-1].path}, the last sealed file of the log")
    return new


def sha256_of(file: Path) -> str:
    found = hashlib.sha256()
    with open_regular(file) as opened:
        while chunk := opened.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()
