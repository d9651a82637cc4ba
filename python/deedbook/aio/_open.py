"""`deedbook.aio.open`: open the log at a path, of any format, for asyncio."""

from __future__ import annotations

from os import PathLike
from typing import Any, Final, Literal

from deedbook._formats import find
from deedbook._formats import open as open_plain
from deedbook.aio._ledger import AsyncLedger
from deedbook.aio._log import AsyncBook, AsyncPier, AsyncWal
from deedbook.aio._nostr import AsyncEventStore

_Handle = AsyncBook | AsyncPier | AsyncWal | AsyncLedger | AsyncEventStore
_TWINS: Final[dict[str, Any]] = {
    "book": AsyncBook,
    "pier": AsyncPier,
    "wal": AsyncWal,
    "ledger": AsyncLedger,
    "nostr": AsyncEventStore,
}


def open(
    path: str | bytes | PathLike[str] | PathLike[bytes],
    mode: Literal["r", "a", "x"] = "r",
    *,
    format: Literal["book", "pier", "wal", "ledger", "nostr"] | None = None,
    **options: Any,
) -> _Handle:
    """Open the log at a path, of any format, as `deedbook.open` does; at once.

    Raises the errors of `deedbook.open`.
    """
    found = find(path, **options)
    name = format or (None if found is None else found.format.name)
    if name not in _TWINS:
        open_plain(path, mode, format=name, **options)  # says what is wrong
    opened: _Handle = _TWINS[name or ""].open(path, mode, **options)
    return opened
