"""Batch reads of event stores through Spark."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, EventStore, InvalidArgumentError, MissingError, OutOfRangeError
from deedbook.spark._logs.format import Limits
from deedbook.spark._logs.nostr import NOSTR
from deedbook.spark._options.options import ReadOptions
from log_bytes import flip
from logs import append_to
from nostr_columns import TAGS, walked
from nostr_events import AUTHOR, EVENTS, made
from spark_session import load, reader_of, rows_of, tuples


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    with EventStore.create(path, durability="manual", segment_bytes=10 << 20) as store:
        for number, tags in enumerate(TAGS):
            store.append(made(f"odd {number}", tags=tags, created_at=2**32 - 1 - number))
        store.append_many(EVENTS)
        # Cut where a segment is full.
        store.append_many(
            made(f"filler {number}", created_at=1_600_000_000 + number) for number in range(2600)
        )
    return path


def expected(path: Path, **options: Any) -> list[dict[str, Any]]:
    with EventStore.open(path) as store:
        return walked(store, **options)


def test_nostr_rows_are_typed_for_any_partitions(spark: Any, place: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    frame = load(spark, place, splitSize="256k", batchRows=700)
    assert frame.schema.simpleString() == (
        "struct<id:binary,pubkey:binary,created_at:timestamp,kind:int,"
        "tags:array<array<string>>,content:string,sig:binary,flags:int>"
    )
    events = expected(place)
    assert frame.rdd.getNumPartitions() > 5
    # Sums that the JVM makes, so that nothing is turned back on the way.
    found = frame.selectExpr(
        "hex(id)", "hex(pubkey)", "unix_seconds(created_at)", "kind", "tags", "content", "hex(sig)"
    ).collect()
    assert [tuple(row) for row in found] == [
        (
            event["id"].hex().upper(),
            event["pubkey"].hex().upper(),
            int(event["created_at"].timestamp()),
            event["kind"],
            event["tags"],
            event["content"],
            event["sig"].hex().upper(),
        )
        for event in events
    ]
    frame.createOrReplaceTempView("notes")
    by_kind = spark.sql("SELECT kind, count(*) FROM notes GROUP BY kind").collect()
    assert {row[0]: row[1] for row in by_kind} == Counter(event["kind"] for event in events)
    names = spark.sql("SELECT count(*) FROM notes LATERAL VIEW explode(tags) AS tag").collect()
    assert names[0][0] == sum(len(event["tags"]) for event in events)


def test_columns_and_filter_are_applied_to_the_pages(spark: Any, place: Path) -> None:
    wanted = json.dumps([{"authors": [AUTHOR], "until": 1_600_000_009}, {"kinds": [0]}])
    frame = load(spark, place, columns="kind,content", filter=wanted)
    events = [
        (event["kind"], event["content"])
        for event in expected(place)
        if event["kind"] == 0
        or (event["pubkey"].hex() == AUTHOR and event["created_at"].timestamp() <= 1_600_000_009)
    ]
    assert len(events) >= 10
    assert tuples(frame) == events
    assert frame.count() == len(events)
    halves = [rows_of(reader_of(place, start=1)), rows_of(reader_of(place, end=1))]
    assert sum(map(len, halves)) == len(expected(place)) and all(halves)
    assert len(reader_of(place, minPartitions=6).partitions()) >= 6
    where = load(spark, place).schema
    mine = spark.read.format("deedbook").schema("OFFSET bigint, segment bigint").load(str(place))
    assert len(where) == 8 and {row.segment for row in mine.collect()} >= {0, 1}


def test_damage_fails_the_query_or_is_a_row(spark: Any, place: Path) -> None:
    events = expected(place)
    flip(place / "data" / "segments" / "data.0.seg", 4096 + 60)
    with pytest.raises(Exception, match=r"data\.0\.seg.*byte 4.?096.*checksum") as raised:
        load(spark, place).collect()
    assert "mode DROPMALFORMED or PERMISSIVE" in str(raised.value)
    assert load(spark, place, mode="DROPMALFORMED").count() == len(events) - 1
    names = "content,segment,offset,length"
    frame = load(spark, place, mode="PERMISSIVE", columns=names)
    (row,) = frame.where("_corrupt_record IS NOT NULL").collect()
    assert (row.content, row.segment, row.offset, row.length) == (None, 0, 4096, 4096)
    assert "checksum" in row["_corrupt_record"] and frame.count() == len(events)


def test_a_read_is_a_snapshot_beside_a_writer(place: Path) -> None:
    before = expected(place)
    planned = reader_of(place, splitSize="1m")
    parts = planned.partitions()
    with EventStore.open(place, "a") as store:
        store.append_many(made(f"later {number}") for number in range(50))
        assert rows_of(planned, parts) == before
        assert len(rows_of(reader_of(place))) == len(before) + 50
        store.set_flags(next(iter(store)).location, deleted=True)  # type: ignore[arg-type]
        assert store.compact(0).segments
        with pytest.raises(MissingError, match="a compaction does") as raised:
            rows_of(planned, parts)
        assert str(raised.value.path).endswith(".seg")
        assert len(rows_of(reader_of(place))) == len(before) + 49


def test_stream_continues_after_a_compaction_without_events(tmp_path: Path) -> None:
    options, path = ReadOptions(), tmp_path / "notes"
    with EventStore.create(path) as store:
        store.append_many(made(f"note {number}") for number in range(20))
        place = NOSTR.advance(path, {}, Limits(), options).place
        for event in list(store):
            store.set_flags(event.location, deleted=True)  # type: ignore[arg-type]
        assert store.compact(0).kept == 0 and store.splits(1) == []
        assert NOSTR.advance(path, place, Limits(), options).place == place
        store.append_many(made(f"later {number}") for number in range(5))
        step = NOSTR.advance(path, place, Limits(rows=100), options)
        assert step.rows == 5
        (piece,) = NOSTR.between(path, place, step.place, options, 1 << 20)
        assert piece.path.endswith("data.1.seg")


def test_stream_reports_read_records_that_a_store_lost(tmp_path: Path) -> None:
    """The segment that was read up to is there and has no event any more, or is not there."""
    options, path = ReadOptions(), tmp_path / "notes"
    append_to("nostr", path, (made(f"note {number}") for number in range(20)))
    place = NOSTR.advance(path, {}, Limits(), options).place
    shutil.rmtree(path)
    EventStore.create(path).close()
    said = rf"up to byte {place['byte']} of segment 0, and goes only up to byte 0 of it now"
    with pytest.raises(OutOfRangeError, match=said):
        NOSTR.advance(path, place, Limits(), options)
    with pytest.raises(OutOfRangeError, match="up to segment 7, and has segments up to 0 now"):
        NOSTR.advance(path, {**place, "segment": 7}, Limits(), options)


def test_stores_of_a_directory_and_other_formats(place: Path, tmp_path: Path) -> None:
    append_to("nostr", tmp_path / "b", [made("of b")])
    rows = rows_of(reader_of(tmp_path, columns="content,path"))
    assert rows[0]["content"] == "of b" and len(rows) == 1 + len(expected(place))
    assert rows[0]["path"] == str(tmp_path / "b" / "data" / "segments" / "data.0.seg")
    Book.create(tmp_path / "book").close()
    with pytest.raises(InvalidArgumentError, match=r"logs of several formats, book.*nostr"):
        reader_of(tmp_path)
    assert rows_of(reader_of(tmp_path, log="nostr", columns="content"))[0] == {"content": "of b"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"filter": "kinds=1"}, "option filter: 'kinds=1' is not allowed"),
        ({"filter": '{"limit":1}'}, "without `limit`"),
        ({"columns": "payload"}, "unknown column payload; allowed: id binary"),
        ({"filter": '{"kind":[1]}', "mode": "FAILFAST"}, 'unknown field "kind"'),
        ({"filter": '{"kind":[1]}', "mode": "PERMISSIVE"}, 'unknown field "kind"'),
    ],
)
def test_wrong_options_are_refused(place: Path, options: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        rows_of(reader_of(place, **options))
