"""Uploads: every new sealed file of a log goes to its archive, once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from deedbook._core import EventStore, Ledger, Pier, Wal
from deedbook._errors import CorruptError, Error, MissingError, UnsupportedError
from deedbook._formats import open as open_log
from deedbook._system.regular import open_regular
from deedbook.archive._ledger import LedgerSource
from deedbook.archive._manifest import Manifest, Piece, check_same, commit, load, other_log
from deedbook.archive._pier import PierSource
from deedbook.archive._sealed import Sealed, Source
from deedbook.archive._store import TIMEOUT_SECONDS, Store
from deedbook.archive._wal import WalSource

_BATCH_PIECES: Final = 16
_BATCH_BYTES: Final = 1 << 30
"""After so many new pieces, or bytes, the manifest takes them."""
_WHOLE_BYTES_MAX: Final = 64 << 20
"""A longer file goes up in parts, so no request takes long. Parts know no condition, but an object
of the same name has the same bytes."""


@dataclass(frozen=True)
class UploadReport:
    """The result of an upload."""

    url: str
    """The archive."""
    format: str
    """Format of the log."""
    sent: int
    """Pieces that the upload sent."""
    sent_bytes: int
    """Bytes of these pieces."""
    adopted: int
    """Pieces that an earlier, killed upload had sent: compared, and listed."""
    pieces: int
    """Pieces in the archive."""
    bytes: int
    """Bytes of all pieces."""
    records: int
    """Records of all pieces."""
    bounds: tuple[int, int] | None
    """The archive covers positions from the first to before the second; None without pieces."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def upload(
    log: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    url: str,
    *,
    consumer: str | None = "archive",
    base: str | None = None,
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[int, int], object] | None = None,
) -> UploadReport:
    """Send every sealed file of a log that the archive at ``url`` lacks.

    Another process may write the log. Sealed are the segments of a WAL before the durable end, the
    epochs of a pier but the last, and the finished files of a ledger. The upload checks each record
    before it sends the file, and lists the file in the archive's manifest after the store has it.
    Killed at any step, the next upload goes on: it compares a file that is there and not listed.

    ``consumer``: the named consumer of a WAL or a pier that keeps everything unarchived, and the
    last archived file, by which the next upload recognizes the log; None registers none. A log with
    two archives needs two names. ``base``: the ledger, if several share the directory.
    ``timeout``: seconds for a request and the repeats. ``progress`` gets the bytes done and the
    total; an error from ``progress`` ends the upload.

    Raises `NotALogError` if the archive holds another log, `CorruptError` for a damaged log,
    `UnsupportedError` for a log without sealed files, `InvalidArgumentError` for a URL, and
    `IoError` if the store fails.
    """
    store = Store(url, timeout)
    with open_source(log, base) as (_, source):
        mine = Manifest(source.format, source.facts)
        try:
            manifest, _ = load(store)
        except MissingError:
            manifest = mine
        new = check_log(store, manifest, source)
        if consumer is not None:  # from now on, the log drops nothing that is not archived
            source.hold(consumer, list(manifest.pieces))
        total = sum(os.path.getsize(one.file) for one in new)
        done = sent = sent_bytes = adopted = 0
        waiting: list[Piece] = []
        after = manifest.pieces[-1] if manifest.pieces else None
        for one, bare in source.pieces(new, after):
            try:
                piece, was_sent = _send(store, one, bare)
            except FileNotFoundError as error:
                if source.is_contiguous or isinstance(error, Error):
                    raise
                continue  # a sender removed the file
            sent += was_sent
            sent_bytes += piece.bytes * was_sent
            adopted += not was_sent
            done += piece.bytes
            waiting.append(piece)
            if len(waiting) == _BATCH_PIECES or sum(each.bytes for each in waiting) >= _BATCH_BYTES:
                manifest, waiting = commit(store, manifest, waiting), []
            if progress is not None:
                progress(done, total)
        if waiting:
            manifest = commit(store, manifest, waiting)
        if consumer is not None and new:
            source.hold(consumer, list(manifest.pieces))
    pieces = manifest.pieces
    return UploadReport(
        url=store.url,
        format=manifest.format,
        sent=sent,
        sent_bytes=sent_bytes,
        adopted=adopted,
        pieces=len(pieces),
        bytes=sum(piece.bytes for piece in pieces),
        records=sum(piece.records for piece in pieces),
        bounds=(pieces[0].begin, pieces[-1].end) if pieces else None,
    )


def before_drop(
    url: str, *, timeout: float = TIMEOUT_SECONDS
) -> Callable[[int, str | os.PathLike[str]], None]:
    """A function for ``archive=`` of `deedbook.Wal.open`: no segment is dropped unarchived.

    >>> import deedbook, pathlib
    >>> to = deedbook.archive.before_drop(pathlib.Path("archive").absolute().as_uri())
    >>> with deedbook.Wal.create("wal", segment_bytes=4096, archive=to) as wal:
    ...     _ = wal.append_many(bytes(1000) for _ in range(20))
    ...     wal.sync()
    ...     wal.retain(max_bytes=0).records, wal.head
    (17, 17136)

    The drop waits for the upload of all sealed segments. If the upload fails, the log drops
    nothing: `retain` raises, and a writer with rules for retention reports the error to the logger
    ``deedbook``, continues, and tries again after the next segment.
    """

    def archive(number: int, path: str | os.PathLike[str]) -> None:
        # The call for the first segment uploads all; the others find nothing to send. A consumer
        # would wait for this drop.
        upload(Path(path).parent, url, consumer=None, timeout=timeout)

    return archive


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
        if _sha256(one.file) != there[one.path].sha256:
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


def _send(store: Store, one: Sealed, bare: Piece) -> tuple[Piece, bool]:
    """Store a file unless the store has it; return the piece, and whether it was sent."""
    size = os.path.getsize(one.file)
    if size != bare.bytes:
        error = CorruptError(f"{one.file}: {size} bytes, must be {bare.bytes}")
        error.path, error.reason = str(one.file), "a sealed file has another size"
        raise error
    if size > _WHOLE_BYTES_MAX:
        piece = replace(bare, sha256=_sha256(one.file))
        if _is_there(store, piece):
            return piece, False
        store.put(piece.name, one.file)
        return piece, True
    with open_regular(one.file) as file:
        data = file.read()
    piece = replace(bare, sha256=hashlib.sha256(data).hexdigest())
    if _is_there(store, piece):
        return piece, False
    if not store.put_new(piece.name, data) and not _is_there(store, piece):
        # The object is no piece, though its name says so, and no manifest lists it.
        store.put(piece.name, data)
    return piece, True


def _is_there(store: Store, piece: Piece) -> bool:
    """Whether the store has exactly the bytes that a piece's name says."""
    size = store.size(piece.name)
    return size == piece.bytes and store.sha256(piece.name, size) == piece.sha256


def _sha256(file: Path) -> str:
    found = hashlib.sha256()
    with open_regular(file) as opened:
        while chunk := opened.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()
