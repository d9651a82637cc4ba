"""The sealed epochs of a pier: all but the last. A piece is an epoch's ``book.log``."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from deedbook._core import Pier
from deedbook._system.regular import read_small
from deedbook.archive._logs.sealed import INDEX_ENTRIES, Sealed, checked
from deedbook.archive._manifest import Piece

_BESIDE: Final = ("epoc.txt", "meta.bin")
"""Small files of an epoch."""
_SPLIT_BYTES_MIN: Final = 1 << 20


class PierSource:
    """An open pier, for an upload."""

    format = "pier"
    is_contiguous = True

    def __init__(self, pier: Pier) -> None:
        self._pier = pier

    @property
    def facts(self) -> dict[str, Any]:
        """Nothing more: the files know all."""
        return {}

    def sealed(self) -> list[Sealed]:
        """The epochs before the last, if every deed is durable."""
        durable = self._pier.durable_last or 0
        found = []
        for epoch in self._pier.epochs[:-1]:
            if epoch.bounds is None or epoch.bounds[1] > durable:
                break
            file = Path(epoch.path) / "book.log"
            path = Path(os.path.relpath(file, self._pier.path)).as_posix()
            found.append(Sealed(file, path, epoch.bounds[0], epoch.bounds[1] + 1))
        return found

    def pieces(self, new: list[Sealed], after: Piece | None) -> Iterator[tuple[Sealed, Piece]]:
        """Each epoch with its checked deeds. Raises `CorruptError`."""
        for epoch in new:
            length = os.path.getsize(epoch.file)
            step = max(length // INDEX_ENTRIES, _SPLIT_BYTES_MIN)
            splits = self._pier.splits(step, epoch.begin, epoch.end)
            index = [[split.ordinal or 0, checked(split), split.offset] for split in splits]
            yield (
                epoch,
                Piece(
                    path=epoch.path,
                    begin=epoch.begin,
                    end=epoch.end,
                    next=epoch.end,
                    first=epoch.begin,
                    unfinished=None,
                    records=epoch.end - epoch.begin,
                    bytes=length,
                    sha256="",
                    index=index,
                    beside=_beside(epoch.file.parent),
                ),
            )

    def hold(self, consumer: str, pieces: list[Piece]) -> None:
        """Let the pier keep the last archived epoch, and all that is not archived."""
        pier = self._pier
        first = pier.last + 1 if pier.bounds is None else pier.bounds[0]
        event = max(pieces[-1].begin if pieces else 0, first)
        if pier.consumers().get(consumer) != event:
            pier.set_consumer(consumer, event)


def _beside(folder: Path) -> dict[str, str]:
    found = {}
    for name in _BESIDE:
        try:
            found[name] = base64.b64encode(read_small(folder / name)).decode()
        except FileNotFoundError:
            continue
    return found
