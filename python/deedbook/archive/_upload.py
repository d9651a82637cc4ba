"""Uploads: every new sealed file of a log goes to its archive, once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from deedbook._errors import CorruptError, Error, MissingError
from deedbook._system.regular import open_regular
from deedbook.archive._catalog import name_below, publish
from deedbook.archive._logs.sealed import Sealed
from deedbook.archive._logs.source import check_log, open_source, sha256_of
from deedbook.archive._manifest import Manifest, Piece, commit, load
from deedbook.archive._store import TIMEOUT_SECONDS, Store, begin_call

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
    entry: int | None
    """The archive's last entry in the catalog; None without a catalog."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def upload(
    log: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    url: str,
    *,
    consumer: str | None = "archive",
    base: str | None = None,
    catalog: str | None = None,
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
    ``catalog``: a URL above ``url``; the `Catalog` there gets an entry with the new records, and
    with the records of earlier uploads without a catalog. ``timeout``: seconds for a request and
    the repeats. ``progress`` gets the bytes done and the total; an error from ``progress`` ends the
    upload.

    Raises `NotALogError` if the archive holds another log, `CorruptError` for a damaged log,
    `UnsupportedError` for a log without sealed files, `InvalidArgumentError` for a URL, and
    `IoError` if the store fails.
    """
    store = Store(url, timeout, creates=True)
    if catalog is not None:
        name_below(store, Store(catalog, timeout, creates=True).url)
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
        for wait in _ahead(store, source.pieces(new, after)):
            try:
                piece, was_sent = wait()
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
    entry = None
    if catalog is not None and manifest.pieces:
        entry = publish(store, catalog, timeout)
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
        entry=entry,
    )


def before_drop(
    url: str, *, catalog: str | None = None, timeout: float = TIMEOUT_SECONDS
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
        upload(Path(path).parent, url, consumer=None, catalog=catalog, timeout=timeout)

    return archive


def _ahead(
    store: Store, pieces: Iterable[tuple[Sealed, Piece]]
) -> Iterator[Callable[[], tuple[Piece, bool]]]:
    """Functions that wait for the sent pieces, in order; the next piece is read meanwhile."""
    before: Callable[[], tuple[Piece, bool]] | None = None
    for one, bare in pieces:
        going = begin_call(partial(_send, store, one, bare))
        if before is not None:
            yield before
        before = going
    if before is not None:
        yield before


def _send(store: Store, one: Sealed, bare: Piece) -> tuple[Piece, bool]:
    """Store a file unless the store has it; return the piece, and whether it was sent."""
    size = os.path.getsize(one.file)
    if size != bare.bytes:
        error = CorruptError(f"{one.file}: {size} bytes, must be {bare.bytes}")
        error.path, error.reason = str(one.file), "a sealed file has another size"
        raise error
    if size > _WHOLE_BYTES_MAX:
        piece = replace(bare, sha256=sha256_of(one.file))
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
