"""Tables of Parquet files, plain or Delta. Each batch is added once.

Spark writes the files of a batch into a folder next to the table; the driver syncs the files and
gives each file a name in the table. A Delta table shows the files with a commit that also notes the
batch. For a plain table the driver first stores the list of the batch's files (the intent), and
last the batch's number (the note). After a kill in between, the next run finishes the batch.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote

from deedbook import ContiguityError, CorruptError, InvalidArgumentError
from deedbook._formats import missing
from deedbook._spark_session import in_utc
from deedbook._system.durable import load_json, store_json, sync_file, sync_folders
from deedbook._system.lock import alone
from deedbook._system.regular import below, is_file
from deedbook.spark.jobs._engine.sail import is_sail
from deedbook.spark.jobs._shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["DeltaTable", "ParquetTable", "Table", "TableKind", "table"]

TableKind = Literal["parquet", "delta"]
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_NAME: Final = re.compile(r"(?:[^/=]+=[^/]+/)*part-[^/]+-[0-9]{6,}-[0-9]{4,}\.parquet")
"""The name of a batch's file in a table, after the folders of the partition."""


@dataclass(frozen=True)
class Table(ABC):
    """A table, and the folder next to the table for a job and source."""

    path: Path
    app: str
    work: Path
    partition_by: tuple[str, ...] = ()

    @abstractmethod
    def committed(self) -> int | None:
        """The last batch of the job in the table; None without a batch. Changes nothing."""

    @abstractmethod
    def add(self, rows: DataFrame, query: str, batch: int) -> None:
        """Add a batch, unless the table has the batch.

        Raises `InvalidArgumentError` for another query's batch, and `ContiguityError` for a batch
        that is neither the next nor the last.
        """

    def check(self, schema: StructType) -> None:
        """Refuse rows with other columns or partitions than the table's.

        Changes nothing. Raises `InvalidArgumentError` with both.
        """
        self._compare(self._shape(), schema)

    @abstractmethod
    def _shape(self) -> Shape | None:
        """The columns and the partition columns of the table; None if unknown.

        None before the first batch, and for a plain table of an earlier version.
        """

    def _compare(self, there: Shape | None, schema: StructType) -> None:
        own = Shape.of(schema, self.partition_by)
        if there is not None and there != own:
            raise InvalidArgumentError(
                f"{self.path} has {there}; this run has {own}: a table has the same of all runs and"
                " sources; choose another table for these"
            )

    def files(self, query: str, batch: int) -> list[Path]:
        """The files of a batch."""
        return sorted(self.path.rglob(f"part-{query[:8]}-{batch:06}-*.parquet"))

    def _stage(self, rows: DataFrame, query: str, batch: int) -> list[tuple[str, str]]:
        """Let Spark write the files of a batch; returns each with its name in the table.

        The first is the path below the staged folder.
        """
        staged = self.work / "staged"
        shutil.rmtree(staged, ignore_errors=True)
        # Otherwise Spark writes times in a form unknown to Delta.
        rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        writer = rows.write.mode("overwrite").partitionBy(*self.partition_by)
        with in_utc(rows.sparkSession):  # the names of folders say times, and no time zone
            # Spark takes the path as it is; Sail decodes it.
            writer.parquet(staged.as_uri() if is_sail(rows.sparkSession) else f"file://{staged}")
        files = sorted(file for file in staged.rglob("*.parquet") if file.name[0] not in "._")
        named = []
        for number, file in enumerate(files):
            sync_file(file)
            name = f"part-{query[:8]}-{batch:06}-{number:04}.parquet"
            place = file.relative_to(staged)
            named.append((str(place), _in_table(place.parent, name)))
        sync_folders(self.work, files)
        return named

    def _move(self, files: Sequence[tuple[str, str]]) -> None:
        """Give staged files their names in the table; files with their names stay.

        Raises `MissingError` for a missing file. Raises ValueError for a file that is not staged or
        would get a name outside the table; then no file moves.
        """
        staged = self.work / "staged"
        moves = []
        for file, name in files:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a table's file")
            moves.append((below(staged, file), below(self.path, name)))
        for source, target in moves:
            is_file(source), is_file(target)
        for source, target in moves:
            if is_file(source):
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)
            elif not is_file(target):
                raise missing(f"a staged file of the table {self.path} is gone", source)
        sync_folders(self.path, (target for _, target in moves))

    def _is_there(self, query: str, batch: int, done: tuple[str, int] | None) -> bool:
        """Whether a batch was added, by the query and number of the last batch.

        Raises `ContiguityError` for a batch after a gap or before the last batch, as logs do,
        because Spark repeats only the last batch.
        """
        if done is not None and done[0] != query:
            raise InvalidArgumentError(
                f"{self.path}: its batches of {self.app} are of query {done[0]}, not {query}, whose"
                " checkpoint is another one"
            )
        following = 0 if done is None else done[1] + 1
        if batch > following:
            has = f"none of {self.app}" if done is None else f"its batches up to {done[1]}"
            raise ContiguityError(
                f"{self.path}: batch {batch} of query {query} is not the next: the table has {has},"
                f" so batches {following} to {batch - 1} are missing"
            )
        if batch < following - 1:
            raise ContiguityError(
                f"{self.path}: batch {batch} of query {query} is older than the table, which has"
                f" its batches up to {following - 1}: the checkpoint is of an earlier time, and the"
                " rows may be new; restore the table of that time, too"
            )
        return batch < following


