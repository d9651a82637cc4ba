"""What the three modes make of a damaged book, and of one whose end is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_cluster import DEED_FRAMING_BYTES, deed_offsets, local_session, overwrite, write_book

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.errors import PySparkException

from deedbook import Book
from test_spark_read import events, load

pytestmark = pytest.mark.spark

JAMS = [b"payload %04d " % number * 100 for number in range(1, 301)]  # 400 kB
OFFSETS = deed_offsets(JAMS)
LENGTH = len(JAMS[0]) + DEED_FRAMING_BYTES
BAD = 150
INTACT = [event for event in range(1, 301) if event != BAD]
ALL = "event bigint, jam binary, offset bigint, length bigint, path string, _corrupt_record string"


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_session()


@pytest.fixture(scope="module")
def flipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book with a payload byte of event `BAD` inverted: its framing is intact."""
    path = write_book(tmp_path_factory.mktemp("flipped") / "book", JAMS)
    overwrite(path / "book.log", OFFSETS[BAD - 1] + 12, b"P")
    return path


@pytest.fixture(scope="module")
def unframed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book with the length of event `BAD` overwritten: the hop to the next deed is lost."""
    path = write_book(tmp_path_factory.mktemp("unframed") / "book", JAMS)
    overwrite(path / "book.log", OFFSETS[BAD - 1], b"\xff" * 8)
    return path


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_failfast_names_file_byte_and_reason(spark: Any, flipped: Path, split: str) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, str(flipped), splitSize=split).collect()
    message = str(caught.value)
    assert f"{flipped}/book.log: byte {OFFSETS[BAD - 1]}: " in message
    assert "checksum" in message
    assert "mode DROPMALFORMED or PERMISSIVE reads on after it" in message


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_dropmalformed_reads_every_intact_deed(spark: Any, flipped: Path, split: str) -> None:
    frame = load(spark, str(flipped), mode="DROPMALFORMED", splitSize=split)
    assert frame.columns == ["event", "mug", "jam"]
    assert [(row.event, row.jam) for row in frame.collect()] == [
        (event, JAMS[event - 1]) for event in INTACT
    ]


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_permissive_adds_a_row_for_the_damage(spark: Any, flipped: Path, split: str) -> None:
    rows = load(spark, str(flipped), ALL, mode="PERMISSIVE", splitSize=split).collect()
    good = [row for row in rows if row._corrupt_record is None]
    assert [(row.event, row.jam) for row in good] == [(event, JAMS[event - 1]) for event in INTACT]
    (bad,) = (row for row in rows if row._corrupt_record is not None)
    start, end = OFFSETS[BAD - 1], OFFSETS[BAD - 1] + LENGTH
    assert (bad.event, bad.jam) == (BAD, None)
    assert (bad.path, bad.offset, bad.length) == (f"{flipped}/book.log", start, LENGTH)
    assert bad._corrupt_record.startswith(f"{flipped}/book.log: bytes {start} to {end}: ")
    assert "checksum" in bad._corrupt_record and str(BAD) in bad._corrupt_record


def test_permissive_column_by_default_and_by_another_name(spark: Any, flipped: Path) -> None:
    assert load(spark, str(flipped), mode="PERMISSIVE").columns == [
        "event", "mug", "jam", "_corrupt_record",
    ]  # fmt: skip
    named = load(spark, str(flipped), mode="PERMISSIVE", columnNameOfCorruptRecord="damage")
    assert named.columns == ["event", "mug", "jam", "damage"]
    assert named.where("damage IS NOT NULL").count() == 1


def test_permissive_without_the_column_still_has_the_row(spark: Any, flipped: Path) -> None:
    frame = load(spark, str(flipped), "event bigint", mode="PERMISSIVE")
    assert frame.where("event IS NULL").count() == 1


def test_corrupt_column_is_null_in_the_other_modes(spark: Any, flipped: Path) -> None:
    frame = load(spark, str(flipped), ALL, mode="DROPMALFORMED")
    assert frame.where("_corrupt_record IS NULL").count() == len(INTACT)


def test_damage_outside_the_range_does_not_matter(spark: Any, flipped: Path) -> None:
    assert events(load(spark, str(flipped), end=BAD)) == list(range(1, BAD))
    assert events(load(spark, str(flipped), start=BAD + 1)) == list(range(BAD + 1, 301))
    behind = load(spark, str(flipped), mode="PERMISSIVE", start=BAD + 1)
    assert behind.where("_corrupt_record IS NOT NULL").count() == 0


def test_without_verification_a_wrong_checksum_passes(spark: Any, flipped: Path) -> None:
    rows = load(spark, str(flipped), verify="none").collect()
    assert len(rows) == 300 and rows[BAD - 1].jam == b"P" + JAMS[BAD - 1][1:]


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_lost_framing_fails_fast(spark: Any, unframed: Path, split: str) -> None:
    with pytest.raises(PySparkException) as caught:
        load(spark, str(unframed), splitSize=split).collect()
    assert f"{unframed}/book.log: byte {OFFSETS[BAD - 1]}: " in str(caught.value)


@pytest.mark.parametrize("split", ["64m", "64k"])
def test_lost_framing_is_passed_over(spark: Any, unframed: Path, split: str) -> None:
    rows = load(spark, str(unframed), ALL, mode="PERMISSIVE", splitSize=split).collect()
    good = [row for row in rows if row._corrupt_record is None]
    assert [row.jam for row in good] == [JAMS[event - 1] for event in INTACT]
    assert [row.offset for row in good] == [OFFSETS[event - 1] for event in INTACT]
    assert [row.event for row in good[: BAD - 1]] == list(range(1, BAD))
    (bad,) = (row for row in rows if row._corrupt_record is not None)
    assert (bad.offset, bad.length) == (OFFSETS[BAD - 1], LENGTH)


def test_lost_framing_behind_the_range_does_not_matter(spark: Any, unframed: Path) -> None:
    assert events(load(spark, str(unframed), end=BAD)) == list(range(1, BAD))


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_incomplete_end_is_no_damage(spark: Any, tmp_path: Path, mode: str) -> None:
    path = write_book(tmp_path / "book", JAMS[:20])
    log = path / "book.log"
    log.write_bytes(log.read_bytes()[:-5])
    assert events(load(spark, str(path), mode=mode)) == list(range(1, 20))


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_preallocated_end_is_no_damage(spark: Any, tmp_path: Path, mode: str) -> None:
    path = write_book(tmp_path / "book", JAMS[:20])
    with (path / "book.log").open("ab") as log:
        log.write(bytes(65536))
    assert events(load(spark, str(path), mode=mode)) == list(range(1, 21))


@pytest.mark.parametrize("cut_bytes", [0, 5])
def test_loss_of_acknowledged_deeds_is_damage(spark: Any, tmp_path: Path, cut_bytes: int) -> None:
    with Book.create(tmp_path / "book") as writer:
        writer.append_many(JAMS[:20])
    log = tmp_path / "book" / "book.log"
    log.write_bytes(log.read_bytes()[: OFFSETS[15] - cut_bytes])
    left = list(range(1, 16 - (cut_bytes > 0)))
    with pytest.raises(PySparkException) as caught:
        load(spark, str(log)).collect()
    assert f"{log}: byte " in str(caught.value)
    assert events(load(spark, str(log), mode="DROPMALFORMED")) == left
    rows = load(spark, str(log), mode="PERMISSIVE").collect()
    assert [row.event for row in rows if row._corrupt_record is None] == left
    # The deed that was cut and what is missing after it are one damage, as for every other reader.
    assert len(rows) == len(left) + 1
    assert events(load(spark, str(log), end=10)) == list(range(1, 10))


def test_header_without_a_first_event_is_damage(spark: Any, tmp_path: Path) -> None:
    path = write_book(tmp_path / "book", JAMS[:3])
    overwrite(path / "book.log", 8, bytes(8))
    with pytest.raises(PySparkException, match=r"book\.log: byte 8: "):
        load(spark, str(path)).collect()
    rows = load(spark, str(path), ALL, mode="PERMISSIVE").collect()
    assert [row.jam for row in rows if row._corrupt_record is None] == JAMS[:3]
    assert [row.offset for row in rows if row._corrupt_record is not None] == [8]
