"""The cost of a stream: throughput next to the batch read, and a trigger with one new record.

Batches of 200,000 rows cannot approach the batch read: for each batch Spark writes its checkpoint
twice, plans a query and runs the query, for any source. For comparison, two more streams run: from
ready-made batches, and from Spark's own Parquet files. The row also has the time of the writes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_measure import (
    BATCH_ROWS,
    CORES,
    PAYLOAD_BYTES,
    Row,
    Sizes,
    Spent,
    book,
    cost,
    deedbook,
    medians,
    rate,
    read_all,
    session,
)
from spark_ready import BATCH_OF_ARROW, ready_source

TRIGGERS = 20
TIMEOUT_SECONDS = 120


def stream_all(frame: Any) -> float:
    """Stream everything in batches; returns the seconds of checkpoint writes."""
    with tempfile.TemporaryDirectory() as checkpoint:
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = query.trigger(availableNow=True).start()
        query.awaitTermination()
    if query.exception() is not None:
        raise query.exception()
    spent = [progress["durationMs"] for progress in query.recentProgress]
    return sum(one.get("walCommit", 0) + one.get("commitOffsets", 0) for one in spent) / 1000


def trigger_ms(query: Any, feed: Callable[[], object] | None) -> list[int]:
    """Milliseconds of each trigger with exactly one row. Spark's own source needs no feed."""
    seen: dict[int, int] = {}
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while len(seen) < TRIGGERS and time.monotonic() < deadline:
        if feed is not None:
            feed()
        time.sleep(0.05)
        if feed is not None:
            query.processAllAvailable()
        for progress in query.recentProgress:
            if progress["numInputRows"] == 1:
                seen[progress["batchId"]] = progress["durationMs"]["triggerExecution"]
    return [seen[batch] for batch in sorted(seen)][2:]


def one_record(spark: Any, path: str | None) -> Spent:
    """The median of a trigger with one new record; without a path, of Spark's own source."""
    from deedbook import Book

    with tempfile.TemporaryDirectory() as checkpoint:
        if path is None:
            frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        else:
            frame = spark.readStream.format("deedbook").option("startingPosition", "latest")
            frame = frame.load(path)
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        try:
            if path is None:
                return Spent(statistics.median(trigger_ms(query, None)) / 1000)
            with Book.open(path, "a") as made:
                found = trigger_ms(query, lambda: made.commit(bytes(PAYLOAD_BYTES)))
                return Spent(statistics.median(found) / 1000)
        finally:
            query.stop()


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about reading streams."""
    path = book(place / "book", sizes.events)
    longer = book(place / "longer", 10 * sizes.events)
    spark = session()
    spark.dataSource.register(ready_source())
    table = str(place / "table")
    # A batch reads one file per core.
    files = CORES * -(-sizes.events // BATCH_ROWS)
    deedbook(spark, path).repartition(files).write.option("compression", "none").parquet(table)
    ours = spark.readStream.format("deedbook").option("maxRowsPerTrigger", BATCH_ROWS).load(path)
    ready = spark.readStream.format("ready").options(rows=sizes.events, size=BATCH_OF_ARROW).load()
    parquet = spark.readStream.schema(ours.schema).option("maxFilesPerTrigger", CORES)
    writes: list[float] = []
    found = medians(
        {
            "batch read": lambda: read_all(deedbook(spark, path)),
            "stream": lambda: writes.append(stream_all(ours)),
            "stream of ready-made batches": lambda: stream_all(ready),
            "stream of Parquet": lambda: stream_all(parquet.parquet(table)),
        },
        sizes.rounds,
    )
    triggers = {
        "rate source": one_record(spark, None),
        "one record": one_record(spark, path),
        "one record, ten times the log": one_record(spark, longer),
    }
    spark.stop()
    rows = [
        rate(what := "stream, 200,000 rows a batch", "stream", "batch read", found, 0.7),
        *(
            rate(what, "stream", peer, found, None)
            for peer in ("stream of ready-made batches", "stream of Parquet")
        ),
        *(
            cost("a trigger with one new record", name, "rate source", triggers, "wall", 1.3)
            for name in ("one record", "one record, ten times the log")
        ),
    ]
    rows[0].facts["batches"] = -(-sizes.events // BATCH_ROWS)
    rows[0].facts["seconds of Spark's writes to its checkpoint"] = round(
        statistics.median(writes[1:]), 3
    )
    return rows