class ParquetTable(Table):
    """A directory of Parquet files, partitioned by folders."""

    def committed(self) -> int | None:
        """See the base class. Also counts a batch that a killed run left unfinished.

        Raises as `add` if the unfinished batch does not follow the table's last batch.
        """
        done = self._done()
        found = self._begun(done)
        if found is not None:
            return int(found["batch"])
        return None if done is None else done[1]

    def add(self, rows: DataFrame, query: str, batch: int) -> None:
        """Add a batch. A reader may see some files before the others.

        Also raises the base class's errors for a batch that a killed run left unfinished.
        """
        self._finish()
        if self._is_there(query, batch, self._done()):
            return
        self._keep_shape(rows.schema)
        files = self._stage(rows, query, batch)
        store_json(self._intent, {"query": query, "batch": batch, "files": files})
        self._finish()

    @property
    def _intent(self) -> Path:
        return self.work / "intent.json"

    @property
    def _note(self) -> Path:
        return self.path / "_deedbook" / f"{self.app}.json"

    @property
    def _shape_file(self) -> Path:
        return self.path / "_deedbook" / "table.json"

    def _shape(self) -> Shape | None:
        found = load_json(self._shape_file)
        try:
            return None if found is None else Shape.of_json(found)
        except ValueError as error:
            raise _not_ours(self._shape_file, str(error)) from None

    def _keep_shape(self, schema: StructType) -> None:
        """Store the shape of a table without a stored shape, to compare with later runs.

        Raises `LockedError` if an export of another source does the same.
        """
        self.check(schema)
        if self._shape() is None:
            with alone(self._shape_file.with_suffix(".lock"), f"begins the table {self.path}"):
                self.check(schema)
                store_json(self._shape_file, asdict(Shape.of(schema, self.partition_by)))

    def _done(self) -> tuple[str, int] | None:
        found = load_json(self._note)
        return None if found is None else _batch_of(found, self._note)

    def _begun(self, done: tuple[str, int] | None) -> dict[str, Any] | None:
        """The intent of a killed run; None without an intent.

        Raises as `_is_there`: the table may be gone since, or be an older copy.
        """
        intent = load_json(self._intent)
        if intent is None:
            return None
        try:
            self._is_there(*_batch_of(intent, self._intent), done)
        except ContiguityError as error:
            raise ContiguityError(
                f"{error}. A run was killed in the middle of the batch, as {self._intent} says:"
                f" restore the table; or remove what is left of it, {self.work} and the checkpoint,"
                " to begin with the first record"
            ) from None
        return intent

    def _finish(self) -> None:
        """Finish a batch whose run was killed after the intent."""
        done = self._done()
        intent = self._begun(done)
        if intent is None:
            return
        if done != (intent["query"], intent["batch"]):
            try:
                self._move([self._staged_name(file, name) for file, name in intent["files"]])
            except (KeyError, TypeError, ValueError) as error:
                raise _not_ours(self._intent, str(error)) from None
            store_json(self._note, {"query": intent["query"], "batch": intent["batch"]})
        self._intent.unlink()
        shutil.rmtree(self.work / "staged", ignore_errors=True)

    def _staged_name(self, file: object, name: object) -> tuple[str, str]:
        """A file of an intent and the file's name; an earlier version noted the whole path."""
        if not isinstance(file, str) or not isinstance(name, str):
            raise TypeError(f"{[file, name]!r} are no two names")
        begin = f"{self.work / 'staged'}/"
        return file.removeprefix(begin), name


