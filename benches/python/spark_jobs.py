"""The cost of the jobs of ``deedbook spark``, next to Spark and the core alone.

Payloads are JSON lines of 200 bytes.

verify   the job, next to the core's own check in one process, of a book with the lines many times
ingest   files of lines into a book and a WAL (checked to be JSON, synced), next to Spark's text
         source into its Parquet sink (neither), both as streams
export   a book into Parquet (synced) and Delta, next to a stream of it into Spark's Parquet sink
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_measure import (
    CORES,
    Row,
    Sizes,
    Spent,
    has_rows,
    is_verified,
    medians,
    rate,
    session,
)

TIMES = 20
"""Repetitions of the lines in the book for verify."""


def lines_of(directory: Path, events: int) -> None:
    """Eight files of JSON lines of 200 bytes with their newlines."""
    directory.mkdir()
    for part in range(8):
        numbers = range(part * events // 8, (part + 1) * events // 8)
        lines = (json.dumps({"n": n, "text": "x" * 170})[:-2] for n in numbers)
        data = "".join(f'{line.ljust(197, "x")}"}}\n' for line in lines)
        (directory / f"{part}.jsonl").write_text(data, encoding="ascii")


def streamed(rows: Any, out: Path, checkpoint: Path) -> None:
    """A stream into Spark's Parquet sink."""
    writer = rows.writeStream.format("parquet").option("compression", "none")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    running = query.start(str(out))
    running.awaitTermination()
    if running.exception() is not None:
        raise running.exception()


def works(
    spark: Any, lines: Path, book: Path, large: Path, out: Path
) -> dict[str, Callable[[], object]]:
    """The measured work, by name. Each function starts with an empty ``out``."""
    from deedbook import Book
    from deedbook.spark import jobs

    to, checkpoint = out / "to", out / "checkpoint"

    def text_to_parquet() -> None:
        rows = spark.readStream.schema("value string").text(str(lines))
        streamed(rows.selectExpr("cast(value as binary) as jam"), to, checkpoint)

    def book_to_parquet() -> None:
        streamed(spark.readStream.format("deedbook").load(str(book)), to, checkpoint)

    return {
        "the core alone": lambda: Book.verify(large),
        "verify": lambda: jobs.verify(spark, large),
        "text to Parquet": text_to_parquet,
        "ingest, Book": lambda: jobs.ingest(spark, lines, to, format="book"),
        "ingest, WAL": lambda: jobs.ingest(spark, lines, to, format="wal"),
        "Book to Parquet": book_to_parquet,
        "export, Parquet": lambda: jobs.export(spark, book, to),
        "export, Delta": lambda: jobs.export(spark, book, to, kind="delta"),
    }


def checks(events: int) -> dict[str, Callable[[Any], None]]:
    """Checks that the jobs did their work, by name."""
    all_rows = has_rows(events)
    return {
        "the core alone": lambda report: is_verified([report]),
        "verify": is_verified,
        **{f"ingest, {log}": all_rows for log in ("Book", "WAL")},
        **{f"export, {table}": all_rows for table in ("Parquet", "Delta")},
    }


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about jobs."""
    from deedbook import Book

    lines, book, large = place / "lines", place / "book", place / "large"
    lines_of(lines, sizes.events)
    for path, times in ((book, 1), (large, TIMES)):
        with Book.create(path, durability="manual") as made:
            for file in sorted(lines.iterdir()) * times:
                made.append_many(file.read_bytes().splitlines())
            made.sync()
    spark = session()
    out = place / "out"

    def clear() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    measured = works(spark, lines, book, large, out)
    found = medians(measured, sizes.rounds, clear, checks(sizes.events))
    spark.stop()
    alone = found["the core alone"]
    found["cores x the core alone"] = Spent(alone.wall / CORES)
    verify = rate("verify, distributed", "verify", "cores x the core alone", found, 0.8)
    verify.facts["bytes"] = (large / "book.log").stat().st_size
    return [
        verify,
        rate("ingest of lines into a Book", "ingest, Book", "text to Parquet", found, None),
        rate("ingest of lines into a WAL", "ingest, WAL", "text to Parquet", found, None),
        rate("export of a Book into Parquet", "export, Parquet", "Book to Parquet", found, None),
        rate("export of a Book into Delta", "export, Delta", "Book to Parquet", found, None),
    ]
