"""The steps of a pipeline, for both forms: DataFrames in, DataFrames out, by Spark's public API."""

from __future__ import annotations

import json
import re
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deedbook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = "path string, modificationTime timestamp, length bigint, content binary"
JSON_OF_EVENT = (
    "encode(to_json(struct(lower(hex(id)) AS id, lower(hex(pubkey)) AS pubkey,"
    " unix_seconds(created_at) AS created_at, kind, tags, content, lower(hex(sig)) AS sig)),"
    " 'UTF-8')"
)
LOGS = {
    "book": ("path,event,jam", "event", "jam"),
    "wal": ("path,lsn,payload", "lsn", "payload"),
    "ledger": ("path,record,payload", "CAST(record AS BIGINT)", "payload"),
    "nostr": (
        "path,offset,id,pubkey,created_at,kind,tags,content,sig",
        "offset",
        JSON_OF_EVENT,
    ),
}
"""For each log format: the columns to read, a record's position, and the record's JSON."""
BRONZE: dict[str, Any] = {"book": deedbook.Book, "wal": deedbook.Wal}
NAME = re.compile(r"\w[\w .:-]*")
KIND = re.compile(r"[\w<>(),:` .-]+")
"""Allowed names and types of columns in SQL: inferred columns have names from a sender."""


class Source(NamedTuple):
    """A source of the pipeline, and the log for the whole source."""

    name: str
    path: str
    kind: str = "lines"
    """``lines`` for files of JSON lines in a folder, or the format of a log."""
    bronze: str = "book"
    options: tuple[tuple[str, str], ...] = ()
    """Options of the reader: ``maxBytesPerTrigger``, or ``consumer`` for a WAL."""

    @property
    def order(self) -> list[str]:
        """The order of a batch's rows. Names of a ledger's files begin with numbers."""
        first = ["length(source)"] if self.kind == "ledger" else []
        return [*first, "source", "position"]

    def stream(self, spark: SparkSession) -> DataFrame:
        """Each line or record: ``source``, ``position``, ``value``."""
        if self.kind == "lines":
            return lines(spark, self.path, dict(self.options))
        return records(spark, self.path, self.kind, dict(self.options))


class Pipeline(NamedTuple):
    """A ``pipeline.json``, with paths relative to the file's folder."""

    folder: Path
    sources: list[Source]
    columns: dict[str, str]
    key: str
    time: str
    """The time of a row, in SQL."""

    @property
    def gold(self) -> str:
        """The statements of ``gold.sql``."""
        return (self.folder / "gold.sql").read_text()


def load(folder: Path, spark: SparkSession) -> Pipeline:
    """Read a pipeline. Infers missing columns once, and keeps the columns in a file."""
    folder = folder.absolute()
    found = json.loads((folder / "pipeline.json").read_text())
    sources = []
    for one in found["sources"]:
        options = tuple(one.pop("options", {}).items())
        sources.append(Source(**{**one, "path": str(folder / one["path"])}, options=options))
    columns = found.get("columns") or kept_columns(folder / "columns.json", sources, spark)
    for name, kind in columns.items():
        if not NAME.fullmatch(name) or not KIND.fullmatch(kind):
            raise ValueError(f"column {name!r} of type {kind!r}: neither may have quotes")
    return Pipeline(folder, sources, columns, found["key"], found["time"])


def kept_columns(file: Path, sources: list[Source], spark: SparkSession) -> dict[str, str]:
    """The columns found by the first run in the present data."""
    if not file.exists():
        found: dict[str, str] = {}
        for one in sources:
            frame = spark.read.json(batch_of(spark, one).selectExpr("CAST(value AS STRING)"))
            names = [field for field in frame.schema if field.name != "_corrupt_record"]
            found.update({field.name: field.dataType.simpleString() for field in names})
        if not found:
            raise ValueError(
                "there is nothing yet to infer columns from: name them, or begin later"
            )
        new = file.with_suffix(".new")
        new.write_text(json.dumps(found, indent=1))
        new.rename(file)
    columns: dict[str, str] = json.loads(file.read_text())
    return columns


