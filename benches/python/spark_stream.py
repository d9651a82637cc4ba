"""What a stream costs: throughput beside the batch read, and a trigger with one new record.

``python benches/python/spark_stream.py [--events 1000000] [--rounds 5]`` prints medians.
Throughput: a whole book in batches of 200,000 rows (``Trigger.AvailableNow``), and the same in one
batch read, both into Spark's ``noop`` sink. One record: what a trigger takes, by the query's
progress, beside Spark's own ``rate-micro-batch`` source with one row a batch, and in a log ten
times as long.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EVENT_BYTES = 200
BATCH_ROWS = 200_000
TRIGGERS = 20


def make(path: Path, events: int) -> str:
    """A book of so many events."""
    from deedbook import Book

    with Book.create(path) as book:
        book.append_many(bytes(EVENT_BYTES) for _ in range(events))
    return str(path)


def session() -> Any:
    """A session on two cores."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def batch_seconds(spark: Any, path: str) -> float:
    """One batch read of the whole log."""
    begun = time.perf_counter()
    spark.read.format("deedbook").load(path).write.format("noop").mode("append").save()
    return time.perf_counter() - begun


def stream_seconds(spark: Any, path: str) -> tuple[float, int]:
    """The same as a stream; also the number of batches."""
    begun = time.perf_counter()
    frame = spark.readStream.format("deedbook").option("maxRowsPerTrigger", BATCH_ROWS).load(path)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = query.trigger(availableNow=True).start()
        query.awaitTermination()
        rows = [progress["numInputRows"] for progress in query.recentProgress]
    if query.exception() is not None:
        raise query.exception()
    return time.perf_counter() - begun, sum(map(bool, rows))


def trigger_ms(query: Any, feed: Any) -> list[int]:
    """Milliseconds of each trigger that had exactly one row."""
    seen: dict[int, int] = {}
    deadline = time.monotonic() + 120
    while len(seen) < TRIGGERS and time.monotonic() < deadline:
        feed()
        time.sleep(0.05)
        query.processAllAvailable() if feed is not idle else None
        for progress in query.recentProgress:
            if progress["numInputRows"] == 1:
                seen[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
    return [seen[batch] for batch in sorted(seen)][2:]


def idle() -> None:
    """Spark's own source feeds itself."""


def one_record_ms(spark: Any, path: str | None) -> float:
    """The median of a trigger with one new record; of Spark's own source where there is no path."""
    from deedbook import Book

    with tempfile.TemporaryDirectory() as checkpoint:
        if path is None:
            frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        else:
            frame = spark.readStream.format("deedbook").option("startingPosition", "latest")
            frame = frame.load(path)
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.start()
        try:
            if path is None:
                return statistics.median(trigger_ms(query, idle))
            with Book.open(path, "a") as book:

                def feed() -> None:
                    book.commit(bytes(EVENT_BYTES))

                return statistics.median(trigger_ms(query, feed))
        finally:
            query.stop()


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as directory:
        path = make(Path(directory) / "book", options.events)
        longer = make(Path(directory) / "longer", 10 * options.events)
        spark = session()
        batch_seconds(spark, path), stream_seconds(spark, path)  # the JVM and the workers warm up
        batch, stream, batches = [], [], 0
        for _ in range(options.rounds):
            batch.append(batch_seconds(spark, path))
            seconds, batches = stream_seconds(spark, path)
            stream.append(seconds)
        rate = one_record_ms(spark, None)
        one, one_longer = one_record_ms(spark, path), one_record_ms(spark, longer)
        spark.stop()
    read, streamed = statistics.median(batch), statistics.median(stream)
    result = {
        "events": options.events,
        "batch read, s": round(read, 2),
        "stream, s": round(streamed, 2),
        "batches": batches,
        "stream / batch, rows a second": round(read / streamed, 2),
        "trigger, rate source, ms": rate,
        "trigger, one record, ms": one,
        "trigger, ten times the log, ms": one_longer,
        "trigger / rate source": round(one / rate, 2),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
