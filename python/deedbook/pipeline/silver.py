"""From the bronze logs to one table of typed events, each once, and on to gold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from deedbook._spark_session import in_utc
from deedbook.jobs import parse_events
from deedbook.pipeline.config import Config, Source
from deedbook.pipeline.gold import Gold
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.progress import Journal
from deedbook.spark._paths import file_url
from deedbook.spark._worker import settle
from deedbook.spark.jobs._stream import Checkpoint, run_stream
from deedbook.spark.jobs._tables import Table, table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EVENT_COLUMNS", "refine"]

EVENT_COLUMNS: Final = (
    "id binary, pubkey binary, created_at timestamp, kind int, tags array<array<string>>,"
    " content string, sig binary"
)
_NAMES: Final = [column.split()[0] for column in EVENT_COLUMNS.split(", ")]
_PARSED: Final = f"{EVENT_COLUMNS}, reason string, position bigint, value binary"
_AGAIN: Final = "begin in another directory"
"""What is possible, too, where a table lacks batches: the others have them."""
_POSITION: Final = {"book": ("event", "jam"), "wal": ("lsn", "payload")}


def refine(spark: SparkSession, config: Config, layout: Layout, journal: Journal) -> int:
    """Take into silver and gold what bronze has got; returns the rows read.

    A batch goes to the first table of silver, with each event id once over all sources. The other
    tables, and gold, are made of what that table got, so that all of them have the same, wherever
    a run before was killed. Records that are no events go to the quarantine.
    """
    from pyspark.sql import functions as F

    checkpoint = Checkpoint(str(layout.silver(config.tables[0])), SILVER, layout.checkpoint(SILVER))
    work = layout.work
    first, *others = (
        table(kind, layout.silver(kind), SILVER, work / kind, ["day"]) for kind in config.tables
    )
    bad = table("parquet", layout.quarantine(SILVER), SILVER, work / "quarantine")
    gold = Gold(config, layout, work)
    for made in (first, *others, bad, *gold.tables):
        replace(checkpoint, target=str(made.path)).check(made.committed(), _AGAIN)
    parts = [_events(spark, source, layout, config.batch_bytes) for source in config.sources]
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    # A record that is no event is no duplicate of another.
    own = F.concat_ws(":", "source", F.col("position").cast("string")).cast("binary")
    rows = rows.withColumn("key", F.coalesce("id", own)).dropDuplicates(["key"]).drop("key")

    rows_read: list[int] = []

    def write(frame: DataFrame, query: str, batch: int) -> None:
        begun = time.monotonic()
        kept = frame.persist()
        try:
            rows_read.append(kept.count())
            good = kept.where("reason is null").select("source", *_NAMES)
            first.add(good.withColumn("day", F.to_date("created_at")), query, batch)
            wrong = kept.where("reason is not null")
            bad.add(wrong.select("source", "position", "reason", "value"), query, batch)
        finally:
            kept.unpersist()
        added = _added(spark, first, query, batch)
        for other in others:
            other.add(added, query, batch)
        events = gold.add(added, query, batch)
        seconds = time.monotonic() - begun
        journal.batch(SILVER, batch, events, seconds)

    with in_utc(spark):  # days
        run_stream(spark, SILVER, rows, checkpoint, write)
    return sum(rows_read)


def _added(spark: SparkSession, to: Table, query: str, batch: int) -> DataFrame:
    """What a table got with a batch."""
    files = to.files(query, batch)
    schema = f"source string, {EVENT_COLUMNS}, day date"
    if not files:
        return spark.createDataFrame([], schema)
    # Spark takes the files for globs, and the base path as it is.
    reader = spark.read.schema(schema).option("basePath", f"file://{to.path}")
    return reader.parquet(*map(file_url, files))


def _events(spark: SparkSession, source: Source, layout: Layout, batch_bytes: int) -> DataFrame:
    """The stream of a bronze log as events, or reasons why a record is none."""
    from pyspark.sql import functions as F

    reader = spark.readStream.format("deedbook").option("log", source.bronze)
    reader = reader.option("maxBytesPerTrigger", batch_bytes)
    path = str(layout.bronze(source.name))
    if source.bronze == "nostr":
        # What another event replaced or deleted was an event, too.
        stored = reader.option("include", "all").load(path).select(*_NAMES)
        empty = {"reason": "string", "position": "bigint", "value": "binary"}
        for name, kind in empty.items():
            stored = stored.withColumn(name, F.lit(None).cast(kind))
        rows = stored
    else:
        position, payload = _POSITION[source.bronze]
        check = source.check

        def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            settle()
            for batch in batches:
                yield _parsed(batch, position, payload, check)

        rows = reader.option("columns", f"{position},{payload}").load(path)
        rows = rows.mapInArrow(parse, _PARSED)
    return rows.withColumn("source", F.lit(source.name))


def _parsed(batch: pa.RecordBatch, position: str, payload: str, check: Any) -> pa.RecordBatch:
    """Events of payloads; of the others the reason, the position and the payload."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    lines = pa.RecordBatch.from_arrays([batch[payload]], names=["value"])
    parsed = pa.record_batch(parse_events(lines, check=check))
    # An empty payload is passed over by an import; here it is a record, and no event.
    reason = compute.coalesce(parsed["error"], pa.scalar("empty"))
    reason = compute.if_else(compute.is_valid(parsed["id"]), pa.scalar(None, pa.string()), reason)
    is_bad = compute.is_valid(reason)
    nothing = pa.scalar(None, pa.binary())
    columns = [
        *(
            parsed[name].cast(pa.binary()) if name in ("id", "pubkey", "sig") else parsed[name]
            for name in _NAMES
        ),
        reason,
        batch[position],
        compute.if_else(is_bad, batch[payload], nothing),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[*_NAMES, "reason", "position", "value"])
