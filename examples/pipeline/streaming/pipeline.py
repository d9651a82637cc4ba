"""The pipeline on plain Structured Streaming: ``python pipeline.py FOLDER [--once]``.

FOLDER has ``pipeline.json`` and ``gold.sql``. The pipeline writes to ``streaming`` in FOLDER.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[1]))
from steps import (
    Pipeline,
    Source,
    create_bronze,
    load,
    quarantine_of,
    records,
    silver_of,
    union,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GOLD = re.compile(r"CREATE (STREAMING TABLE|MATERIALIZED VIEW) (\w+) AS(.*?);", re.DOTALL)
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    # Keep known keys on disk, not in the memory of the JVM.
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state"
    ".RocksDBStateStoreProvider",
    # A run counts the quarantined rows by the progress of all batches.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    # A kill before the first batch leaves a temporary file, which Spark would refuse forever.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}


class Streaming:
    """The queries of a pipeline, each with a separate checkpoint."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark = spark
        self.pipeline = pipeline
        self.home = pipeline.folder / "streaming"
        self.rows: Counter[str] = Counter()
        for source in pipeline.sources:
            create_bronze(source, self.bronze(source.name))
        statements: list[tuple[str, str, str]] = GOLD.findall(pipeline.gold)
        self.streams = {name: query for kind, name, query in statements if kind[0] == "S"}
        self.views = {name: query for kind, name, query in statements if kind[0] == "M"}

    def bronze(self, source: str) -> Path:
        """The log of a source."""
        return self.home / "bronze" / source

    def stages(self) -> list[dict[str, Callable[..., StreamingQuery]]]:
        """The functions to start each query, by name. A stage reads the output of earlier
        stages."""
        pipeline = self.pipeline
        rows = {one.name: one.stream(self.spark) for one in pipeline.sources}
        logs = [
            records(self.spark, str(self.bronze(one.name)), one.bronze) for one in pipeline.sources
        ]
        bronze = {
            f"bronze/{one.name}": partial(self._to_log, one, rows[one.name])
            for one in pipeline.sources
        }
        bad = quarantine_of(union([*rows.values()]), pipeline)
        silver = silver_of(union(logs), pipeline)
        self.silver_schema = silver.schema
        return [
            {**bronze, "quarantine": partial(self._to_table, "quarantine", bad)},
            {"silver": partial(self._to_table, "silver", silver)},
            {f"gold/{name}": partial(self._gold, name) for name in self.streams},
        ]

    def make_views(self) -> None:
        """Make the materialized views again."""
        silver = self.spark.read.schema(self.silver_schema).parquet(str(self.home / "silver"))
        silver.createOrReplaceTempView("silver")
        for name, query in self.views.items():
            self.spark.sql(query).write.mode("overwrite").parquet(str(self.home / "gold" / name))

    def _to_log(self, source: Source, rows: DataFrame, trigger: dict[str, Any]) -> StreamingQuery:
        """Append the rows of each batch, in order, to the log of a source."""
        name = f"bronze/{source.name}"
        checkpoint = self.home / "checkpoints" / name

        def append(batch: DataFrame, number: int) -> None:
            query = json.loads((checkpoint / "metadata").read_text())["id"]
            # The log knows the last batch, and appends a batch repeated by Spark only once.
            options = {"txnAppId": name, "txnVersion": number, "txnQuery": query}
            ordered = batch.orderBy(*map(F.expr, source.order)).selectExpr("value AS payload")
            seen = Observation()
            counted = ordered.observe(seen, F.count(F.lit(1)).alias("rows"))
            to = counted.write.format("deedbook").mode("append")
            to.options(**options).save(str(self.bronze(source.name)))
            self.rows[name] += seen.get["rows"]

        writer = rows.writeStream.queryName(name).foreachBatch(append).trigger(**trigger)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def _to_table(self, name: str, rows: DataFrame, trigger: dict[str, Any]) -> StreamingQuery:
        """Append to a table of Parquet files; ``_spark_metadata`` lists the valid files."""
        checkpoint = self.home / "checkpoints" / name
        table = self.home / name
        has = _last(table / "_spark_metadata")
        if has > _last(checkpoint / "offsets"):
            # Spark would regard new batches with old numbers as repeats, and write nothing.
            raise RefusedError(
                f"{table} has batches 0 to {has}, and no checkpoint is at {checkpoint} that knows"
                " them: restore its last state, or remove both"
            )
        rows = rows.observe("written", F.count(F.lit(1)).alias("rows"))
        writer = rows.writeStream.queryName(name).format("parquet").trigger(**trigger)
        return writer.option("checkpointLocation", str(checkpoint)).start(str(table))

    def _gold(self, name: str, trigger: dict[str, Any]) -> StreamingQuery:
        """An aggregate of silver: a window is added once the watermark has passed it."""
        silver = self.home / "silver"
        silver.mkdir(exist_ok=True)
        stream = self.spark.readStream.schema(self.silver_schema).parquet(str(silver))
        stream.createOrReplaceTempView("silver")
        return self._to_table(f"gold/{name}", self.spark.sql(self.streams[name]), trigger)


