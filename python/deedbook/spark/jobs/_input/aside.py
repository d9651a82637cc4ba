"""Bad lines: an error with file and line, or rows of a separate table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext

from deedbook import InvalidArgumentError
from deedbook._system.durable import sync_file, sync_folders
from deedbook._system.regular import is_file, is_folder
from deedbook.spark.jobs._input.lines import Numbered
from deedbook.spark.jobs._input.stream import Checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Aside", "Check"]

Check = Callable[["pa.RecordBatch"], "tuple[pa.RecordBatch, Sequence[str | None]]"]
"""Parse a batch of lines to a batch of as many rows, with the error of each bad row."""

_OWNER: Final = b"deedbook.job"
"""The key in the metadata of a file that names the owner of the bad lines."""
_FILES: Final = "part-*.parquet"


class Aside:
    """Takes bad lines out of a stream of lines. Pickled to every task.

    Bad lines become rows of the Parquet table ``directory``, in the folder of their query and
    batch, because other jobs may have the same directory: ``file``, ``line`` (from 1), ``byte``,
    ``reason``, ``value``. Without a directory, the first bad line ends the job.
    """

    def __init__(
        self, directory: str | None, checkpoint: Checkpoint, query: str, batch: int, what: str
    ) -> None:
        self._table = None if directory is None else Path(directory)
        self._query, self._batch = f"query={query}", f"batch={batch}"
        owner = {"job": checkpoint.app, "target": checkpoint.target, "at": str(checkpoint.path)}
        self._owner = json.dumps(owner).encode()
        self._what = what

    @property
    def _folder(self) -> Path | None:
        return None if self._table is None else self._table / self._query / self._batch

    def begin(self) -> None:
        """On the driver, before the batch: remove the files of a dead attempt."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def finish(self) -> int:
        """On the driver, once the log has the batch: keep each bad line once; return the count.

        After the loss of a checkpoint, another query reads all files again. An earlier query's bad
        lines are removed only once they are here again, because source files may be gone or
        changed.
        """
        if self._table is None or self._folder is None:
            return 0
        own = [file for file in sorted(self._folder.glob(_FILES)) if self._rows_in(file)]
        others = [
            file
            for file in sorted(self._table.glob(f"query=*/batch=*/{_FILES}"))
            if file.parent.parent.name != self._query and self._rows_in(file)
        ]
        again = {line for file in own for line in _lines_in(file)} if others else set()
        for file in others:
            with suppress(FileNotFoundError):  # another job does the same
                _take_back(file, again)
        return sum(map(self._rows_in, own))

    def _rows_in(self, file: Path) -> int:
        """The number of rows of a file; 0 for another job's file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for folder in (file.parent.parent, file.parent):
            is_folder(folder)
        if not is_file(file):
            return 0
        with suppress(FileNotFoundError, pa.ArrowInvalid), pq.ParquetFile(file) as opened:
            if (opened.schema_arrow.metadata or {}).get(_OWNER) == self._owner:
                return int(opened.metadata.num_rows)
        return 0

    def good(
        self, batches: Iterator[pa.RecordBatch], check: Check, counted: tuple[Any, Any]
    ) -> Iterator[pa.RecordBatch]:
        """In a task: the result of ``check`` for good lines. ``counted`` gets the counts."""
        import pyarrow as pa

        table = None
        numbered = Numbered()
        try:
            for batch in batches:
                checked, reasons = check(batch)
                counted[0].add(batch.num_rows)
                bad = [row for row, reason in enumerate(reasons) if reason is not None]
                if not bad:
                    yield checked
                    continue
                counted[1].add(len(bad))
                rows = self._rows(batch, bad, reasons, numbered)
                if table is None:
                    table = self._begin_table(rows.schema)
                table.write_batch(rows)
                yield checked.filter(pa.array([reason is None for reason in reasons]))
        except BaseException:
            if table is not None:
                table.abandon()
            raise
        finally:
            numbered.close()
        if table is not None:
            table.finish()

    def _rows(
        self,
        batch: pa.RecordBatch,
        bad: Sequence[int],
        reasons: Sequence[str | None],
        numbered: Numbered,
    ) -> pa.RecordBatch:
        import pyarrow as pa

        taken = batch.take(pa.array(bad, pa.int64()))
        files: list[Any] = taken["file"].to_pylist()
        places = zip(files, taken["byte"].to_pylist(), strict=True)
        numbers = [numbered.line(file, byte or 0) for file, byte in places]
        if self._folder is None:
            file, reason = taken["file"][0].as_py(), reasons[bad[0]]
            raise InvalidArgumentError(f"line {numbers[0]} of {file} is {self._what}: {reason}")
        return pa.RecordBatch.from_arrays(
            [
                taken["file"],
                pa.array(numbers, pa.int64()),
                taken["byte"],
                pa.array([reasons[row] for row in bad], pa.string()),
                taken["value"],
            ],
            names=["file", "line", "byte", "reason", "value"],
        ).replace_schema_metadata({_OWNER: self._owner})

    def _begin_table(self, schema: pa.Schema) -> _Table:
        context = TaskContext.get()
        assert context is not None and self._folder is not None, "called in tasks only"
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"part-{context.partitionId():05}"
        # Two attempts of a task write the same.
        attempt = self._folder / f".{name}-{context.taskAttemptId()}"
        return _Table(attempt, self._folder / f"{name}.parquet", schema)


def _lines_in(file: Path) -> Iterator[bytes]:
    """The identity of each line of a file: a digest, because a file may have millions of lines."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as opened:
        for batch in opened.iter_batches(columns=["file", "line", "value"]):
            for row in batch.to_pylist():
                place = f"{row['line']} {row['file']}\n".encode("utf-8", "surrogateescape")
                yield blake2b(place + row["value"], digest_size=16).digest()


def _take_back(file: Path, again: Container[bytes]) -> None:
    """Remove these lines from an earlier query's bad lines."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    stays = [line not in again for line in _lines_in(file)]
    if all(stays):
        return
    if any(stays):
        with pq.ParquetFile(file) as opened:
            kept = opened.read().filter(pa.array(stays))
        rest = _Table(file.with_name(f".{file.name}"), file, kept.schema)
        for batch in kept.to_batches():
            rest.write_batch(batch)
        rest.finish()
        return
    file.unlink()
    for folder in (file.parent, file.parent.parent):
        with suppress(OSError):  # there are others
            folder.rmdir()


class _Table:
    """A Parquet file that appears only when complete."""

    def __init__(self, path: Path, final: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._path = path
        self._final = final
        self._writer = pq.ParquetWriter(path, schema)
        self.write_batch = self._writer.write_batch

    def finish(self) -> None:
        self._writer.close()
        sync_file(self._path)
        self._path.replace(self._final)
        # The table, the folder of its batch, and the file.
        sync_folders(self._final.parent.parent, [self._final])

    def abandon(self) -> None:
        self._writer.close()
        self._path.unlink(missing_ok=True)
