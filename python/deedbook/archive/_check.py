"""Verification of an archive: every listed piece, read back by ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from deedbook._errors import MissingError
from deedbook.archive._manifest import PIECES, Piece, load
from deedbook.archive._store import TIMEOUT_SECONDS, Store


@dataclass(frozen=True)
class ArchiveReport:
    """The result of a verification."""

    url: str
    """The archive."""
    format: str
    """Format of the log."""
    ok: bool
    """Whether every listed piece is there with its bytes."""
    pieces: int
    """Listed pieces."""
    bytes: int
    """Bytes of these pieces."""
    records: int
    """Records of these pieces."""
    bounds: tuple[int, int] | None
    """The archive covers positions from the first to before the second; None without pieces."""
    damages: list[dict[str, Any]]
    """For each missing or damaged piece: ``name``, ``path`` in the log, ``reason``."""
    unlisted: list[str]
    """Objects of killed uploads; the next upload lists them."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def verify(
    url: str,
    *,
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[int, int], object] | None = None,
) -> ArchiveReport:
    """Read every piece of an archive, and compare lengths and checksums; changes nothing.

    ``timeout`` and ``progress`` as in `upload`. Raises `MissingError` without an archive,
    `CorruptError` for a damaged manifest, and `IoError` if the store fails.
    """
    store = Store(url, timeout)
    manifest, _ = load(store)
    sizes = dict(store.names(PIECES))
    pieces = manifest.pieces
    total, done = sum(piece.bytes for piece in pieces), 0
    damages = []

    def tell(read: int) -> None:
        if progress is not None:
            progress(done + read, total)

    for piece in pieces:
        reason = _damage(store, piece, sizes.pop(piece.name, None), tell)
        if reason is not None:
            damages.append({"name": piece.name, "path": piece.path, "reason": reason})
        done += piece.bytes
    return ArchiveReport(
        url=store.url,
        format=manifest.format,
        ok=not damages,
        pieces=len(pieces),
        bytes=total,
        records=sum(piece.records for piece in pieces),
        bounds=(pieces[0].begin, pieces[-1].end) if pieces else None,
        damages=damages,
        unlisted=sorted(sizes),
    )


def _damage(
    store: Store, piece: Piece, size: int | None, tell: Callable[[int], object]
) -> str | None:
    """The damage of a piece; None for an intact piece."""
    if size is None:
        return "missing"
    if size != piece.bytes:
        return f"{size} bytes, must be {piece.bytes}"
    found, read = hashlib.sha256(), 0
    try:
        for chunk in store.chunks(piece.name, size):
            found.update(chunk)
            read += len(chunk)
            tell(read)
    except MissingError:
        return "missing"
    if found.hexdigest() != piece.sha256:
        return f"SHA-256 {found.hexdigest()}, must be {piece.sha256}"
    return None
