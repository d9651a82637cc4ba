"""The cost of writing: a Book and a WAL next to Spark's own Parquet, from the same input.

Batch: an uncompressed Parquet table of 200-byte payloads is written as Parquet, Book and WAL.
Stream: a Book is streamed into Parquet and into a Book, 200,000 rows a batch. Deedbook syncs its
output; Spark's Parquet does not.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_measure import BATCH_ROWS, Row, Sizes, book, medians, rate, session

PAYLOAD = "cast(rpad(cast(id as string), 200, 'x') as binary) as jam"


def batch_writers(spark: Any, source: str, out: Path) -> dict[str, Callable[[], None]]:
    """Each writes the whole table to a new place."""

    def write(format: str, **options: str) -> None:
        frame = spark.read.parquet(source)
        frame.write.format(format).mode("append").options(**options).save(str(out))

    return {
        "Parquet": lambda: write("parquet", compression="none"),
        "Book": lambda: write("deedbook", log="book"),
        "WAL": lambda: write("deedbook", log="wal"),
    }


def stream_writers(spark: Any, source: str, out: Path) -> dict[str, Callable[[], None]]:
    """Each streams the whole book to a new place."""

    def stream(format: str, **options: str) -> None:
        frame = spark.readStream.format("deedbook").option("maxRowsPerTrigger", BATCH_ROWS)
        rows = frame.option("columns", "jam").load(source)
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = rows.writeStream.format(format).options(**options)
            writer = writer.option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start(str(out))
            query.awaitTermination()
        if query.exception() is not None:
            raise query.exception()

    return {
        "stream into Parquet": lambda: stream("parquet", compression="none"),
        "stream into Book": lambda: stream("deedbook", log="book"),
    }


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about writing."""
    table, out = str(place / "table"), place / "out"
    source = book(place / "book", sizes.events)
    spark = session()
    rows = spark.range(0, sizes.events, 1, 4).selectExpr(PAYLOAD)
    rows.write.option("compression", "none").parquet(table)

    def clear() -> None:
        shutil.rmtree(out, ignore_errors=True)

    found = medians(batch_writers(spark, table, out), sizes.rounds, clear)
    found |= medians(stream_writers(spark, source, out), sizes.rounds, clear)
    spark.stop()
    return [
        rate("batch write of a Book from Parquet", "Book", "Parquet", found, 0.75),
        rate("batch write of a WAL from Parquet", "WAL", "Parquet", found, None),
        rate("stream Book to Book", "stream into Book", "stream into Parquet", found, 0.6),
    ]
