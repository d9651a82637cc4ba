"""The catalog of many archives below one URL: entries with numbers from 1 on, without a gap.

::

    ROOT/catalog/NUMBER.json         new pieces of an archive; stored once, under a condition
    ROOT/catalog-100/NUMBER.json     the 100 entries up to NUMBER, to read them at once
    ROOT/catalog-10000/NUMBER.json   the 10,000 entries up to NUMBER

An upload claims a number in the manifest first, and stores the entry afterwards. So one upload
alone decides which entry has a piece, and a killed upload leaves a claim for the next upload. If an
entry of another archive has taken the number, the upload claims another number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from deedbook._errors import InvalidArgumentError, MissingError
from deedbook.archive._manifest import (
    MANIFEST,
    Manifest,
    corrupt,
    is_number,
    load,
    manifest_of,
    parsed,
    with_checksum,
)
from deedbook.archive._read import Archive
from deedbook.archive._store import TIMEOUT_SECONDS, Conflict, Store
from deedbook.archive._windows import whole_end

_KIND: Final = "deedbook_catalog"
_VERSION: Final = 1
_PAGES: Final = (10_000, 100)
"""Entries of a page, for each kind of page."""


@dataclass(frozen=True)
class Entry:
    """New records of one archive."""

    number: int
    """The place in the catalog."""
    log: str
    """The archive, below the URL of the catalog."""
    format: str
    """``"wal"``, ``"pier"`` or ``"ledger"``."""
    start: int
    """The first new position."""
    stop: int
    """The position after the last new, whole record."""
    records: int
    """Records that begin in the new pieces."""
    bytes: int
    """Bytes of the new pieces."""
    archive: Archive
    """The pieces with the new records: ``entry.archive.iter(entry.start, entry.stop)``."""


class Catalog:
    """The catalog of the archives below a URL.

    A stream over all archives needs one number, the last entry that it has read:

    >>> import deedbook, pathlib
    >>> root = pathlib.Path("store").absolute().as_uri()
    >>> for name in ("a", "b"):
    ...     with deedbook.Wal.create(name, segment_bytes=4096) as wal:
    ...         _ = wal.append_many(b"%d" % number * 100 for number in range(100))
    ...     _ = deedbook.archive.upload(name, f"{root}/{name}", catalog=root)
    >>> catalog = deedbook.archive.Catalog(root)
    >>> [(entry.number, entry.log, entry.start) for entry in catalog.entries(0, catalog.latest())]
    [(1, 'a', 0), (2, 'b', 0)]

    Reading entries opens no archive. ``timeout`` as in `upload`. Raises as `open`.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._store = Store(url, timeout)

    @property
    def url(self) -> str:
        """The URL of the catalog."""
        return self._store.url

    def latest(self) -> int:
        """The number of the last entry; 0 without entries."""
        last = 0
        for size in (*_PAGES, 1):
            names = (name for name, _ in self._store.names(_folder(size), _name(size, last)))
            numbers = (name.rpartition("/")[2].removesuffix(".json") for name in names)
            last = max([last, *(int(number) for number in numbers if number.isdecimal())])
        return last

    def entries(self, after: int = 0, upto: int | None = None) -> Iterator[Entry]:
        """The entries after number ``after``, up to number ``upto`` (default: the last)."""
        end = self.latest() if upto is None else upto
        for number, value in enumerate(self._values(after, end, _PAGES), after + 1):
            yield self._entry(number, value)

    def _values(self, at: int, end: int, pages: tuple[int, ...]) -> Iterator[dict[str, Any]]:
        while at < end:
            for size in pages:
                if at % size == 0 and at + size <= end:
                    try:
                        page = self._value(size, at + size)
                    except MissingError:  # the upload of the last entry was killed
                        continue
                    entries = page.get("entries")
                    if not isinstance(entries, list) or len(entries) != size:
                        place = self._store.where(_name(size, at + size))
                        raise corrupt(place, f"no page of {size} entries")
                    yield from entries
                    at += size
                    break
            else:
                at += 1
                yield self._value(1, at)

    def _value(self, size: int, number: int) -> dict[str, Any]:
        name = _name(size, number)
        return parsed(self._store.where(name), self._store.get(name)[0], _KIND)

    def _entry(self, number: int, value: dict[str, Any]) -> Entry:
        place = self._store.where(_name(1, number))
        try:
            manifest = manifest_of(place, value)
            log = str(value["log"])
            numbers = [value[name] for name in ("number", "start", "stop", "records", "bytes")]
            if not all(map(is_number, numbers)) or numbers[0] != number:
                raise corrupt(place, f"numbers {numbers} of entry {number}")
            manifest.facts["head"] = value["start"]
            here = self._store.below(log)
            return Entry(
                number=number,
                log=log,
                format=manifest.format,
                start=value["start"],
                stop=value["stop"],
                records=value["records"],
                bytes=value["bytes"],
                archive=Archive(here, manifest, None),
            )
        except (KeyError, TypeError) as error:
            raise corrupt(place, f"no entry: {error}") from None

    def _put(self, number: int, value: dict[str, Any]) -> bool:
        """Store an entry; return whether the entry of the number is this one."""
        data = with_checksum(value)
        name = _name(1, number)
        if not self._store.put_new(name, data) and self._store.get(name)[0] != data:
            return False
        for size in reversed(_PAGES):
            if number % size == 0:
                smaller = tuple(page for page in _PAGES if page < size)
                entries = list(self._values(number - size, number, smaller))
                page = {_KIND: _VERSION, "entries": entries}
                self._store.put_new(_name(size, number), with_checksum(page))
        return True