class DeltaTable(Table):
    """A Delta table, by delta-rs. Its log notes each batch as an application's transaction."""

    def committed(self) -> int | None:
        """As in the base class."""
        opened = self._open()
        return None if opened is None else opened.transaction_version(self.app)

    def add(self, rows: DataFrame, query: str, batch: int) -> None:
        """Add a batch in a single commit."""
        from deltalake import CommitProperties, Transaction
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(rows.schema, timezone="UTC")
        opened = self._open()
        if opened is None:
            opened = _delta().create(self.path, schema, partition_by=list(self.partition_by))
        self._compare(Shape.of_delta(opened), rows.schema)
        # delta-rs keeps versions, and refuses nothing. The query's own name identifies the owner.
        own = f"{self.app}#{query}"
        last, of_query = opened.transaction_version(self.app), opened.transaction_version(own)
        done = None if last is None else (query if of_query == last else "another", last)
        if self._is_there(query, batch, done):
            return
        files = self._stage(rows, query, batch)
        for stray in self.files(query, batch):  # of a run that was killed before its commit
            stray.unlink()
        self._move(files)
        opened.create_write_transaction(
            [self._added(name) for _, name in files],
            "append",
            schema,
            list(self.partition_by),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(self.app, batch), Transaction(own, batch)]
            ),
        )

    def _shape(self) -> Shape | None:
        opened = self._open()
        return None if opened is None else Shape.of_delta(opened)

    def _open(self) -> Any:
        return _delta()(self.path) if _delta().is_deltatable(str(self.path)) else None

    def _added(self, name: str) -> Any:
        from deltalake.transaction import AddAction

        file = self.path / name
        found = file.stat()
        return AddAction(
            name,
            found.st_size,
            _partition_values(name),
            int(found.st_mtime * 1000),
            True,
            json.dumps(_statistics(file)),
        )


def table(
    kind: TableKind, path: Path, app: str, work: Path, partition_by: Sequence[str] = ()
) -> Table:
    """A table of a kind. Raises `InvalidArgumentError` without the library of Delta tables."""
    if kind == "parquet":
        return ParquetTable(path, app, work, tuple(partition_by))
    _delta()
    return DeltaTable(path, app, work, tuple(partition_by))


def _batch_of(found: dict[str, Any], file: Path) -> tuple[str, int]:
    """The query and the number of a batch in a note's file. Raises `CorruptError`."""
    query, batch = found.get("query"), found.get("batch")
    if not isinstance(query, str) or type(batch) is not int or batch < 0:
        raise _not_ours(file, f"query {query!r} and batch {batch!r}, must be a text and a number")
    return query, batch


def _not_ours(file: Path, reason: str) -> CorruptError:
    error = CorruptError(f"{file}: {reason}; nothing was moved")
    error.path, error.reason = str(file), reason
    return error


def _delta() -> Any:
    try:
        import deltalake
    except ImportError as error:
        raise InvalidArgumentError(
            "Delta tables need deltalake: pip install 'deedbook[delta]'"
        ) from error
    return deltalake.DeltaTable


def _in_table(folder: Path, name: str) -> str:
    """The name of a staged file in a table. For a missing value, Sail's folder has none."""
    parts = [part if part.partition("=")[2] else f"{part}{_NULL}" for part in folder.parts]
    return str(Path(*parts, name))


def _partition_values(name: str) -> dict[str, str | None]:
    """The values in the names of a file's folders."""
    values: dict[str, str | None] = {}
    for folder in name.split("/")[:-1]:
        key, _, value = folder.partition("=")
        values[unquote(key)] = None if value == _NULL else unquote(value)
    return values


def _statistics(file: Path) -> dict[str, Any]:
    """Rows, with minimum, maximum and nulls of the columns of numbers and times.

    Readers of Delta round times down to milliseconds, so the maximum is rounded up.
    """
    import pyarrow.parquet as pq

    found = pq.read_metadata(file)
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    for place in range(found.num_columns):
        columns = [group.column(place) for group in groups]
        seen: list[Any] = [column.statistics for column in columns]
        name = columns[0].path_in_schema if columns else ""
        if not seen or "." in name or any(one is None or not one.has_min_max for one in seen):
            continue
        low, high = min(one.min for one in seen), max(one.max for one in seen)
        if isinstance(low, datetime):
            least[name], greatest[name] = _time(low), _time(high + timedelta(microseconds=999))
        elif isinstance(low, int):
            least[name], greatest[name] = low, high
        else:
            continue
        nulls[name] = sum(one.null_count for one in seen)
    return {
        "numRecords": found.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _time(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