def batch_of(spark: SparkSession, source: Source) -> DataFrame:
    """The present rows of a source."""
    if source.kind == "lines":
        return spark.read.text(source.path)
    columns, _, value = LOGS[source.kind]
    reader = spark.read.format("deedbook").option("log", source.kind).option("columns", columns)
    return reader.load(source.path).selectExpr(f"{value} AS value")


def lines(spark: SparkSession, folder: str, options: dict[str, str]) -> DataFrame:
    """The lines of the files in a folder, byte by byte, without empty lines.

    A file must be complete when it appears in the folder, and fit into the memory of a task.
    """
    files = spark.readStream.format("binaryFile").schema(FILES).options(**options)
    # Each byte is a character of ISO-8859-1, so lines in other encodings than UTF-8 do not change.
    found = (
        files.option("maxFileAge", "100000d")
        .load(folder)
        .selectExpr(
            "path AS source",
            r"posexplode(split(decode(content, 'ISO-8859-1'), '\n')) AS (at, line)",
        )
    )
    return found.where("line <> ''").selectExpr(
        "source", "at + 1L AS position", "encode(line, 'ISO-8859-1') AS value"
    )


def records(
    spark: SparkSession, path: str, kind: str, options: dict[str, str] | None = None
) -> DataFrame:
    """The records of a log as it grows."""
    columns, position, value = LOGS[kind]
    reader = spark.readStream.format("deedbook").options(log=kind, columns=columns)
    return (
        reader.options(**(options or {}))
        .load(path)
        .selectExpr("path AS source", f"{position} AS position", f"{value} AS value")
    )


def judged(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Rows with the JSON's fields, ``_time``, and ``_reason``: the fault of a bad row."""
    schema = ", ".join(f"`{name}` {kind}" for name, kind in pipeline.columns.items())
    given = "schema_of_variant(variant_get(json, '$[\"{0}\"]')) <> 'VOID'"
    wrong = [
        f"IF(row.`{name}` IS NULL AND {given.format(name)}, '{name}', NULL)"
        for name in pipeline.columns
    ]
    return (
        rows.selectExpr("*", "CAST(value AS STRING) AS text")
        .selectExpr(
            "*",
            "try_parse_json(text) AS json",
            f"from_json(text, '{schema}, _corrupt STRING',"
            " map('columnNameOfCorruptRecord', '_corrupt')) AS row",
        )
        .selectExpr(
            "source AS _source",
            "position AS _position",
            "value AS _value",
            "row.*",
            f"""CASE WHEN NOT is_valid_utf8(text) THEN 'not UTF-8'
            WHEN json IS NULL OR row IS NULL THEN 'not JSON'
            WHEN schema_of_variant(json) NOT LIKE 'OBJECT%' THEN 'not an object'
            WHEN row._corrupt IS NOT NULL
            THEN concat('not of the schema: ', concat_ws(', ', {", ".join(wrong)}))
            WHEN row.`{pipeline.key}` IS NULL THEN 'no {pipeline.key}' END AS _fault""",
        )
        .selectExpr("*", f"{pipeline.time} AS _time")
        .selectExpr("*", "coalesce(_fault, IF(_time IS NULL, 'no time', NULL)) AS _reason")
    )


def silver_of(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The good rows, typed, each key once. Any of several rows with a key may be kept."""
    names = [f"`{name}`" for name in pipeline.columns if name != "time"]
    good = judged(rows, pipeline).where("_reason IS NULL")
    return good.selectExpr(*names, "_time AS time").dropDuplicates([pipeline.key])


def quarantine_of(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The other rows: file or log, line or position, and the reason."""
    bad = judged(rows, pipeline).where("_reason IS NOT NULL")
    names = ("source", "position", "reason", "value")
    return bad.selectExpr(*[f"_{name} AS {name}" for name in names])


def union(frames: list[DataFrame]) -> DataFrame:
    """All rows of several frames."""
    return reduce(lambda one, other: one.unionByName(other), frames)


def create_bronze(source: Source, path: Path) -> Any:
    """Create a source's log if missing, because streams read the log from the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    BRONZE[source.bronze].open(path, "a").close()