class RefusedError(Exception):
    """Going on would lose rows, or write rows twice."""


def _last(folder: Path) -> int:
    """The last batch noted by Spark in a folder; -1 for none."""
    names = [file.name.partition(".")[0] for file in folder.glob("[0-9]*")]
    return max(map(int, names), default=-1)


def once(pipeline: Streaming) -> dict[str, int]:
    """Process the present input through all tables. Returns the rows written by each query."""
    rows = {}
    for stage in pipeline.stages():
        started = {name: start({"availableNow": True}) for name, start in stage.items()}
        for name, query in started.items():
            query.awaitTermination()
            rows[name] = pipeline.rows[name] or written(query)
    pipeline.make_views()
    return rows


def written(query: StreamingQuery) -> int:
    """The rows written to a table by the batches of a query."""
    return sum(
        one.observedMetrics["written"]["rows"]
        for one in query.recentProgress
        if "written" in one.observedMetrics
    )


def for_ever(pipeline: Streaming, every: float) -> None:
    """Run all queries at the same time, until a query fails or the process ends."""
    trigger = {"processingTime": f"{every} seconds"}
    started = [start(trigger) for stage in pipeline.stages() for start in stage.values()]
    print(f"{len(started)} queries run", flush=True)
    while not pipeline.spark.streams.awaitAnyTermination(max(1, int(every))):
        pipeline.make_views()


def alone(folder: Path) -> IO[bytes]:
    """The lock of a pipeline, released with the process. Two runs would write the same batches."""
    lock = (folder / "lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RefusedError(f"another process runs the pipeline in {folder}") from error
    return lock


def main() -> int:
    """Run a pipeline. Returns 1 if the run quarantined rows, 2 if the run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--once", action="store_true", help="take what is there now, and end")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between batches")
    parser.add_argument("--master", help="of Spark; else that of spark-submit, or this machine")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args()

    from pyspark.sql import SparkSession

    import deedbook.spark

    builder = SparkSession.builder.appName(asked.folder.name)
    builder = builder.master(asked.master) if asked.master else builder
    given = dict(setting.split("=", 1) for setting in asked.conf)
    spark = builder.config(map={**SETTINGS, **given}).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    deedbook.spark.register(spark)  # several streams begin at the same time
    try:
        lock = alone(asked.folder)
        pipeline = Streaming(spark, load(asked.folder, spark))
        if not asked.once:
            for_ever(pipeline, asked.every)
        rows = once(pipeline)
    except Exception as error:
        # The rest of the message is the plan of the query.
        text = str(error).partition("=== Streaming Query ===")[0].rstrip()
        print(f"pipeline: {text}", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    lock.close()
    print(json.dumps(rows))
    bad = rows["quarantine"]
    if bad:
        table = pipeline.home / "quarantine"
        print(f"pipeline: {bad} rows came into the quarantine, {table}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
