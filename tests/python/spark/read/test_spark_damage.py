"""The three modes, with a damaged book and with a book whose end is missing."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from deedbook import Book, Wal
from log_bytes import DEED_FRAMING_BYTES, deed_offsets, overwrite, write_book
from spark_session import events, load, tuples

JAMS = [b"payload %04d " % number * 100 for number in range(1, 301)]  # 400 kB
OFFSETS = deed_offsets(JAMS)
LENGTH = len(JAMS[0]) + DEED_FRAMING_BYTES
BAD = 150
INTACT = [event for event in range(1, 301) if event != BAD]
ALL = "event bigint, jam binary, offset bigint, length bigint, path string, _corrupt_record string"


@pytest.fixture(scope="module", params=["payload", "length"])
def damaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Event `BAD` has a wrong byte in its payload or length; the latter hides the next event."""
    path = write_book(tmp_path_factory.mktemp("damaged") / request.param, JAMS)
    at, data = (12, b"P") if request.param == "payload" else (0, b"\xff" * 8)
    overwrite(path / "book.log", OFFSETS[BAD - 1] + at, data)
    return path


@pytest.fixture
def flipped(tmp_path: Path) -> Path:
    path = write_book(tmp_path / "book", JAMS)
    overwrite(path / "book.log", OFFSETS[BAD - 1] + 12, b"P")
    return path


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_failfast_names_file_and_byte(spark: Any, damaged: Path, split: str) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, damaged, splitSize=split).collect()
    assert f"{damaged}/book.log: byte {OFFSETS[BAD - 1]}: " in str(caught.value)
    assert "mode DROPMALFORMED or PERMISSIVE reads on after it" in str(caught.value)


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_intact_deeds_are_rows_and_damage_is_one(spark: Any, damaged: Path, split: str) -> None:
    frame = load(spark, damaged, mode="DROPMALFORMED", splitSize=split)
    assert frame.columns == ["event", "mug", "jam"]
    dropped = frame.collect()
    rows = load(spark, damaged, ALL, mode="PERMISSIVE", splitSize=split).collect()
    good = [row for row in rows if row._corrupt_record is None]
    assert [row.offset for row in good] == [OFFSETS[event - 1] for event in INTACT]
    # After a wrong length, the numbers of the later events are unknown.
    known = INTACT if damaged.name == "payload" else INTACT[: BAD - 1]
    for found in (dropped, good):
        assert [row.jam for row in found] == [JAMS[event - 1] for event in INTACT]
        assert [row.event for row in found][: len(known)] == known
    (bad,) = (row for row in rows if row._corrupt_record is not None)
    start, file = OFFSETS[BAD - 1], f"{damaged}/book.log"
    assert (bad.jam, bad.path, bad.offset, bad.length) == (None, file, start, LENGTH)
    assert bad._corrupt_record.startswith(f"{file}: bytes {start} to {start + LENGTH}: ")
    if damaged.name == "payload":
        assert bad.event == BAD and "checksum" in bad._corrupt_record


def test_the_column_of_the_damage(spark: Any, flipped: Path) -> None:
    """By default, with another name, in a schema without the column, and in another mode."""
    assert load(spark, flipped, mode="PERMISSIVE").columns == [
        "event", "mug", "jam", "_corrupt_record",
    ]  # fmt: skip
    named = load(spark, flipped, mode="PERMISSIVE", columnNameOfCorruptRecord="damage")
    assert named.columns == ["event", "mug", "jam", "damage"]
    assert named.where("damage IS NOT NULL").count() == 1
    without = load(spark, flipped, "event bigint", mode="PERMISSIVE")
    assert [row.event for row in without.collect() if row.event] == INTACT
    assert without.where("event IS NULL").count() == 1
    dropped = load(spark, flipped, ALL, mode="DROPMALFORMED")
    assert dropped.where("_corrupt_record IS NULL").count() == len(INTACT)


def test_damage_outside_the_range_does_not_matter(spark: Any, damaged: Path) -> None:
    assert events(load(spark, damaged, end=BAD)) == list(range(1, BAD))
    if damaged.name == "payload":
        assert events(load(spark, damaged, start=BAD + 1)) == list(range(BAD + 1, 301))
        behind = load(spark, damaged, mode="PERMISSIVE", start=BAD + 1)
        assert behind.where("_corrupt_record IS NOT NULL").count() == 0


def test_without_verification_a_wrong_checksum_passes(spark: Any, flipped: Path) -> None:
    rows = load(spark, flipped, verify="none").collect()
    assert len(rows) == 300 and rows[BAD - 1].jam == b"P" + JAMS[BAD - 1][1:]


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_torn_and_preallocated_ends_are_not_damage(spark: Any, tmp_path: Path, mode: str) -> None:
    file = write_book(tmp_path / "book", JAMS[:20]) / "book.log"
    whole = file.read_bytes()
    for content, last in ((whole[:-5], 19), (whole + bytes(65536), 20)):
        file.write_bytes(content)
        assert events(load(spark, file, mode=mode)) == list(range(1, last + 1))


@pytest.mark.parametrize("cut_bytes", [0, 5])
@pytest.mark.parametrize("plain", [Book, Wal])
def test_lost_acknowledged_records_are_counted(
    spark: Any, tmp_path: Path, plain: Any, cut_bytes: int
) -> None:
    with plain.create(tmp_path / "log") as log:
        log.append_many([b"%03d" % number * 10 for number in range(1, 21)])
        begin = 16 if plain is Book else 0
        framed = (log.end - begin) // 20
    file = tmp_path / "log" / ("book.log" if plain is Book else f"{0:020d}.wal")
    os.truncate(file, begin + 15 * framed - cut_bytes)
    lost, noun = (5 if cut_bytes == 0 else 6), "deed" if plain is Book else "record"
    with pytest.raises(PySparkException) as caught:
        load(spark, tmp_path / "log").collect()
    assert f"{lost} acknowledged {noun}s are lost" in str(caught.value)
    left = tuples(load(spark, tmp_path / "log", mode="DROPMALFORMED"))
    assert len(left) == 20 - lost
    *good, bad = load(spark, tmp_path / "log", mode="PERMISSIVE").collect()
    # The truncated record and the missing records after it are one damage.
    assert [tuple(row)[:-1] for row in good] == left
    assert f"{lost} acknowledged {noun}s are lost" in bad._corrupt_record
    if plain is Book:
        assert bad.event == 21 - lost
        assert f"(events {21 - lost} to 20)" in bad._corrupt_record
        assert events(load(spark, tmp_path / "log", end=10)) == list(range(1, 10))
