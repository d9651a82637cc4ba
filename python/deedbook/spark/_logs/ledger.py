"""Ledger as a Spark source: partitions are lists of finished files, rows are their records."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType

from deedbook import (
    Error,
    InvalidArgumentError,
    Ledger,
    MissingError,
)
from deedbook.spark._logs.format import (
    Defaults,
    Planned,
    not_opened,
    refuse_of_stores,
)
from deedbook.spark._logs.ledger_steps import FileSteps
from deedbook.spark._logs.parts import Piece
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look
from deedbook.spark._options.schema import Column, on_request

__all__ = ["LEDGER", "LedgerFormat"]


class LedgerFormat(Defaults, FileSteps):
    """A ledger: a directory of files to finish, send and remove; or a single file."""

    name = "ledger"
    position = "record"
    in_sequence = False
    columns: Sequence[Column] = (
        Column(
            "file",
            LongType(),
            "Index of the file, also in a row for damage.",
            never_null=("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
        ),
        Column(
            "record",
            IntegerType(),
            "Number of the record in its file, from 0 on. Null after damage that hid how many"
            " records it swallowed, and in a row for damage.",
            never_null=("FAILFAST",),
        ),
        Column("payload", BinaryType(), "The payload."),
        on_request("path", StringType(), "The file."),
        on_request(
            "offset",
            LongType(),
            "First byte of the record in the file; in a row for damage, of the damage.",
        ),
        on_request(
            "length",
            LongType(),
            "Bytes of the record with its header; in a row for damage, of the damage.",
        ),
    )

    def refuse(self, options: ReadOptions) -> None:
        """The options of event stores."""
        refuse_of_stores(self, options)

    def expand(self, path: Path | Look, options: ReadOptions) -> list[Path]:
        """The ledgers at a path: a directory, a file, or a directory of directories.

        Raises `InvalidArgumentError` for several ledgers in a directory without the option
        ``base``.
        """
        look = Look.at(path)
        if not look.is_dir:
            return [look.path] if self._is_file(look.path, options) else []
        if self._is_ledger(look, options):
            return [look.path]
        return [child.path for child in look.children if self._is_ledger(child, options)]

    def _is_file(self, path: Path, options: ReadOptions) -> bool:
        try:
            return Ledger.is_file(path) and (
                options.base is None or path.name.partition("-")[2] == options.base
            )
        except Error:
            return options.log == self.name

    def _is_ledger(self, look: Look, options: ReadOptions) -> bool:
        path = look.path
        if options.log is None and look.format not in (None, self.name):
            return False
        try:
            bases = Ledger.bases(path)
        except Error:
            if options.log == self.name:
                raise
            return False  # of another format, or of none: then that is said
        if options.base is not None:
            return options.base in bases
        if len(bases) > 1:
            raise InvalidArgumentError(
                f"option base: there are several ledgers at {path}, {', '.join(bases)}; say which"
                " to read"
            )
        return bool(bases)

    def plan(self, log: Path, options: ReadOptions, split_size: int) -> Planned:
        """Cut each finished file between records; the bytes after damage are a part of their own.

        An unfinished file is left out, even if the path names the file, because rows must not
        change after a read.
        """
        pieces: list[Piece] = []
        with Ledger.open(log, base=options.base) as snapshot:
            for file in snapshot.files:
                if file.active or not _is_within(file.index, options):
                    continue
                try:
                    pieces += snapshot.splits(split_size, (file.index, 0), (file.index + 1, 0))
                except Error as error:
                    pieces += not_opened(file.path, error, options)
        return Planned(str(log), pieces)

    def constants(self, piece: Piece) -> Mapping[str, object]:
        """The path and the file's index, the beginning of the name."""
        return {"path": piece.path, "file": int(os.path.basename(piece.path).partition("-")[0])}

    def limits(self, options: ReadOptions) -> tuple[int | None, int | None]:
        """None: ``start`` and ``end`` are indexes of files, used by planning."""
        return None, None

    def is_gone(
        self, error: MissingError, piece: Piece, options: ReadOptions
    ) -> MissingError | None:
        """The error that names the missing file; None with ``ignoreMissingFiles``."""
        if options.ignore_missing_files:
            return None
        gone = MissingError(
            error.errno,
            "the file was removed since the query was planned, as files of a ledger are once they"
            " were sent; read a copy, or while nothing is sent, or pass over such files with the"
            " option ignoreMissingFiles",
            piece.path,
        )
        gone.format, gone.path = self.name, piece.path
        return gone


def _is_within(index: int, options: ReadOptions) -> bool:
    return index >= (options.start or 0) and (options.end is None or index < options.end)


LEDGER = LedgerFormat()
