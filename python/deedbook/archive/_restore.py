"""Restores: the files of an archive become a log again, byte for byte."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deedbook._core import _wal_head
from deedbook._errors import AlreadyExistsError, CorruptError
from deedbook._system.durable import sync_file, sync_folder, sync_folders
from deedbook._system.regular import below, create_new
from deedbook.archive._manifest import Manifest, Piece, corrupt, load
from deedbook.archive._store import TIMEOUT_SECONDS, Store


@dataclass(frozen=True)
class RestoreReport:
    """The result of a restore."""

    url: str
    """The archive."""
    path: str
    """The new log."""
    format: str
    """Format of the log."""
    files: int
    """Files written."""
    bytes: int
    """Bytes of the files."""
    records: int
    """Records of the files."""
    bounds: tuple[int, int] | None
    """The files cover positions from the first to before the second; None without pieces."""
    unfinished: int | None
    """The last record of a WAL, if its end was not archived: the log ends before it."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def restore(
    url: str,
    to: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[int, int], object] | None = None,
) -> RestoreReport:
    """Write the files of an archive to the new directory ``to``, durably.

    Every file has the bytes it had in the log, and each is compared with its checksum on the way.
    The directory appears once it is whole: a killed restore leaves ``.NAME.restoring-...`` next to
    it, which you can remove. Files are for their owner alone.

    ``timeout`` and ``progress`` as in `upload`. Raises `AlreadyExistsError` if there is anything at
    ``to``, `CorruptError` for a damaged piece, `MissingError` without an archive, and `IoError`.
    """
    target = Path(os.path.abspath(os.fsdecode(to)))
    _must_not_exist(target)
    store = Store(url, timeout)
    manifest, _ = load(store)
    pieces = manifest.pieces
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.restoring-"))
    try:
        written = write_files(store, manifest, made, progress)
        sync_folders(made, written)
        _must_not_exist(target)
        os.rename(made, target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return RestoreReport(
        url=store.url,
        path=str(target),
        format=manifest.format,
        files=len(written),
        bytes=sum(piece.bytes for piece in pieces),
        records=sum(piece.records for piece in pieces),
        bounds=(pieces[0].begin, pieces[-1].end) if pieces else None,
        unfinished=unfinished(pieces),
    )


def _must_not_exist(target: Path) -> None:
    if os.path.lexists(target):
        error = AlreadyExistsError(f"{target}: something is there; a restore replaces nothing")
        error.path = str(target)
        raise error


def unfinished(pieces: tuple[Piece, ...]) -> int | None:
    """The last record, if the end lies after the pieces; None without such a record."""
    if not pieces or pieces[-1].next == pieces[-1].end:
        return None
    begun = (piece.unfinished for piece in reversed(pieces))
    return next((lsn for lsn in begun if lsn is not None), None)


def write_files(
    store: Store,
    manifest: Manifest,
    folder: Path,
    progress: Callable[[int, int], object] | None = None,
) -> list[Path]:
    """Write all files of a manifest below a folder, synced. Raises `CorruptError`."""
    total, done = sum(piece.bytes for piece in manifest.pieces), 0
    written = []

    def tell(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for piece in manifest.pieces:
        written += write_piece(store, piece, folder, tell)
        for file in written[-1 - len(piece.beside) :]:
            sync_file(file)
    if manifest.format == "wal" and manifest.facts["head"]:
        written.append(_write(folder / "head", _wal_head(manifest.facts["head"])))
        sync_file(written[-1])
    return written


def write_piece(
    store: Store, piece: Piece, folder: Path, tell: Callable[[int], object] | None = None
) -> list[Path]:
    """Write the files of a piece below a folder, the log's file first. Raises `CorruptError`."""
    found = hashlib.sha256()
    file = place_of(folder, piece.path)
    with create_new(file) as opened:
        for chunk in store.chunks(piece.name, piece.bytes):
            opened.write(chunk)
            found.update(chunk)
            if tell is not None:
                tell(len(chunk))
    if found.hexdigest() != piece.sha256:
        reason = f"SHA-256 {found.hexdigest()}, must be {piece.sha256}"
        raise corrupt(store.where(piece.name), reason)
    beside = piece.beside.items()
    return [file, *(_write(place_of(file.parent, n), base64.b64decode(text)) for n, text in beside)]


def place_of(folder: Path, path: str) -> Path:
    """The file of a name from the manifest, which never leaves the folder."""
    try:
        file = folder
        for part in Path(path).parts[:-1]:
            file = below(file, part)
            file.mkdir(mode=0o700, exist_ok=True)
        return below(file, Path(path).name)
    except ValueError as error:
        raise CorruptError(f"the manifest names a file {path!r}: {error}") from None


def _write(file: Path, data: bytes) -> Path:
    with create_new(file) as opened:
        opened.write(data)
    return file
