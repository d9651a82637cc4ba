"""Planning reads of archives from the manifest, or from the catalog. Planning opens no piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from deedbook import InvalidArgumentError, MissingError, archive
from deedbook.archive import (
    WINDOW_BYTES,
    Archive,
    Catalog,
    Entry,
    Manifest,
    border_of,
    live_log,
    whole_end,
    windows,
    windows_of,
)
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.formats import format_named
from deedbook.spark._logs.parts import Archived, Piece
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import local_path
from deedbook.spark._read.plan import Series, pieces_of

__all__ = ["Source", "cut", "entries", "format_at", "pieces_at", "source_at"]

Source: TypeAlias = "Archive | Catalog"


def source_at(url: str, options: ReadOptions | None = None) -> Source:
    """The archive at a URL, or else the catalog. Raises `MissingError` without both."""
    live, base = (None, None) if options is None else (options.live_log, options.base)
    path = None if live is None else local_path(live, "option liveLog")
    try:
        return archive.open(url, log=path, base=base)
    except MissingError as error:
        catalog = Catalog(url)
        try:
            next(catalog.entries(0, 1))
        except MissingError:
            raise error from None
    if live is not None:
        raise InvalidArgumentError(f"option liveLog: is for one archive, there is a catalog, {url}")
    return catalog


def format_at(url: str, options: ReadOptions) -> LogFormat:
    """The format of an archive. A catalog has the option ``log``, or the first entry's format."""
    source = source_at(url)
    if isinstance(source, Catalog) and options.log is not None:
        return format_named(options.log)
    found = _format(source if isinstance(source, Archive) else next(source.entries(0, 1)))
    if options.log not in (None, found):
        raise InvalidArgumentError(f"option log: there is a {found}, not a {options.log}, at {url}")
    return format_named(found)


def _format(found: Archive | Entry) -> str:
    return "book" if found.format == "pier" else found.format


def entries(
    source: Source, log: LogFormat, options: ReadOptions, after: int, upto: int | None = None
) -> Iterator[Entry]:
    """The entries of a format. Raises `InvalidArgumentError` for another one without ``log``.

    An archive without a catalog has an entry for each piece, whose number is the position after.
    """
    found = (
        _steps(source, after, upto) if isinstance(source, Archive) else source.entries(after, upto)
    )
    for entry in found:
        if _format(entry) == log.name:
            yield entry
        elif options.log is None:
            raise InvalidArgumentError(
                f"option log: there are logs of several formats, a {log.name} and"
                f" {entry.archive.url}, a {_format(entry)}; say which to read"
            )


def _steps(source: Archive, after: int, upto: int | None) -> Iterator[Entry]:
    manifest = source._manifest
    for count, piece in enumerate(manifest.pieces, 1):
        if piece.end <= after:
            continue
        some, before = manifest.pieces[:count], manifest.pieces[: count - 1]
        start, stop = whole_end(before), whole_end(some)
        if stop > max(start, after) and (upto is None or stop <= upto):
            here = Archive(source._store, replace(manifest, pieces=some), None)
            start = start if before else (here.bounds or (0, 0))[0]
            yield Entry(stop, "", source.format, start, stop, piece.records, piece.bytes, here)


def pieces_at(url: str, log: LogFormat, options: ReadOptions, size: int) -> list[Piece]:
    """The windows of an archive or of all archives of a catalog, and the parts of the live log."""
    source, start, stop = source_at(url, options), options.start, options.end
    if isinstance(source, Catalog):
        pieces: list[Piece] = []
        begun: set[str] = set()
        for entry in entries(source, log, options, 0):
            first = start if entry.log not in begun else max(start or 0, entry.start)
            begun.add(entry.log)
            pieces += cut(url, entry.log, entry.archive, first, stop, size)
        return pieces
    if options.live_log is None:
        return [*cut(url, "", source, start, stop, size)]
    paths = log.expand(local_path(options.live_log), options)
    live = [Series(tuple(map(str, paths)))]
    if log.name == "ledger":
        archived = {piece.window.begin: piece for piece in cut(url, "", source, start, stop, size)}
        found = [
            (int(str(log.constants(piece)["file"])), piece)
            for piece in pieces_of(log, live, options, size)
        ]
        found = [one for one in found if one[0] not in archived] + [*archived.items()]
        return [piece for _, piece in sorted(found, key=lambda one: one[0])]
    with live_log(source) as opened:
        border = border_of(source, opened)
    rest = replace(options, start=max(start or 0, border))
    both: list[Piece] = [
        *cut(url, "", source, start, border if stop is None else min(stop, border), size)
    ]
    return both if rest.empty else [*both, *pieces_of(log, live, rest, size)]


def cut(
    root: str, name: str, found: Archive, start: int | None, stop: int | None, size: int
) -> list[Archived]:
    """The windows between two positions. A WAL must have the record at ``start``."""
    manifest, is_ledger = found._manifest, found.format == "ledger"
    bare = Manifest(manifest.format, manifest.facts)
    size = min(size, WINDOW_BYTES)
    find = (
        windows_of(found, start, stop, size)
        if found.format == "wal"
        else windows(manifest, start, stop, size)
    )
    return [
        Archived(
            root,
            name,
            bare,
            part,
            None if is_ledger else max(part.begin, start or 0),
            None if is_ledger else part.end if stop is None else min(part.end, stop),
        )
        for part in find
    ]
