"""The finished files of a ledger. A sender may remove any of them meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deedbook._core import Ledger
from deedbook._errors import MissingError
from deedbook.archive._logs.sealed import Sealed, damaged
from deedbook.archive._manifest import Piece


class LedgerSource:
    """An open ledger, for an upload."""

    format = "ledger"
    is_contiguous = False

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def facts(self) -> dict[str, Any]:
        """The base of the files' names."""
        return {"base": self._ledger.base}

    def sealed(self) -> list[Sealed]:
        """The files that no handle writes."""
        return [
            Sealed(Path(file.path), Path(file.path).name, file.index, file.index + 1)
            for file in sorted(self._ledger.files, key=lambda file: file.index)
            if not file.active
        ]

    def pieces(self, new: list[Sealed], after: Piece | None) -> Iterator[tuple[Sealed, Piece]]:
        """Each file with the number of its checked records. Raises `CorruptError`."""
        for file in new:
            try:
                report = Ledger.verify_file(file.file)
                length = os.path.getsize(file.file)
            except (MissingError, FileNotFoundError):
                continue
            if report.damages:
                raise damaged(str(file.file), report.damages[0])
            yield (
                file,
                Piece(
                    path=file.path,
                    begin=file.begin,
                    end=file.end,
                    next=file.end,
                    first=file.begin,
                    unfinished=None,
                    records=report.records,
                    bytes=length,
                    sha256="",
                    index=[[file.begin, report.records, 0]],
                ),
            )

    def hold(self, consumer: str, pieces: list[Piece]) -> None:
        """Nothing: a ledger has no consumers, and its senders remove sent files."""
