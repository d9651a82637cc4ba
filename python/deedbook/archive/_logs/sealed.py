"""The interface between an upload and a log: finished files, and the records in the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from deedbook._core import Damage, Split
from deedbook._errors import CorruptError
from deedbook.archive._manifest import Piece

INDEX_ENTRIES: Final = 16
"""Entries of the index of a file, about."""


class Sealed(NamedTuple):
    """A file that the log has finished."""

    file: Path
    path: str
    """The file, below the log's directory."""
    begin: int
    """The first position in the file."""
    end: int
    """The position after the last position in the file."""


class Source(Protocol):
    """An open log, for an upload."""

    @property
    def format(self) -> str:
        """As `Manifest.format`."""

    @property
    def is_contiguous(self) -> bool:
        """Whether each file goes on after the last; a ledger drops sent files in any order."""

    @property
    def facts(self) -> dict[str, Any]:
        """As `Manifest.facts`."""

    def sealed(self) -> list[Sealed]:
        """The sealed files of the log, in the order of their positions."""

    def pieces(self, new: list[Sealed], after: Piece | None) -> Iterator[tuple[Sealed, Piece]]:
        """Each new file as a piece without a checksum; ``after`` is the last archived piece.

        Reads and checks every record. Raises `CorruptError`.
        """

    def hold(self, consumer: str, pieces: list[Piece]) -> None:
        """Register the consumer: the log then drops only archived records."""


def checked(split: Split) -> int:
    """The number of the split's records. Raises `CorruptError` unless all are intact."""
    report = split.check()
    if report.damages:
        raise damaged(split.path, report.damages[0])
    return report.records


def damaged(path: str, found: Damage) -> CorruptError:
    """The error for a damaged file of the log."""
    error = CorruptError(f"{path}: byte {found.offset}: {found.reason}; repair the log first")
    error.path, error.offset, error.reason = path, found.offset, found.reason
    return error
