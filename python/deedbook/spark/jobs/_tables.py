"""Tables of Parquet files: plain by Spark's file sink, or Delta. Each batch is added once.

For a Delta table, Spark writes the files of a batch into a folder next to the table. The driver
syncs the files, gives each file a name in the table, and shows the files with a commit that also
notes the batch.
"""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from deedbook import ContiguityError, InvalidArgumentError
from deedbook._spark_session import in_utc
from deedbook._system.durable import sync_file, sync_folders
from deedbook._system.regular import below, names_in
from deedbook.spark._options.paths import file_url
from deedbook.spark.jobs._engine.sail import is_sail
from deedbook.spark.jobs._input.stream import newest
from deedbook.spark.jobs._shape import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["DeltaTable", "ParquetTable", "Table", "TableKind"]

TableKind = Literal["parquet", "delta"]
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_SINK_LOG: Final = "_spark_metadata"


class Table(ABC):
    """A table, and the columns of its partitions."""

    def __init__(self, path: Path, partition_by: Sequence[str]) -> None:
        self.path, self.partition_by = path, tuple(partition_by)

    @abstractmethod
    def committed(self) -> int | None:
        """The last batch of the job in the table; None without a batch. Changes nothing."""

    def check(self, schema: StructType) -> None:
        """Refuse rows with other columns or partitions than the table's.

        Changes nothing. Raises `InvalidArgumentError` with both.
        """
        self._compare(self._shape(), schema)

    @abstractmethod
    def _shape(self) -> Shape | None:
        """The columns and the partition columns of the table; None before the first batch."""

    def _own(self, schema: StructType) -> Shape:
        return Shape.of(schema, self.partition_by)

    def _compare(self, there: Shape | None, schema: StructType) -> None:
        own = self._own(schema)
        if there is not None and there != own:
            raise InvalidArgumentError(
                f"{self.path} has {there}; this run has {own}: a table has the same of all runs and"
                " sources; choose another table for these"
            )


class ParquetTable(Table):
    """A directory of Parquet files by Spark's file sink, whose log says which files count."""

    def __init__(self, path: Path, partition_by: Sequence[str], spark: SparkSession) -> None:
        super().__init__(path, partition_by)
        self._spark = spark

    def committed(self) -> int | None:
        """The last batch in the sink's log, which has only one source."""
        return newest(self.path / _SINK_LOG)

    def refuse_others(self) -> None:
        """Raise `InvalidArgumentError` for a directory with files, before a source's first batch.

        To Spark's readers, files are gone once the sink has its log; and a source of its own would
        have batches of the same numbers.
        """
        if any(name[0] != "." for name in names_in(self.path)):
            raise InvalidArgumentError(
                f"{self.path} has files, and no checkpoint of this source knows them: restore the"
                " checkpoint or say where it is; else export to a new directory, or to Delta"
            )

    def _shape(self) -> Shape | None:
        if self.committed() is None or not any(self.path.rglob("part-*.parquet")):
            return None  # Spark reads no schema from a table without rows
        frame = self._spark.read.parquet(file_url(self.path))
        files = [unquote(urlsplit(name).path) for name in frame.inputFiles()[:1]]
        folders = [Path(name).relative_to(self.path).parts[:-1] for name in files]
        by = [folder.partition("=")[0] for folder in folders[0]] if folders else []
        return Shape.of(frame.schema, by).without_types(by)

    def _own(self, schema: StructType) -> Shape:
        # Readers take the type of a partition's values from their texts.
        return super()._own(schema).without_types(self.partition_by)


class DeltaTable(Table):
    """A Delta table, by delta-rs. Its log notes each batch as an application's transaction.

    ``work`` is a folder on the disk of the table, for a job and source. Raises
    `InvalidArgumentError` without the library.
    """

    def __init__(self, path: Path, partition_by: Sequence[str], app: str, work: Path) -> None:
        super().__init__(path, partition_by)
        self._app, self._work = app, work
        _delta()
        if (decoded := unquote(str(path))) != str(path):
            raise InvalidArgumentError(f"{path}: delta-rs would look at {decoded}; use no % there")

    def committed(self) -> int | None:
        """As in the base class."""
        opened = self._open()
        return None if opened is None else opened.transaction_version(self._app)

    def add(self, rows: DataFrame, query: str, batch: int) -> None:
        """Add a batch in a single commit, unless the table has the batch.

        Raises `InvalidArgumentError` for another query's batch, and `ContiguityError` for a batch
        that is neither the next nor the last.
        """
        from deltalake import CommitProperties, Transaction
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(rows.schema, timezone="UTC")
        opened = self._open()
        if opened is None:
            opened = _delta().create(self.path, schema, partition_by=list(self.partition_by))
        self._compare(Shape.of_delta(opened), rows.schema)
        # delta-rs keeps versions, and refuses nothing. The query's own name identifies the owner.
        own = f"{self._app}#{query}"
        last, of_query = opened.transaction_version(self._app), opened.transaction_version(own)
        done = None if last is None else (query if of_query == last else "another", last)
        if self._is_there(query, batch, done):
            return
        files = self._stage(rows, query, batch)
        # Files of a run that was killed before its commit.
        for stray in self.path.rglob(f"part-{query[:8]}-{batch:06}-*.parquet"):
            stray.unlink()
        self._move(files)
        opened.create_write_transaction(
            [self._added(name) for _, name in files],
            "append",
            schema,
            list(self.partition_by),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(self._app, batch), Transaction(own, batch)]
            ),
        )

    def _stage(self, rows: DataFrame, query: str, batch: int) -> list[tuple[str, str]]:
        """Let Spark write the files of a batch; returns each with its name in the table.

        The first is the path below the staged folder.
        """
        staged = self._work / "staged"
        shutil.rmtree(staged, ignore_errors=True)
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
        sync_folders(self._work, files)
        return named

    def _move(self, files: Sequence[tuple[str, str]]) -> None:
        """Give staged files their names in the table."""
        moves = [
            (below(self._work / "staged", file), below(self.path, name)) for file, name in files
        ]
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
        sync_folders(self.path, (target for _, target in moves))

    def _is_there(self, query: str, batch: int, done: tuple[str, int] | None) -> bool:
        """Whether a batch was added, by the query and number of the last batch.

        Raises `ContiguityError` for a batch after a gap or before the last batch, as logs do,
        because Spark repeats only the last batch.
        """
        if done is not None and done[0] != query:
            raise InvalidArgumentError(
                f"{self.path}: its batches of {self._app} are of query {done[0]}, not {query},"
                " whose checkpoint is another one"
            )
        following = 0 if done is None else done[1] + 1
        if batch > following:
            has = f"none of {self._app}" if done is None else f"its batches up to {done[1]}"
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
