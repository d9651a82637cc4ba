"""What writing costs: a Book and a WAL beside Spark's own Parquet, from the same input.

``python benches/python/spark_write.py [--events 1000000] [--rounds 5]`` prints medians.
Batch: an uncompressed Parquet table of 200-byte payloads is written as Parquet, Book and WAL.
Stream: a Book is streamed into Parquet and into a Book, 200,000 rows a batch
(``Trigger.AvailableNow``). Deedbook syncs what it writes; Spark's Parquet does not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_stream import BATCH_ROWS, make, session

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
        "Parquet": lambda: stream("parquet", compression="none"),
        "Book": lambda: stream("deedbook", log="book"),
    }


def medians(writers: dict[str, Callable[[], None]], out: Path, rounds: int) -> dict[str, float]:
    """Seconds of each, in turn; the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in writers}
    for _ in range(rounds + 1):
        for name, write in writers.items():
            shutil.rmtree(out, ignore_errors=True)
            begun = time.perf_counter()
            write()
            seconds[name].append(time.perf_counter() - begun)
    shutil.rmtree(out, ignore_errors=True)
    return {name: statistics.median(all_[1:]) for name, all_ in seconds.items()}


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as directory:
        table, out = str(Path(directory) / "table"), Path(directory) / "out"
        book = make(Path(directory) / "book", options.events)
        spark = session()
        rows = spark.range(0, options.events, 1, 4).selectExpr(PAYLOAD)
        rows.write.option("compression", "none").parquet(table)
        batch = medians(batch_writers(spark, table, out), out, options.rounds)
        stream = medians(stream_writers(spark, book, out), out, options.rounds)
        spark.stop()
    result = {
        "events": options.events,
        "batch, s": {name: round(seconds, 2) for name, seconds in batch.items()},
        "Book / Parquet, rows a second": round(batch["Parquet"] / batch["Book"], 2),
        "WAL / Parquet, rows a second": round(batch["Parquet"] / batch["WAL"], 2),
        "stream, s": {name: round(seconds, 2) for name, seconds in stream.items()},
        "stream into Book / into Parquet": round(stream["Parquet"] / stream["Book"], 2),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
