"""The manifest of an archive: the log, and the pieces in order.

::

    URL/manifest.json                                    replaced by a conditional put
    URL/pieces/BEGIN-RECORDS-BYTES-SHA256                written once, never changed

A piece counts once the manifest lists the piece. A piece outside the manifest is the rest of a
killed upload: the next upload compares the bytes, and lists the piece.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Final

from deedbook._errors import CorruptError, MissingError, NotALogError
from deedbook._system.regular import parse_json
from deedbook.archive._store import Conflict, Store, Version

MANIFEST: Final = "manifest.json"
PIECES: Final = "pieces"
_KIND: Final = "deedbook_archive"
_VERSION: Final = 1
_FACTS: Final[dict[str, dict[str, type]]] = {
    "wal": {"segment_bytes": int, "record_bytes_max": int, "head": int},
    "pier": {},
    "ledger": {"base": str},
}
"""The facts of each format."""
_NUMBERS_END: Final = 1 << 63
"""Above every position and size."""
_SHA256: Final = re.compile("[0-9a-f]{64}")
_TRIES: Final = 20
"""Other archives of the same log that may come in between, before an upload gives up."""


@dataclass(frozen=True)
class Piece:
    """A sealed file of a log. Positions are LSNs, events, or numbers of a ledger's files."""

    path: str
    """The file, below the log's directory."""
    begin: int
    """The first position in the file."""
    end: int
    """The position after the last position in the file."""
    next: int
    """The first record at or after ``end``; above ``end`` if a record goes on in the next file."""
    first: int | None
    """The first record that begins in the file; None without one."""
    unfinished: int | None
    """The record that begins in the file and ends in a later one."""
    records: int
    """Records that begin in the file."""
    bytes: int
    """Length of the file."""
    sha256: str
    """Checksum of the file."""
    index: list[list[int]] = field(default_factory=list)
    """Some records: position, number of records up to the next entry, byte in the file."""
    beside: dict[str, str] = field(default_factory=dict)
    """Small files next to the file: their bytes by name, in base64."""
    entry: int | None = field(default=None, compare=False)
    """The entry of the catalog with the piece; the entry of the last number may not exist yet."""

    @property
    def name(self) -> str:
        """The name of the object."""
        return f"{PIECES}/{self.begin:020d}-{self.records}-{self.bytes}-{self.sha256}"


_FIELDS: Final = tuple(each.name for each in fields(Piece))


@dataclass(frozen=True)
class Manifest:
    """The log of an archive, and its pieces in the order of their positions."""

    format: str
    """``"wal"``, ``"pier"`` or ``"ledger"``."""
    facts: dict[str, Any]
    """Facts that no file has: sizes, the head, the base."""
    pieces: tuple[Piece, ...] = ()

    def encode(self) -> bytes:
        """The bytes of the object, with their own checksum."""
        return with_checksum({_KIND: _VERSION, **asdict(self)})

    def with_pieces(self, new: Iterable[Piece], store: Store) -> Manifest:
        """The manifest with further pieces. Raises `NotALogError` if they do not fit."""
        here = {piece.path: piece for piece in self.pieces}
        for piece in new:
            there = here.setdefault(piece.path, piece)
            if there != piece:
                raise other_log(store, f"{piece.path} has other bytes there")
        pieces = sorted(here.values(), key=lambda piece: piece.begin)
        if self.format != "ledger":  # a ledger drops sent files in any order
            for before, after in pairwise(pieces):
                if before.end != after.begin:
                    raise other_log(
                        store, f"it ends at {before.end}, and the log goes on at {after.begin}"
                    )
        return replace(self, pieces=tuple(pieces))


def other_log(store: Store, why: str) -> NotALogError:
    """The error for an archive that holds another log, or another course of the same log."""
    error = NotALogError(f"{store.url}: the archive holds another log: {why}")
    error.path = store.url
    return error


def load(store: Store) -> tuple[Manifest, Version]:
    """The manifest, and its version for a replacement.

    Raises `MissingError` without one, and `CorruptError` for other bytes.
    """
    try:
        data, version = store.get(MANIFEST)
    except MissingError:
        error = MissingError(f"{store.url}: no archive, or no bucket, at this URL")
        error.path = store.url
        raise error from None
    place = store.where(MANIFEST)
    return manifest_of(place, parsed(place, data, _KIND)), version


