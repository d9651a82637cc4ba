"""Archives on the executors: a window is fetched into a temporary directory, and read as a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from deedbook import CorruptError
from deedbook.archive import TIMEOUT_SECONDS, Folder, Store, ahead, fetch, named, splits
from deedbook.spark._logs.format import Damaged, LogFormat, not_opened, read_piece
from deedbook.spark._logs.parts import Archived, Piece
from deedbook.spark._options.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["fetched", "read_archived"]


def fetched(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, Callable[[], Folder]]]:
    """Each piece with a function that waits for the files; the next files come meanwhile."""
    return ahead(pieces, _fetch)


def _fetch(piece: Piece) -> Any:
    if not isinstance(piece, Archived):
        return nullcontext()
    store = _store(piece.root)
    store = store.below(piece.log) if piece.log else store
    return fetch(store, piece.manifest, piece.window)


@cache
def _store(url: str) -> Store:
    """The connections of this process."""
    return Store(url, TIMEOUT_SECONDS)


def read_archived(
    log: LogFormat,
    piece: Archived,
    wait: Callable[[], Folder],
    columns: Sequence[str],
    options: ReadOptions,
) -> Iterator[pa.RecordBatch | Damaged]:
    """As `read_piece`. A file with a wrong checksum is as damaged as a log that does not open."""
    options = replace(options, start=piece.start, end=piece.stop)
    try:
        folder = wait()
    except CorruptError as error:
        for loss in not_opened(piece.path, error, options):
            yield from read_piece(log, loss, columns, options)
        return
    with folder as place, named(place, piece.url):
        for part in splits(piece.manifest, piece.window, place, piece.start, piece.stop):
            yield from read_piece(log, part, columns, options)
