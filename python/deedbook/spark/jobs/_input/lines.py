"""Files of lines as a stream of rows: the executors read them, each file in parts.

The checkpoint of a stream has the list of read files. A batch takes the files in the order of their
names, and each file's lines in order. A file must be complete when the name appears.
"""

from __future__ import annotations

import glob
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deedbook import InvalidArgumentError
from deedbook._system.compressed import Reader
from deedbook.spark._options.paths import file_url
from deedbook.spark._worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LINE_SCHEMA", "Numbered", "file_of", "lines", "stream_of"]

LINE_SCHEMA: Final = "file string, byte bigint, value binary"
"""The columns of a line: file, first byte (uncompressed), and bytes without the newline."""

PART_BYTES: Final = 32 << 20
"""Bytes of a part of an uncompressed file, approximately."""
_BATCH_ROWS: Final = 8192
_BATCH_BYTES: Final = 4 << 20
_READ_BYTES: Final = 1 << 20
_SUFFIXES: Final = (".gz", ".zst")
_FOR_EVER: Final = "1000000d"
"""By default, Spark leaves out new files a week older than the newest read file. Spark also forgets
read files, and reads a touched file again.
"""


def lines(spark: SparkSession, source: str, batch_bytes: int, bytes_read: Any = None) -> DataFrame:
    """The lines of the files at ``source``, a directory, a file or a glob, as `LINE_SCHEMA`.

    A batch has files of about ``batch_bytes``. ``bytes_read`` is an accumulator of Spark.
    """
    from pyspark.sql import functions as F

    files = (
        spark.readStream.format("binaryFile")
        .schema("path string, modificationTime timestamp, length bigint, content binary")
        .options(maxBytesPerTrigger=batch_bytes, **stream_of(source))
        .load()
        .select("path", "length")
    )
    parts = files.where("length > 0").select(
        "path",
        F.explode(
            F.when(F.col("path").rlike(r"\.(gz|zst)$"), F.array(F.lit(0).cast("bigint"))).otherwise(
                F.sequence(F.lit(0), F.col("length") - 1, F.lit(PART_BYTES))
            )
        ).alias("start"),
    )
    # Sampling these few rows gives tasks that follow one another.
    tasks = 2 * spark.sparkContext.defaultParallelism
    ordered = parts.repartitionByRange(tasks, "path", "start")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        places = [place for batch in batches for place in batch.to_pylist()]
        for place in sorted(places, key=lambda place: (place["path"], place["start"])):
            for batch in _read_part(file_of(place["path"]), place["start"]):
                if bytes_read is not None:
                    bytes_read.add(batch.nbytes)
                yield batch

    return ordered.mapInArrow(read, LINE_SCHEMA)


def stream_of(source: str) -> dict[str, str]:
    """The options for Spark to stream the files at a source, of any age.

    Raises `InvalidArgumentError` for a name or a glob that makes Spark read nothing.
    """
    # Not for a glob that may match other files later, for example of a producer that renames files.
    found = [source] if os.path.exists(source) else glob.glob(source)
    if _is_hidden(source) and found and all(map(_is_hidden, found)):
        raise InvalidArgumentError(
            f"{found[0]}: Spark reads no file whose name begins with '_' or '.' or ends with"
            " '._COPYING_', as one that is not complete yet; rename it"
        )
    if os.path.isdir(source):
        return {"path": file_url(source), "maxFileAge": _FOR_EVER}
    if os.path.exists(source):
        # A path without a glob would be the table's folder for Spark, and the folder of the file
        # may have tables: the bad lines of an earlier run are one.
        one = re.sub(r"([A-Za-z0-9])(?=[^A-Za-z0-9]*$)", r"[\1]", file_url(source))
        return {"path": one, "maxFileAge": _FOR_EVER}
    return {"path": f"file://{source}", "maxFileAge": _FOR_EVER}


