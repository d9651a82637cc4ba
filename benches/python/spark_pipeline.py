"""The pipeline of examples/pipeline as a whole, next to Spark alone with the same three tables.

Then the way of an order from its file to gold, at a steady 1,000 orders a second.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clock import say
from spark_measure import Row, Sizes, Spent, medians, session

PIPELINE = Path(__file__).absolute().parents[2] / "examples" / "pipeline"
sys.path.insert(0, str(PIPELINE))
sys.path.insert(0, str(PIPELINE / "streaming"))

ORDER_BYTES = 250
FILES = 20
RATE = 1000
"""Orders a second in the steady part."""
SECONDS = 60
WARM_SECONDS = 20
"""Seconds that do not count: the first batches compile."""
ASKED, ASKED_P95 = 2.0, 10.0


def orders(first: int, count: int) -> Iterator[str]:
    """JSON lines of 250 bytes."""
    for number in range(first, first + count):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_790_000_000 + number // 50))
        found = {"order": number, "item": "abcd"[number % 4], "amount": number % 4000 / 4, "at": at}
        line = json.dumps(found)
        yield f'{line[:-1]}, "note": "{"x" * (ORDER_BYTES - len(line) - 13)}"}}\n'


def appear(folder: Path, name: str, lines: Iterator[str]) -> None:
    """Write a file, complete when it appears under its name."""
    new = folder / f".{name}"
    new.write_text("".join(lines))
    new.rename(folder / name)


def shop(place: Path) -> Path:
    """An empty pipeline of orders."""
    shutil.copytree(PIPELINE / "orders", place)
    (place / "in").mkdir()
    return place


def alone(spark: Any, folder: Path) -> None:
    """The same three tables and the quarantine by Spark: bronze is Parquet."""
    from steps import lines, load, quarantine_of, silver_of  # type: ignore[import-not-found]

    from pipeline import GOLD  # type: ignore[import-not-found]

    described = load(folder, spark)
    home = folder / "alone"

    def table(name: str, rows: Any) -> Any:
        writer = rows.writeStream.format("parquet").trigger(availableNow=True)
        checkpoint = str(home / "checkpoints" / name)
        return writer.option("checkpointLocation", checkpoint).start(str(home / name))

    def done(*queries: Any) -> None:
        for query in queries:
            query.awaitTermination()

    rows = lines(spark, str(folder / "in"), {})
    done(table("bronze", rows), table("quarantine", quarantine_of(rows, described)))
    schema = rows.schema
    bronze = spark.readStream.schema(schema).parquet(str(home / "bronze"))
    silver = silver_of(bronze, described)
    done(table("silver", silver))
    stream = spark.readStream.schema(silver.schema).parquet(str(home / "silver"))
    statements = GOLD.findall(described.gold)
    stream.createOrReplaceTempView("silver")
    done(
        *[table(f"gold/{name}", spark.sql(sql)) for kind, name, sql in statements if kind[0] == "S"]
    )
    spark.read.parquet(str(home / "silver")).createOrReplaceTempView("silver")
    for kind, name, sql in statements:
        if kind[0] == "M":
            spark.sql(sql).write.mode("overwrite").parquet(str(home / "gold" / name))


def whole(spark: Any, place: Path, sizes: Sizes) -> Row:
    """All orders, from files to gold."""
    from pipeline import Streaming, load, once

    folder = shop(place / "whole")
    for number in range(FILES):
        count = sizes.events // FILES
        appear(folder / "in", f"{number:03}.jsonl", orders(number * count, count))

    def ours() -> dict[str, int]:
        return dict(once(Streaming(spark, load(folder, spark))))

    def emptied() -> None:
        for name in ("streaming", "alone"):
            shutil.rmtree(folder / name, ignore_errors=True)

    def checked(done: dict[str, int]) -> None:
        assert done["bronze/shop"] == done["silver"] == sizes.events, done

    def checked_alone(_: object) -> None:
        assert spark.read.parquet(str(folder / "alone" / "silver")).count() == sizes.events

    names = {"pipeline": ours, "Spark alone": lambda: alone(spark, folder)}
    found = medians(
        names, sizes.rounds, emptied, {"pipeline": checked, "Spark alone": checked_alone}
    )
    ratio = found["pipeline"].wall / found["Spark alone"].wall
    what = f"{sizes.events:,} JSON lines of {ORDER_BYTES} bytes to bronze, silver and gold"
    return Row(what, found, "wall", ratio, ASKED, at_most=True)


def steady(spark: Any, place: Path) -> Row:
    """Seconds from a file's appearance to its orders in ``totals``, a second of orders a file."""
    import pyarrow.parquet

    from pipeline import Streaming, for_ever, load

    folder = shop(place / "steady")
    pipeline = Streaming(spark, load(folder, spark))
    running = threading.Thread(target=for_ever, args=(pipeline, 1.0), daemon=True)
    running.start()
    appeared: list[float] = []
    late: list[float] = []
    begun = time.monotonic()
    last = WARM_SECONDS + SECONDS
    while len(late) < last:
        now = time.monotonic()
        if now > begun + 4 * last:
            raise RuntimeError(f"{len(late)} of {last} files are in gold after {now - begun:.0f} s")
        if len(appeared) < last and now >= begun + len(appeared):
            name = f"{len(appeared):05}.jsonl"
            appear(folder / "in", name, orders(len(appeared) * RATE, RATE))
            appeared.append(time.monotonic())
        try:
            table = pyarrow.parquet.read_table(pipeline.home / "gold" / "totals")
        except (OSError, ValueError):  # Spark writes the table anew.
            table = None
        if table is not None and table.num_rows:
            there = sum(table["orders"].to_pylist()) // RATE
            late += [time.monotonic() - at for at in appeared[len(late) : there]]
        time.sleep(0.05)
    for query in spark.streams.active:
        query.stop()
    running.join(60)
    found = sorted(late[WARM_SECONDS:])
    p95 = found[len(found) * 95 // 100]
    sides = {"p95": Spent(p95), "median": Spent(statistics.median(found))}
    say(f"steady: median {statistics.median(found):.1f} s, p95 {p95:.1f} s")
    what = f"{RATE:,} orders a second for {SECONDS} s: from the file to gold, p95 in seconds"
    facts = {"median, s": round(statistics.median(found), 2), "longest, s": round(found[-1], 2)}
    return Row(what, sides, "seconds", p95, ASKED_P95, at_most=True, facts=facts)


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """Both parts, in one session."""
    import deedbook.spark
    from pipeline import SETTINGS

    spark = session(**{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    deedbook.spark.register(spark)
    try:
        return [whole(spark, place, sizes), steady(spark, place)]
    finally:
        spark.stop()
