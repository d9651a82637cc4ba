"""What the jobs of ``deedbook spark`` cost, beside what Spark and the core do alone.

``python benches/python/spark_jobs.py [--events 1000000] [--rounds 5]`` prints medians, and with
``--out FILE`` writes them there. Payloads are JSON lines of 200 bytes; all is on two cores.

verify   the job, beside the core's own check in one process, of a book with the lines many times
ingest   files of lines into a book and a WAL (checked to be JSON, synced), beside Spark's text
         source into its Parquet sink (neither), both as streams
export   a book into Parquet (synced) and Delta, beside a stream of it into Spark's Parquet sink
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
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from spark_stream import session

from deedbook import Book
from deedbook.spark import jobs

CORES = 2


def lines_of(directory: Path, events: int) -> None:
    """Eight files of JSON lines of 200 bytes with their newlines."""
    directory.mkdir()
    for part in range(8):
        numbers = range(part * events // 8, (part + 1) * events // 8)
        lines = (json.dumps({"n": n, "text": "x" * 170})[:-2] for n in numbers)
        data = "".join(f'{line.ljust(197, "x")}"}}\n' for line in lines)
        (directory / f"{part}.jsonl").write_text(data, encoding="ascii")


def streamed(rows: Any, out: Path, checkpoint: Path) -> None:
    """Into Spark's Parquet sink."""
    writer = rows.writeStream.format("parquet").option("compression", "none")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    running = query.start(str(out))
    running.awaitTermination()
    if running.exception() is not None:
        raise running.exception()


def tasks(
    spark: Any, lines: Path, book: Path, large: Path, out: Path
) -> dict[str, Callable[[], object]]:
    """What is measured, by name. Each begins with nothing at ``out``."""
    to, checkpoint = out / "to", out / "checkpoint"

    def text_to_parquet() -> None:
        rows = spark.readStream.schema("value string").text(str(lines))
        streamed(rows.selectExpr("cast(value as binary) as jam"), to, checkpoint)

    def book_to_parquet() -> None:
        streamed(spark.readStream.format("deedbook").load(str(book)), to, checkpoint)

    return {
        "verify, core": lambda: Book.verify(large),
        "verify, job": lambda: jobs.verify(spark, large),
        "text to Parquet, Spark": text_to_parquet,
        "ingest, Book": lambda: jobs.ingest(spark, lines, to, format="book"),
        "ingest, WAL": lambda: jobs.ingest(spark, lines, to, format="wal"),
        "ingest, Book, unchecked": lambda: jobs.ingest(
            spark, lines, to, format="book", check="none"
        ),
        "Book to Parquet, Spark": book_to_parquet,
        "export, Parquet": lambda: jobs.export(spark, book, to),
        "export, Delta": lambda: jobs.export(spark, book, to, kind="delta"),
    }


def medians(measured: dict[str, Callable[[], object]], out: Path, rounds: int) -> dict[str, float]:
    """Seconds of each, in turn; the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(rounds + 1):
        for name, work in measured.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            begun = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begun)
    return {name: round(statistics.median(all_[1:]), 3) for name, all_ in seconds.items()}


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=20, help="of the book that is verified")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as directory:
        lines, book = Path(directory) / "lines", Path(directory) / "book"
        lines_of(lines, options.events)
        large = Path(directory) / "large"
        for path, times in ((book, 1), (large, options.times)):
            with Book.create(path, durability="manual") as made:
                for file in sorted(lines.iterdir()) * times:
                    made.append_many(file.read_bytes().splitlines())
                made.sync()
        size = (large / "book.log").stat().st_size
        spark = session()
        out = Path(directory) / "out"
        found = medians(tasks(spark, lines, book, large, out), out, options.rounds)
        version = spark.version
        spark.stop()
    text, table = found["text to Parquet, Spark"], found["Book to Parquet, Spark"]
    result = {
        "at": datetime.now(timezone.utc).date().isoformat(),
        "spark": version,
        "events": options.events,
        "verified, bytes": size,
        "seconds": found,
        "verify, job / (cores x core)": round(
            found["verify, core"] / found["verify, job"] / CORES, 2
        ),
        "ingest / Spark's text to Parquet, rows a second": {
            name: round(text / found[f"ingest, {name}"], 2)
            for name in ("Book", "WAL", "Book, unchecked")
        },
        "export / Spark's stream to Parquet, rows a second": {
            name: round(table / found[f"export, {name}"], 2) for name in ("Parquet", "Delta")
        },
    }
    shown = json.dumps(result, indent=2)
    print(shown)
    if options.out is not None:
        options.out.write_text(shown + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
