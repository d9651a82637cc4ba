"""Streams over archives: the offset is the number of the last entry read, in every log."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import ReadLimit

from deedbook import InvalidArgumentError, LostRecordsError, MissingError, NotALogError
from deedbook.archive import Archive, Catalog
from deedbook.spark._logs.parts import LogPartition, Piece
from deedbook.spark._options.paths import archive_url, input_paths
from deedbook.spark._read.archives import Source, cut, entries, source_at
from deedbook.spark._read.plan import partitions_of
from deedbook.spark._read.stream import DeedbookStreamReader

__all__ = ["ArchiveStreamReader"]

_VERSION = 1
_DIGITS = 16


class ArchiveStreamReader(DeedbookStreamReader):
    """Reads the new entries of a catalog, or the new pieces of an archive without a catalog.

    The offset is ``{"version": 1, "entry": NUMBER, "piece": SHA256}``: the last entry read, and the
    first digits of its last piece, by which the query recognizes the archive.
    """

    _source: Source | None = None
    _last: int | None = None
    """The last entry when the query took its goal."""
    _piece: tuple[int, str] = (0, "")
    """An entry, and the digits of its last piece."""

    def initialOffset(self) -> dict[str, Any]:
        """The number before the first entry to read."""
        position, source = self._options_now().starting_position, self._opened()
        if position == "latest":
            return self._offset(self._end())
        number = 0 if position == "earliest" else int(position)
        return {"version": _VERSION, "entry": max(number - isinstance(source, Catalog), 0)}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch: whole entries within the limits, but one at least."""
        source, begin = self._opened(), self._number(start)
        end = self._end() if self._last is None else self._last
        rows, size = self._limits(limit)
        if rows is not None or size is not None:
            taken = begin
            for entry in entries(source, self._format(), self._options, begin, end):
                rows = None if rows is None else rows - entry.records
                size = None if size is None else size - entry.bytes
                if taken > begin and ((rows or 0) < 0 or (size or 0) < 0):
                    end = taken
                    break
                taken = entry.number
        return self._offset(end) if end > begin else start

    def reportLatestOffset(self) -> dict[str, Any]:
        """For the query's progress: the last entry."""
        self._opened()
        return {"version": _VERSION, "entry": self._end()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the last entry for the goal of the query."""
        self._opened()
        self._last = self._end()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[LogPartition]:
        """The windows of the entries between two offsets, in order."""
        source, first, last = self._opened(), self._number(start), self._number(end)

        def pieces(size: int) -> list[Piece]:
            found: list[Piece] = []
            for entry in entries(source, self._format(), self._options, first, last):
                begin = max(entry.start, first) if isinstance(source, Archive) else entry.start
                found += cut(source.url, entry.log, entry.archive, begin, entry.stop, size)
            return found

        return partitions_of(pieces, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: an archive keeps everything."""

    def __getstate__(self) -> dict[str, Any]:
        """The state for a task."""
        return {**super().__getstate__(), "_source": None}

    def _opened(self) -> Source:
        """The catalog, or the archive as it is now. Raises `InvalidArgumentError`."""
        self._options_now()
        if isinstance(self._source, Catalog):
            return self._source
        paths = input_paths(self._given)
        url = archive_url(paths[0])
        if url is None or len(paths) > 1:
            raise InvalidArgumentError(
                f"option paths: a stream reads one archive or one catalog, not {', '.join(paths)}"
            )
        self._source = source_at(url)
        if isinstance(self._source, Archive) and self._source.format == "ledger":
            raise InvalidArgumentError(
                f"option path: {url} is the archive of a ledger, whose files come in any order; a"
                " stream of ledgers needs the URL of a catalog"
            )
        return self._source

    def _end(self) -> int:
        """The number of the last entry."""
        assert self._source is not None
        if isinstance(self._source, Catalog):
            return self._source.latest()
        return (self._source.bounds or (0, 0))[1]

    def _offset(self, number: int) -> dict[str, Any]:
        """The offset of an entry. Raises `LostRecordsError` if the entry is gone."""
        offset: dict[str, Any] = {"version": _VERSION, "entry": number}
        return offset if number == 0 else {**offset, "piece": self._piece_of(number)}

    def _number(self, offset: dict[str, Any]) -> int:
        """The number of an offset. Raises `NotALogError` for an entry of other records."""
        number, piece = offset.get("entry"), offset.get("piece")
        if offset.get("version") != _VERSION or not isinstance(number, int):
            raise InvalidArgumentError(
                f"the checkpoint is not this query's: {offset} is not an offset of version"
                f" {_VERSION} in archives"
            )
        if piece is not None and piece != self._piece_of(number):
            error = NotALogError(
                f"entry {number} ends with piece {self._piece_of(number)}, the query had read"
                f" {piece}: other archives"
            )
            error.path = self._opened().url
            raise error
        return number

    def _piece_of(self, number: int) -> str:
        if self._piece[0] != number:
            source = self._opened()
            try:
                found = list(entries(source, self._format(), self._options, number - 1, number))
            except MissingError:
                found = []
            if not found:
                error = LostRecordsError(
                    f"{source.url}: the last entry is {self._end()}, the query had read {number}"
                )
                error.path = source.url
                raise error
            self._piece = number, found[0].archive._manifest.pieces[-1].sha256[:_DIGITS]
        return self._piece[1]