def _is_hidden(path: str) -> bool:
    """Whether Spark skips a file, by its name. A folder named in the source is read."""
    name = os.path.basename(path)
    known = "=" in name or name.startswith(("_metadata", "_common_metadata"))
    hidden = name.startswith(".") or (name.startswith("_") and not known)
    return (hidden or name.endswith("._COPYING_")) and not os.path.isdir(path)


def file_of(path: str) -> str:
    """The path of a file in Spark's spelling."""
    return "/" + path.removeprefix("file:").lstrip("/")


class Numbered:
    """The numbers of lines, from 1, by their first bytes. Calls in order read the file once."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._reader: Reader | io.FileIO | None = None
        self._byte = 0
        self._newlines = 0

    def line(self, file: str, byte: int) -> int:
        """The number of the line of a file that begins at a byte. Raises OSError."""
        if file != self._file or byte < self._byte:
            self.close()
            self._file, self._reader = file, _opened(file)
            self._byte = self._newlines = 0
        assert self._reader is not None
        while self._byte < byte and (
            data := self._reader.read(min(_READ_BYTES, byte - self._byte))
        ):
            self._byte += len(data)
            self._newlines += data.count(b"\n")
        return self._newlines + 1

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()
        self._file = self._reader = None


def _opened(file: str) -> Reader | io.FileIO:
    """A file, compressed by the end of its name, not by the first bytes."""
    return Reader(file) if file.endswith(_SUFFIXES) else Path(file).open("rb", buffering=0)


def _read_part(file: str, start: int) -> Iterator[pa.RecordBatch]:
    """The lines that begin in a part of a file."""
    if file.endswith(_SUFFIXES):
        reader = Reader(file)
        try:
            yield from _batches(file, 0, None, reader.read)
        finally:
            reader.close()
        return
    stop = start + PART_BYTES
    with Path(file).open("rb", buffering=0) as opened:
        first = start
        if start > 0:  # a line that began before is the part's before
            opened.seek(start - 1)
            first = start - 1
            while first < stop and (data := opened.read(_READ_BYTES)):
                at = data.find(b"\n")
                if at >= 0:
                    first += at + 1
                    break
                first += len(data)
            opened.seek(first)
        yield from _batches(file, first, stop, opened.read)


def _batches(file: str, first: int, stop: int | None, read: Any) -> Iterator[pa.RecordBatch]:
    """Lines from ``first`` on that begin before ``stop``, as batches."""
    batch = _Batch(file)
    begun: list[bytes] = []  # the pieces of a line whose end is not read yet
    while stop is None or first < stop:
        data = read(_READ_BYTES)
        if not data:
            if rest := b"".join(begun):
                batch.add(first, rest)
            break
        found = data.split(b"\n")
        begun.append(found[0])
        if len(found) == 1:
            continue
        found[0] = b"".join(begun)
        begun = [found.pop()]
        for line in found:
            if stop is not None and first >= stop:
                break
            batch.add(first, line)
            first += len(line) + 1
        if batch.is_full():
            yield batch.take()
    if batch.values:
        yield batch.take()


class _Batch:
    """Lines on the way."""

    def __init__(self, file: str) -> None:
        self._file = os.fsdecode(file)
        self._begin()

    def _begin(self) -> None:
        self._starts: list[int] = []
        self.values: list[bytes] = []
        self._size = 0

    def add(self, byte: int, value: bytes) -> None:
        self._starts.append(byte)
        self.values.append(value)
        self._size += len(value)

    def is_full(self) -> bool:
        return len(self.values) >= _BATCH_ROWS or self._size >= _BATCH_BYTES

    def take(self) -> pa.RecordBatch:
        import pyarrow as pa

        arrays: list[Any] = [
            pa.repeat(pa.scalar(self._file, pa.string()), len(self.values)),
            pa.array(self._starts, pa.int64()),
            pa.array(self.values, pa.binary()),
        ]
        self._begin()
        return pa.RecordBatch.from_arrays(arrays, names=["file", "byte", "value"])
