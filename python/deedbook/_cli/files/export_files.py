"""The output files of ``deedbook export``, written in batches of rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Protocol

from deedbook._cli.failure import CliError
from deedbook._system.compressed import zstd

__all__ = ["KINDS", "JsonText", "Sink", "compressing", "kind_of", "sink_of"]

KINDS: Final = {
    "parquet": "Parquet",
    "arrow": "an Arrow file",
    "csv": "CSV with a header",
    "jsonl": "JSON lines",
}
"""The kinds of files, in words."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""The first characters of formulas. Spreadsheets skip white space before a formula."""

Rows = Sequence[tuple[Any, ...]]
_dumps: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def kind_of(name: str) -> str | None:
    """The kind of a file by the extension; text may be compressed. None for other names."""
    stem, end = os.path.splitext(name.lower())
    if end in (".gz", ".zst"):
        kind = os.path.splitext(stem)[1][1:]
        return kind if kind in ("csv", "jsonl") else None
    return end[1:] if end[1:] in KINDS else None


@contextmanager
def compressing(name: str, file: BinaryIO) -> Iterator[BinaryIO]:
    """The file, or a compressing writer to the file if the name ends with .gz or .zst."""
    end = os.path.splitext(name.lower())[1]
    if end == ".gz":
        with gzip.GzipFile("", "wb", 6, file, 0) as packed:
            yield packed  # type: ignore[misc]
    elif end == ".zst":
        try:
            library = zstd("writing zstd")
        except ImportError as error:
            raise CliError(f"export: {error}") from error
        with library.ZstdFile(file, "w") as packed:
            yield packed
    else:
        yield file


class JsonText(str):
    """JSON to write as a value, not as a string."""

    __slots__ = ()


class Sink(Protocol):
    """A writer of rows."""

    def add(self, rows: Rows, /) -> None:
        """Write zero or more rows."""


@contextmanager
def sink_of(
    kind: str, file: BinaryIO, columns: Sequence[str], *, raw: bool, safe: bool = False
) -> Iterator[Sink]:
    """A sink for a kind of file. The last column is the payload, bytes if ``raw``.

    With ``safe``, no cell of a CSV file is a formula.
    """
    if kind == "csv":
        yield _Csv(file, columns, safe)
    elif kind == "jsonl":
        yield _JsonLines(file, columns)
    else:
        with _arrow(kind, file, columns, raw) as sink:
            yield sink


class _Csv:
    """RFC 4180, in UTF-8. Unknown values are empty."""

    def __init__(self, file: BinaryIO, columns: Sequence[str], safe: bool) -> None:
        self._file, self._safe = file, safe
        self.add([tuple(columns)])

    def add(self, rows: Rows) -> None:
        text = io.StringIO(newline="")
        csv.writer(text).writerows(map(_as_text, rows) if self._safe else rows)
        self._file.write(text.getvalue().encode("utf-8"))


def _as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row without formulas."""
    return tuple(
        f"'{one}" if isinstance(one, str) and one.startswith(_FORMULA) else one for one in row
    )


class _JsonLines:
    """An object a line."""

    def __init__(self, file: BinaryIO, columns: Sequence[str]) -> None:
        self._file = file
        self._keys = [f"{_dumps(name)}:" for name in columns]

    def add(self, rows: Rows) -> None:
        lines = (
            "{"
            + ",".join(key + _value(one) for key, one in zip(self._keys, row, strict=True))
            + "}\n"
            for row in rows
        )
        self._file.write("".join(lines).encode("utf-8"))


def _value(one: Any) -> str:
    return str(one) if isinstance(one, JsonText) else _dumps(one)


class _Batches:
    """Rows as record batches."""

    def __init__(self, write: Callable[[Any], object], schema: Any, batch: Any) -> None:
        self._write, self._schema, self._batch = write, schema, batch

    def add(self, rows: Rows) -> None:
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            self._write(self._batch(columns, schema=self._schema))


@contextmanager
def _arrow(kind: str, file: BinaryIO, columns: Sequence[str], raw: bool) -> Iterator[Sink]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise CliError(
            f"export: --format {kind} needs pyarrow (pip install pyarrow); csv and jsonl do without"
        ) from error
    *numbers, payload = columns
    fields: list[Any] = [(name, pa.uint32() if name == "mug" else pa.uint64()) for name in numbers]
    fields.append((payload, pa.large_binary() if raw else pa.large_string()))
    schema = pa.schema(fields)
    make = pa.RecordBatch.from_arrays
    into: Any = file

    def batch(found: list[list[Any]], schema: Any) -> Any:
        arrays = [pa.array(one, of.type) for one, of in zip(found, schema, strict=True)]
        return make(arrays, schema=schema)

    if kind == "parquet":
        with pq.ParquetWriter(file, schema, compression="zstd") as writer:
            yield _Batches(writer.write_batch, schema, batch)
    else:
        with pa.ipc.new_file(into, schema) as sink:
            yield _Batches(sink.write_batch, schema, batch)
