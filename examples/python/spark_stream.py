"""A stream of Spark between two logs: each large order exactly once, across restarts.

    python spark_stream.py orders.wal large.wal checkpoint

The checkpoint and the log of the results belong together: keep both, or delete both. Kill and
restart the program: the stream goes on, and no order comes twice.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery


def start(
    spark: SparkSession, source: str, target: str, checkpoint: str, *, above: int, once: bool
) -> StreamingQuery:
    """Start the query. With ``once``, the query ends after reading all present records."""
    text = f.decode("payload", "UTF-8")
    large = (
        spark.readStream.format("deedbook")
        .option("maxRowsPerTrigger", 1_000_000)
        .load(source)
        .where(f.get_json_object(text, "$.amount").cast("bigint") > above)
        .select("payload")
    )
    writer = (
        large.writeStream.format("deedbook")
        .option("log", "wal")  # the format of the target, which the first batch creates
        .option("checkpointLocation", checkpoint)
    )
    writer = (
        writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")
    )
    return writer.start(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", help="a log of orders as JSON")
    parser.add_argument("target", help="a log that gets the large ones; it is created")
    parser.add_argument("checkpoint", help="a directory of this stream alone")
    parser.add_argument("--above", type=int, default=1000, help="what is large")
    parser.add_argument("--once", action="store_true", help="end when all that is there is done")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("large orders").getOrCreate()
    try:
        names = options.source, options.target, options.checkpoint
        start(spark, *names, above=options.above, once=options.once).awaitTermination()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
