"""The cost of reading, next to the ceiling of Python sources, Spark's Parquet, and its JSON."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_measure import (
    PAYLOAD_BYTES,
    Row,
    Sizes,
    book,
    cost,
    deedbook,
    medians,
    rate,
    read_all,
    session,
    wal,
)
from spark_ready import BATCH_OF_ARROW, MIB, ready_source

SEGMENTS = {"64 MiB": 64 * MIB, "16 MiB": 16 * MIB, "256 KiB": MIB // 4}
SMALL_LOGS, SMALL_EVENTS = 500, 100
MANY_SEGMENTS, SEGMENT_BYTES = 10_000, 4096
JSON_SHARE = 3
"""Events of 200 bytes per Nostr event."""

EVENT = (
    "id string, pubkey string, created_at bigint, kind int, tags array<array<string>>,"
    " content string, sig string"
)


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about reading."""
    whole = book(place / "book", sizes.events)
    wals = {name: wal(place / name, sizes.events, size) for name, size in SEGMENTS.items()}
    spark = session()
    spark.dataSource.register(ready_source())
    frame = deedbook(spark, whole)
    columns = [(field.name, field.dataType.simpleString()) for field in frame.schema]
    assert columns == [("event", "bigint"), ("mug", "int"), ("jam", "binary")], columns
    table = str(place / "table")
    frame.write.option("compression", "none").parquet(table)
    ready = spark.read.format("ready").options(
        rows=sizes.events, tasks=frame.rdd.getNumPartitions(), size=BATCH_OF_ARROW
    )
    works: dict[str, Callable[[], object]] = {
        "Book": lambda: read_all(deedbook(spark, whole)),
        "ready-made batches": lambda: read_all(ready.load()),
        "Parquet": lambda: read_all(spark.read.parquet(table)),
    }
    for name, path in wals.items():
        works[f"WAL, {name}"] = lambda path=path: read_all(deedbook(spark, path))
    found = medians(works, sizes.rounds)
    rows = [
        rate("Book, all columns", "Book", "ready-made batches", found, 0.9),
        rate("Book, all columns", "Book", "Parquet", found, 0.6),
        *(
            rate(f"WAL in segments of {name}", f"WAL, {name}", "Book", found, 0.95)
            for name in SEGMENTS
        ),
        *_range(spark, place, sizes),
        *_small(spark, place, sizes),
        *_json(spark, place, sizes),
    ]
    spark.stop()
    return rows


def _range(spark: Any, place: Path, sizes: Sizes) -> list[Row]:
    """A twentieth of a log ten times as long, which makes the fixed cost of a query small."""
    path = book(place / "long", 10 * sizes.events)
    begin = 10 * sizes.events // 2
    end = begin + 10 * sizes.events // 20
    found = medians(
        {
            "a twentieth": lambda: read_all(deedbook(spark, path, start=begin, end=end)),
            "all of it": lambda: read_all(deedbook(spark, path)),
        },
        sizes.rounds,
    )
    row = cost("a twentieth by start, end", "a twentieth", "all of it", found, "CPU", 0.1)
    row.facts["events"] = 10 * sizes.events
    return [row]


def _small(spark: Any, place: Path, sizes: Sizes) -> list[Row]:
    """Many small logs, and many small segments, next to one log of as many events."""
    (place / "small").mkdir()
    for number in range(SMALL_LOGS):
        book(place / "small" / f"log{number}", SMALL_EVENTS)
    one = book(place / "one", SMALL_LOGS * SMALL_EVENTS)
    records = MANY_SEGMENTS * SEGMENT_BYTES // (PAYLOAD_BYTES + 24)
    many = wal(place / "many", records, SEGMENT_BYTES)
    few = wal(place / "few", records, 64 * MIB)
    segments = sum(1 for _ in Path(many).glob("*"))
    assert segments >= MANY_SEGMENTS * 0.9, segments
    found = medians(
        {
            "500 books": lambda: read_all(deedbook(spark, str(place / "small"))),
            "one book": lambda: read_all(deedbook(spark, one)),
            "10,000 segments": lambda: read_all(deedbook(spark, many)),
            "one segment": lambda: read_all(deedbook(spark, few)),
        },
        sizes.rounds,
    )
    return [
        cost("500 logs of 100 events", "500 books", "one book", found, "wall", 2.0),
        cost("10,000 segments", "10,000 segments", "one segment", found, "wall", 2.0),
    ]


def _json(spark: Any, place: Path, sizes: Sizes) -> list[Row]:
    """Nostr events as JSON lines, the same in a book and in an event store."""
    from chaos.inputs.events import Synthetic
    from deedbook import Book, EventStore

    count = sizes.events // JSON_SHARE
    source = Synthetic(7, int(time.time()) - 86400, 86400.0, count)
    lines = [source.line(number, 0).data for number in range(count)]
    (place / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    with Book.create(place / "events", durability="manual") as made:
        made.append_many(lines)
    with EventStore.create(place / "store") as store:
        store.append_many(lines)
    rows = deedbook(spark, str(place / "store"), include="all").count()
    found = medians(
        {
            "read.json": lambda: read_all(
                spark.read.schema(EVENT).json(str(place / "events.jsonl"))
            ),
            "Book of the lines": lambda: read_all(deedbook(spark, str(place / "events"))),
            "event store, typed": lambda: read_all(
                deedbook(spark, str(place / "store"), include="all")
            ),
        },
        sizes.rounds,
    )
    facts = {"events": count, "of them in the store": rows}
    made_rows = [
        rate("a Book of JSON events", "Book of the lines", "read.json", found, 3.0),
        rate("an event store, typed columns", "event store, typed", "read.json", found, None),
    ]
    # The store has fewer events, and dropped events do not count.
    made_rows[1].ratio *= rows / count
    for row in made_rows:
        row.facts.update(facts)
    return made_rows
