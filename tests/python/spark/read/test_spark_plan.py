"""The driver's plan: the number of partitions, the logs in each, and refused logs."""

import logging
import pickle
import shutil
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, ContiguityError, CorruptError, Error, InvalidArgumentError, Wal
from deedbook._formats import detect
from deedbook.jobs import Split
from deedbook.spark._logs.wal import WAL
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import find_logs
from log_bytes import flip, write_book
from logs import append_to
from spark_session import reader_of, rows_of

pytestmark = pytest.mark.promise("spark-dropped", "spark-replaced")


def test_small_segments_make_no_partitions(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "log", segment_bytes=64 << 10, durability="none") as wal:
        wal.append_many(bytes(1000) for _ in range(4000))
        assert len(wal.segment_paths) > 60
    reader = reader_of(tmp_path / "log")
    assert len(reader.partitions()) == 1
    assert len(rows_of(reader)) == 4000


def test_many_small_logs_are_a_few_partitions(tmp_path: Path) -> None:
    for number in range(500):
        write_book(tmp_path / f"0i{number * 3}", [b"a", b"b", b"c"], first=number * 3 + 1)
    reader = reader_of(tmp_path)
    assert 2 <= len(reader.partitions()) <= 4
    rows = rows_of(reader)
    assert [row["event"] for row in rows] == list(range(1, 1501))
    assert len(pickle.dumps(reader)) < 2000, "a task gets its own logs, not the list of all"
    files = {row["path"] for row in rows_of(reader_of(tmp_path, columns="path"))}
    assert files == {str(tmp_path / f"0i{number * 3}" / "book.log") for number in range(500)}


