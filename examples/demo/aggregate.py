"""Spark's part of the demo: aggregate the log, and compare the log with the input.

An event's type is its field ``type`` or ``event``, or else ``kind N`` from the field ``kind`` of
Nostr events. The event's time is the first present field of ``ts``, ``timestamp``, ``sentAt`` and
``created_at``: ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workspace import Places, is_from_spark, reason

from deedbook._cli.first_minute import Check
from deedbook._show.times import EPOCH, SECONDS_MAX, SECONDS_MIN, UNITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

NOT_JSON = "(not JSON)"
NO_TYPE = "(no type)"
OTHER = "(other)"

TYPE_FIELDS = ("type", "event", "kind")
TIME_FIELDS = ("ts", "timestamp", "sentAt", "created_at")
TYPE_CHARS_MAX = 60
TYPES_SHOWN_MAX = 40
SERIES_MAX = 8

# The unit of time is the first whose limit the middle 98 % of the events do not exceed.
BUCKETS = (("hour", timedelta(days=10)), ("day", timedelta(days=500)), ("month", timedelta.max))

SPLIT_BYTES_MIN = 1 << 20


@dataclass(frozen=True)
class Count:
    """Events and bytes of a type, in a stretch of time (None: without a readable time)."""

    type: str
    time: datetime | None
    events: int
    bytes: int


@dataclass(frozen=True)
class Summary:
    """Spark's results for the log."""

    bucket: str
    types: list[Count]
    """By type, most events first; beyond `TYPES_SHOWN_MAX` summed up as `OTHER`."""
    series: list[Count]
    """By type and time; types beyond `SERIES_MAX` summed up as `OTHER`."""
    middle: tuple[datetime, datetime] | None
    """First and last hour of the middle 98 % of the events with a time."""
    type_fields: dict[str, int]
    """Events by the field with the type; "" for none."""
    time_fields: dict[str, int]
    """Events by the field with a readable time; "" for none."""


SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # {"a":1,"a":2} is an object, if an odd one; the last value counts.
    "spark.sql.variant.allowDuplicateKeys": "true",
}
"""Spark's settings."""