def publish(store: Store, root: str, timeout: float) -> int | None:
    """Bring every piece of an archive into the catalog, once; return the number of the last entry.

    Raises `InvalidArgumentError` if the archive does not lie below the catalog.
    """
    catalog = Catalog(root, timeout=timeout)
    log = name_below(store, catalog.url)
    while True:
        manifest, version = load(store)
        numbers = [piece.entry for piece in manifest.pieces if piece.entry is not None]
        last = max(numbers, default=None)
        claimed: Manifest | None = None
        if last is not None and not catalog._put(last, _value_of(manifest, log, last)):
            claimed = _claim(manifest, last, catalog.latest() + 1)
        elif any(piece.entry is None for piece in manifest.pieces):
            claimed = _claim(manifest, None, catalog.latest() + 1)
        if claimed is None:
            return last
        try:
            store.replace(MANIFEST, claimed.encode(), version)
        except Conflict:
            continue


def name_below(store: Store, root: str) -> str:
    """The name of an archive in a catalog. Raises `InvalidArgumentError`."""
    log = store.url.removeprefix(f"{root}/")
    if log == store.url or log.split("/")[0].startswith("catalog"):
        raise InvalidArgumentError(f"the archive {store.url} must lie below the catalog {root}")
    return log


def _claim(manifest: Manifest, old: int | None, new: int) -> Manifest:
    """The manifest with another number for the pieces of a number, or for pieces without one."""
    pieces = (
        replace(piece, entry=new) if piece.entry == old else piece for piece in manifest.pieces
    )
    return replace(manifest, pieces=tuple(pieces))


def _value_of(manifest: Manifest, log: str, number: int) -> dict[str, Any]:
    """The entry of a number: the same for every upload that sees the claim."""
    new = [piece for piece in manifest.pieces if piece.entry == number]
    earlier = tuple(
        piece for piece in manifest.pieces if piece.entry is not None and piece.entry < number
    )
    needed = list(new)
    if manifest.format == "ledger":
        start, stop = new[0].begin, new[-1].end
    else:
        first = manifest.facts.get("head", new[0].begin)
        start = whole_end(earlier) if earlier else first
        stop = whole_end((*earlier, *new))
        needed = [piece for piece in earlier if piece.end > start] + needed
    return {
        _KIND: _VERSION,
        "number": number,
        "log": log,
        "format": manifest.format,
        "facts": manifest.facts,
        "start": start,
        "stop": stop,
        "records": sum(piece.records for piece in new),
        "bytes": sum(piece.bytes for piece in new),
        "pieces": [asdict(piece) for piece in needed],
    }


def _folder(size: int) -> str:
    return "catalog" if size == 1 else f"catalog-{size}"


def _name(size: int, number: int) -> str:
    return f"{_folder(size)}/{number:020d}.json"