def test_large_log_next_to_small_ones_keeps_partitions(tmp_path: Path) -> None:
    write_book(tmp_path / "a", [b"x"])
    write_book(tmp_path / "b", [bytes(10_000)] * 100)
    write_book(tmp_path / "c", [b"x"])
    reader = reader_of(tmp_path, splitSize="600k", columns="path,event")
    assert len(reader.partitions()) == 4
    assert [(Path(row["path"]).parent.name, row["event"]) for row in rows_of(reader)] == [
        ("a", 1), *(("b", event) for event in range(1, 101)), ("c", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("least", [1, 2, 8, 13])
def test_min_partitions_spreads_short_logs_over_cores(tmp_path: Path, least: int) -> None:
    write_book(tmp_path / "book", [bytes(6000)] * 1000)
    reader = reader_of(tmp_path / "book", minPartitions=least)
    assert least <= len(reader.partitions()) <= max(2, 1.5 * least)
    assert [row["event"] for row in rows_of(reader)] == list(range(1, 1001))


def test_min_partitions_splits_only_at_index_entries(tmp_path: Path) -> None:
    write_book(tmp_path / "book", [b"x"] * 10)
    assert len(reader_of(tmp_path / "book", minPartitions=5).partitions()) == 1
    Book.create(tmp_path / "empty").close()
    assert reader_of(tmp_path / "empty", minPartitions=5).partitions() == []


@pytest.mark.parametrize("format", ["book", "wal"])
def test_executor_refuses_a_log_other_than_planned(tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    others = {
        "planned": [b"one", b"two", b"three"],
        "other": [b"ONE", b"two", b"three"],
        "begins alike, is longer": [b"one", b"two", b"THREE", b"four"],
    }
    for name, items in others.items():
        append_to(format, tmp_path / name, items)
    for mode, name in product(("FAILFAST", "DROPMALFORMED", "PERMISSIVE"), list(others)[1:]):
        shutil.copytree(tmp_path / "planned", log)
        reader = reader_of(log, mode=mode)
        (part,) = reader.partitions()
        (split,) = part.pieces
        shutil.rmtree(log)
        shutil.copytree(tmp_path / name, log)
        with pytest.raises(deedbook.NotALogError, match="another log") as caught:
            list(reader.read(part))
        assert split.identity in str(caught.value)
        with deedbook.open(log) as now:
            found = now.splits()[0].identity
        assert found != split.identity and found.split()[0] in str(caught.value)
        shutil.rmtree(log)


@pytest.mark.parametrize("plain", [Book, Wal])
def test_the_same_log_is_known_again(tmp_path: Path, plain: Any) -> None:
    """A log's identity survives a copy to another node, appends, and damage at its record."""
    path = tmp_path / "log"
    with plain.create(path) as log:
        log.append_many([b"one", b"two", b"three"])
        reader = reader_of(path, mode="DROPMALFORMED")
        (part,) = reader.partitions()
        log.append_many([b"four", b"five"])

    def payloads() -> list[bytes]:
        name = "jam" if plain is Book else "payload"
        return [row[name] for batch in reader.read(part) for row in batch.to_pylist()]

    assert payloads() == [b"one", b"two", b"three"]
    shutil.move(path, tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", path)
    shutil.rmtree(path / ".deedbook")
    assert payloads() == [b"one", b"two", b"three"]
    file = path / "book.log" if plain is Book else path / f"{0:020d}.wal"
    flip(file, file.read_bytes().index(b"three"))
    assert payloads() == [b"one", b"two"]


def test_a_dropped_prefix_is_no_other_log(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "log", segment_bytes=4096) as wal:
        lsns = [wal.append(b"%d" % number) for number in range(1000)]
        wal.sync()
        reader = reader_of(tmp_path / "log", mode="DROPMALFORMED")
        (part,) = reader.partitions()
        wal.truncate_before(lsns[600])
        rows = [row["payload"] for batch in reader.read(part) for row in batch.to_pylist()]
    assert rows == [b"%d" % number for number in range(600, 1000)]


@pytest.mark.parametrize("identity", ["", "x", "16", "16:zz", "16:00000000", "1:0 2:0 3:0"])
def test_a_split_with_a_malformed_identity_is_refused(tmp_path: Path, identity: str) -> None:
    with pytest.raises(InvalidArgumentError, match="identity"):
        Split("book", tmp_path, 1, 1, 16, 41, identity=identity)


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_epochs_with_gaps_or_overlaps_are_refused(tmp_path: Path, mode: str) -> None:
    pier = tmp_path / "zod" / ".urb" / "log"
    for name, first in (("0i0", 1), ("0i3", 4), ("0i8", 9)):
        write_book(pier / name, [b"x"] * 3, first=first)
    for path in (tmp_path / "zod", pier):
        with pytest.raises(ContiguityError) as caught:
            reader_of(path, mode=mode).partitions()
        assert "0i8 begins with event 9" in str(caught.value)
        assert "0i3 ends with event 6: events 7 to 8 are missing" in str(caught.value)
    shutil.rmtree(pier / "0i8")
    write_book(pier / "0i5", [b"x"] * 3, first=6)
    with pytest.raises(ContiguityError, match=r"begins with event 6.*ends with event 6: .*both"):
        reader_of(pier, mode=mode).partitions()
    assert [row["event"] for row in rows_of(reader_of(pier, mode=mode, end=6))] == [1, 2, 3, 4, 5]
    named = reader_of(pier / "0i*", mode=mode)
    assert [row["event"] for row in rows_of(named)] == [1, 2, 3, 4, 5, 6, 6, 7, 8]


def test_epochs_in_order_and_empty_ones_are_read(tmp_path: Path) -> None:
    for name, first, count in (("0i0", 1, 9), ("0i9", 10, 1), ("0i10", 11, 2)):
        write_book(tmp_path / name, [b"x"] * count, first=first)
    Book.create(tmp_path / "0i12").close()
    assert [row["event"] for row in rows_of(reader_of(tmp_path))] == list(range(1, 13))
    Book.create(tmp_path / "0i20").close()
    with pytest.raises(ContiguityError, match="events 13 to 20 are missing"):
        reader_of(tmp_path).partitions()


def test_an_empty_file_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    write_book(tmp_path / "book", [b"x"])
    assert detect(tmp_path / "_SUCCESS") is None
    assert len(rows_of(reader_of(tmp_path / "*"))) == 1
    for log in ("book", "wal"):
        with pytest.raises(deedbook.MissingError, match="no log there"):
            reader_of(tmp_path / "_SUCCESS", log=log)
    with Wal.create(tmp_path / "new.wal", single_file=True):
        assert (tmp_path / "new.wal").stat().st_size == 0
        assert find_logs([str(tmp_path / "*")], partial(WAL.expand, options=ReadOptions())) == [
            tmp_path / "new.wal"
        ]
        assert rows_of(reader_of(tmp_path / "new.wal")) == []


def test_a_log_that_does_not_open_is_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        write_book(tmp_path / f"{number}", [b"x"])
    (tmp_path / "1" / "book.log").write_bytes(b"no log at all, whatever it is")
    with pytest.raises(Error) as caught:
        reader_of(tmp_path).partitions()
    assert str(tmp_path / "1") in str(caught.value)
    with caplog.at_level(logging.WARNING, "deedbook"):
        dropped = rows_of(reader_of(tmp_path, mode="DROPMALFORMED"))
    assert len(dropped) == 2
    assert f"passed over {tmp_path}/1, which does not open: " in caplog.text
    rows = rows_of(
        reader_of(tmp_path, mode="PERMISSIVE", columns="event,path,offset,length,_corrupt_record")
    )
    assert [row["event"] for row in rows] == [1, None, 1]
    assert rows[1]["path"].startswith(f"{tmp_path}/1")
    assert rows[1]["_corrupt_record"].startswith(f"{rows[1]['path']}: the log does not open: ")
    assert (rows[1]["offset"], rows[1]["length"]) == (0, 0)


def test_unopenable_single_file_is_damage(tmp_path: Path) -> None:
    for name in ("a.wal", "b.wal"):
        append_to("wal", tmp_path / name, [b"x" * 100] * 10, single_file=True)
    (tmp_path / ".deedbook" / "b.wal" / "loss").write_bytes(b"no note of a loss")
    with pytest.raises(CorruptError):
        reader_of(tmp_path / "*.wal").partitions()
    rows = rows_of(reader_of(tmp_path / "*.wal", mode="PERMISSIVE"))
    assert len(rows) == 11 and rows[-1]["payload"] is None
    assert "does not open" in rows[-1]["_corrupt_record"]
    assert len(rows_of(reader_of(tmp_path / "*.wal", mode="DROPMALFORMED"))) == 10
