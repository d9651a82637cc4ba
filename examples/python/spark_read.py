"""Read a log with Spark: orders in a write-ahead log, revenue by day as Parquet.

    python spark_read.py orders.wal revenue.parquet

Each record is one order as JSON. The program prints other records, leaves them out and ends with 1.
"""

from __future__ import annotations

import argparse
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

ORDER = "id BIGINT, day DATE, amount BIGINT, _corrupt_record STRING"


def parsed(spark: SparkSession, log: str) -> DataFrame:
    """Each record's LSN and its order; ``order._corrupt_record`` has the text of a bad one."""
    records = spark.read.format("deedbook").load(log)  # lsn, payload
    text = f.decode("payload", "UTF-8")
    return records.select("lsn", f.from_json(text, ORDER).alias("order"))


def revenue(orders: DataFrame) -> DataFrame:
    """Amount and number of the orders of each day."""
    good = orders.where("order._corrupt_record IS NULL").select("order.*")
    return good.groupBy("day").agg(f.sum("amount").alias("amount"), f.count("*").alias("orders"))


def run(spark: SparkSession, log: str, table: str) -> int:
    """Write the table, print it and the bad records; return the exit code."""
    orders = parsed(spark, log).cache()
    revenue(orders).orderBy("day").write.mode("overwrite").parquet(table)
    spark.read.parquet(table).orderBy("day").show()
    bad = orders.where("order._corrupt_record IS NOT NULL")
    for row in bad.select("lsn", "order._corrupt_record").limit(10).collect():
        print(f"no order at LSN {row[0]}: {row[1][:80]!r}", file=sys.stderr)
    return 0 if bad.isEmpty() else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("table")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("revenue").getOrCreate()
    try:
        return run(spark, options.log, options.table)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