def read_log(spark: SparkSession, log: Path) -> DataFrame:
    """The log as a data frame, in about two splits per core."""
    size = sum(file.stat().st_size for file in log.rglob("*.log"))
    split = max(SPLIT_BYTES_MIN, size // (2 * spark.sparkContext.defaultParallelism) + 1)
    reader = spark.read.format("deedbook").option("splitSize", str(split))
    return reader.load(str(log.resolve()))


def aggregate(spark: SparkSession, space: Places) -> Summary:
    """Count events and bytes by type and by time, and write both as Parquet."""
    from pyspark.sql import functions as F

    events, nbytes = F.sum("events").alias("events"), F.sum("bytes").alias("bytes")
    # There are few hours, so Spark computes all other results from this small table, in one
    # partition.
    hours = (
        _classified(read_log(spark, space.log))
        .groupBy("type", "type_field", "time_field", "hour")
        .agg(F.count("*").alias("events"), F.sum("length").alias("bytes"))
        .coalesce(1)
        .persist()
    )
    middle = _middle(hours)
    span = middle[1] - middle[0] if middle else timedelta(0)
    bucket = next(name for name, limit in BUCKETS if span <= limit)

    by_type = hours.groupBy("type").agg(events, nbytes).orderBy(F.desc("events"), "type")
    by_type.write.parquet(str(space.by_type.resolve()))
    rows = by_type.limit(TYPES_SHOWN_MAX).collect()
    types = [Count(row["type"], None, row["events"], row["bytes"]) for row in rows]
    by_fields = hours.groupBy("type_field", "time_field").agg(events, nbytes).collect()
    left_events = sum(row["events"] for row in by_fields) - sum(c.events for c in types)
    if left_events:
        left_bytes = sum(row["bytes"] for row in by_fields) - sum(c.bytes for c in types)
        types.append(Count(OTHER, None, left_events, left_bytes))

    time = F.date_trunc(bucket, F.timestamp_seconds("hour")).alias("time")
    by_time = hours.groupBy("type", time).agg(events, nbytes).orderBy("time", "type")
    by_time.write.parquet(str(space.by_type_and_time.resolve()))
    large = [count.type for count in types if count.type != OTHER][:SERIES_MAX]
    name = F.when(F.col("type").isin(large), F.col("type")).otherwise(OTHER).alias("type")
    seconds = F.unix_seconds("time").alias("seconds")
    series = [
        Count(row["type"], _moment(row["seconds"]), row["events"], row["bytes"])
        for row in by_time.groupBy(name, seconds).agg(events, nbytes).collect()
    ]
    series.sort(key=lambda count: (count.time is None, count.time or EPOCH, count.type))
    hours.unpersist()
    type_fields, time_fields = _sums(by_fields, "type_field"), _sums(by_fields, "time_field")
    return Summary(bucket, types, series, middle, type_fields, time_fields)


def _sums(rows: list[Row], column: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for row in rows:
        name = row[column] or ""
        sums[name] = sums.get(name, 0) + row["events"]
    return sums


def _classified(log: DataFrame) -> DataFrame:
    """Type, hour and length of each event, and the fields with type and hour."""
    from pyspark.sql import functions as F

    # One step per select: Spark computes each step once, and merged steps would repeat the parsing.
    text = F.btrim(F.col("jam").cast("string"), F.lit(" \t\r\n")).alias("text")
    rows = log.select(F.octet_length("jam").alias("length"), text)
    # try_parse_json ignores text after the first value. Inside an array the text matters: `{} {}`
    # is an error, and `{}, {}` has a second item.
    item = F.try_parse_json(F.concat(F.lit("["), "text", F.lit("]")))
    braces = F.col("text").startswith("{") & F.col("text").endswith("}")
    rows = rows.select("length", F.when(braces, item).alias("json"))
    alone = F.col("json").isNotNull() & F.isnull(F.try_variant_get("json", "$[1]", "variant"))
    fields = (
        F.try_variant_get("json", f"$[0].{name}", "string").alias(name)
        for name in TYPE_FIELDS + TIME_FIELDS
    )
    rows = rows.select("length", alone.alias("is_object"), *fields).select(
        "length",
        "is_object",
        F.when(F.col("is_object"), _first_present(TYPE_FIELDS)).alias("type_field"),
        F.when(F.col("is_object"), _first_present(TIME_FIELDS)).alias("time_field"),
        F.coalesce("type", "event", F.concat(F.lit("kind "), "kind")).alias("type"),
        F.coalesce(*TIME_FIELDS).alias("time"),
    )
    rows = _with_seconds(rows)
    cut = F.substring("type", 1, TYPE_CHARS_MAX)
    kind = F.when(~F.col("is_object"), NOT_JSON).when(F.length("type") > 0, cut).otherwise(NO_TYPE)
    hour = F.when(F.col("is_object"), F.floor(F.col("seconds") / 3600) * 3600)
    return rows.select(
        kind.alias("type"),
        "type_field",
        F.when(hour.isNotNull(), F.col("time_field")).alias("time_field"),
        hour.cast("bigint").alias("hour"),
        "length",
    )


def _first_present(names: tuple[str, ...]) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(*(F.when(F.col(name).isNotNull(), F.lit(name)) for name in names))


def _with_seconds(rows: DataFrame) -> DataFrame:
    """Add ``seconds`` since 1970; null if ``time`` is no time of the years 2 to 9998."""
    from pyspark.sql import functions as F

    time, number, seconds = F.col("time"), F.col("number"), F.col("seconds")
    is_number = time.rlike(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
    # Without the pattern, Spark would read "12:30" as half past twelve of today.
    is_date = time.rlike(r"^\d{4}-\d\d-\d\d")
    iso = F.when(is_date, time.try_cast("timestamp").cast("double"))
    rows = rows.withColumn("number", F.when(is_number, time.try_cast("double")))
    divisor = F.lit(1.0)
    for least, unit in reversed(UNITS):
        divisor = F.when(F.abs(number) >= least, unit).otherwise(divisor)
    rows = rows.withColumn("seconds", F.coalesce(number / divisor, iso))
    readable = seconds.between(SECONDS_MIN, SECONDS_MAX)
    return rows.withColumn("seconds", F.when(readable, seconds))


def _middle(hours: DataFrame) -> tuple[datetime, datetime] | None:
    """The first and last hour of the middle 98 % of the events, so a wrong clock changes
    nothing."""
    from pyspark.sql import functions as F

    timed = hours.where(F.col("hour").isNotNull())
    row = timed.agg(F.percentile("hour", [0.01, 0.99], F.col("events"))).collect()[0]
    if row[0] is None:
        return None
    return EPOCH + timedelta(seconds=row[0][0]), EPOCH + timedelta(seconds=row[0][1])


def _moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else EPOCH + timedelta(seconds=seconds)


def check_log(spark: SparkSession, space: Places, acknowledged: int, lines: int) -> list[Check]:
    """Compare number and SHA-256 of every event in the log with those of the input lines.

    ``acknowledged`` is the last acknowledged event, ``lines`` the length of the input. An
    unreadable log fails the first check, with the reason.
    """
    try:
        found = _compared(spark, space, acknowledged)
    except Exception as error:
        if not is_from_spark(error):
            raise
        return [Check("Spark reads the log", False, reason(error))]
    rows, low, high = found["rows"] or 0, found["low"] or 0, found["high"] or 0
    return [
        Check("Spark reads the log", rows == lines, f"{rows:,} events, {lines:,} lines"),
        Check(
            "no acknowledged event is missing",
            found["missing"] == 0,
            f"{found['missing']:,} of {acknowledged:,} missing",
        ),
        Check("no event is doubled", found["repeated"] == 0, f"{found['repeated']:,} repeated"),
        Check(
            "event numbers are contiguous",
            (rows, low, high) == (lines, 1, lines) and found["repeated"] == 0,
            f"{rows:,} events from {low:,} to {high:,}",
        ),
        Check(
            "every event has the SHA-256 of its line",
            found["different"] == 0,
            f"{found['different']:,} differ",
        ),
        Check(
            "nothing is in the log that was not in the input",
            found["unknown"] == 0,
            f"{found['unknown']:,} unknown",
        ),
    ]


def _compared(spark: SparkSession, space: Places, acknowledged: int) -> dict[str, Any]:
    """The counts for the checks."""
    from pyspark.sql import functions as F

    sha256 = F.sha2("jam", 256)
    found = (
        read_log(spark, space.log)
        .groupBy("event")
        .agg(F.count("*").alias("n"), F.min(sha256).alias("least"), F.max(sha256).alias("most"))
    )
    lines = spark.read.parquet(_literal(space.hashes)).withColumnRenamed("event", "line")
    joined = found.join(lines, found["event"] == lines["line"], "full_outer")
    differs = (F.col("least") != F.col("sha256")) | (F.col("most") != F.col("sha256"))

    def count(condition: Column, name: str) -> Column:
        return F.count(F.when(condition, 1)).alias(name)

    row = joined.agg(
        F.sum("n").alias("rows"),
        F.min("event").alias("low"),
        F.max("event").alias("high"),
        count(F.col("event").isNull() & (F.col("line") <= acknowledged), "missing"),
        count(F.col("n") > 1, "repeated"),
        count(differs, "different"),
        count(F.col("event").isNotNull() & F.col("line").isNull(), "unknown"),
    ).collect()[0]
    return row.asDict()


def check_parquet(spark: SparkSession, space: Places, events: int, nbytes: int) -> list[Check]:
    """Read the Parquet files back and compare their sums with the input."""
    from pyspark.sql import functions as F

    checks = []
    for path in (space.by_type, space.by_type_and_time):
        table = spark.read.parquet(_literal(path))
        row = table.agg(F.sum("events").alias("events"), F.sum("bytes").alias("bytes")).collect()[0]
        good = (row["events"], row["bytes"]) == (events, nbytes)
        detail = f"{row['events'] or 0:,} events, {row['bytes'] or 0:,} bytes"
        checks.append(Check(f"{path.name} holds them all", good, detail))
    return checks


def _literal(path: Path) -> str:
    """The path for a reader that regards brackets and stars as a pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.resolve()))