def commit(store: Store, manifest: Manifest, new: list[Piece]) -> Manifest:
    """Add pieces to the stored manifest, whatever another upload stored in between.

    Raises `NotALogError` if the stored manifest is another log's, or the pieces do not fit.
    """
    for _ in range(_TRIES):
        version: Version | None = None
        try:
            stored, version = load(store)
        except MissingError:
            stored = replace(manifest, pieces=())
        check_same(store, stored, manifest)
        made = stored.with_pieces(new, store)
        if version is not None and made == stored:
            return made  # an earlier put succeeded, and its answer was lost
        try:
            store.replace(MANIFEST, made.encode(), version)
        except Conflict:
            continue
        return made
    raise other_log(store, f"{_TRIES} times, another upload changed the manifest in between")


def check_same(store: Store, stored: Manifest, mine: Manifest) -> None:
    """Raises `NotALogError` if a manifest belongs to a log of another kind."""
    if stored.format != mine.format:
        raise other_log(store, f"a {stored.format}, and this one is a {mine.format}")
    for name in ("segment_bytes", "base"):
        there, here = stored.facts.get(name), mine.facts.get(name)
        if there != here:
            raise other_log(store, f"{name} {there}, and this one has {here}")


def with_checksum(value: dict[str, Any]) -> bytes:
    """The bytes of an object, with their own checksum."""
    return _json({**value, "sha256": hashlib.sha256(_json(value)).hexdigest()})


def parsed(place: str, data: bytes, kind: str) -> dict[str, Any]:
    """The value of the object at a place. Raises `CorruptError`."""
    try:
        found = parse_json(data)
        if not isinstance(found, dict) or kind not in found:
            raise ValueError(f"no {kind}")
        said = found.pop("sha256", None)
        if said != hashlib.sha256(_json(found)).hexdigest():
            raise ValueError("the checksum differs")
        if found[kind] != _VERSION:
            raise ValueError(f"version {found[kind]}, this Deedbook reads {_VERSION}")
        return found
    except ValueError as error:
        raise corrupt(place, str(error)) from None


def manifest_of(place: str, found: dict[str, Any]) -> Manifest:
    """The manifest in a value. Raises `CorruptError`."""
    try:
        pieces = tuple(_piece(one) for one in found["pieces"])
        format, facts = found["format"], dict(found["facts"])
        for name, kind in _FACTS[format].items():
            if not (is_number(facts[name]) if kind is int else isinstance(facts[name], kind)):
                raise ValueError(f"{name} {facts[name]!r}")
        return Manifest(format, facts, pieces)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise corrupt(place, f"{type(error).__name__}: {error}") from None


def corrupt(place: str, reason: str) -> CorruptError:
    """The error for a damaged object."""
    error = CorruptError(f"{place}: {reason}")
    error.path, error.reason = place, reason
    return error


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def is_number(value: object) -> bool:
    """Whether a value of another writer is a position, a count or a size."""
    return type(value) is int and 0 <= value < _NUMBERS_END


def _piece(one: dict[str, Any]) -> Piece:
    piece = Piece(*map(one.__getitem__, _FIELDS))
    numbers = [piece.begin, piece.end, piece.next, piece.records, piece.bytes]
    numbers += [n for n in (piece.first, piece.unfinished, piece.entry) if n is not None]
    if not all(map(is_number, numbers)) or piece.end < piece.begin:
        raise ValueError(f"numbers {numbers} of a piece")
    if not isinstance(piece.index, list) or not all(
        isinstance(one, list) and len(one) == 3 and all(map(is_number, one)) for one in piece.index
    ):
        raise ValueError("no index of a piece")
    if not _SHA256.fullmatch(piece.sha256):
        raise ValueError("no checksum of a piece")
    if not isinstance(piece.path, str):
        raise ValueError("no path of a piece")
    for text in piece.beside.values():
        base64.b64decode(text, validate=True)
    return piece
