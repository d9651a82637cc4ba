"""Streams over archives: one number is the offset, and each record comes once."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")

from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxRows

import deedbook
from archived import FIRST, FORMATS, catalog, grow, rows, uploaded
from deedbook import InvalidArgumentError, archive
from spark_session import forget_end
from streams import ALL, Query, all_after, begin, read, reader


@pytest.fixture
def root(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def numbers(offset: dict[str, Any]) -> int:
    assert len(json.dumps(offset)) < 200
    return int(offset["entry"])


def test_query_reads_three_logs_over_restarts(spark: Any, tmp_path: Path, root: str) -> None:
    catalog("wal", tmp_path, root)
    query = Query(spark, root, tmp_path / "checkpoint", columns="path,lsn")
    found = query.run()
    for turn, name in enumerate("cba"):
        uploaded("wal", tmp_path, root, name, 120 * (turn + 1), 60)
        if turn != 1:
            found += query.run()
    forget_end(tmp_path / "checkpoint", 2)  # as killed in the batch, which comes again, the same
    assert query.run() == query.batches[2] != []
    expected = [row for name in "abc" for row in rows(f"{root}/{name}", columns="path,lsn")]
    assert sorted(map(tuple, found)) == sorted(expected)


@pytest.mark.parametrize("format", FORMATS)
def test_each_record_comes_once(format: str, tmp_path: Path, root: str) -> None:
    columns = "path," + FIRST[format]
    catalog(format, tmp_path, root)
    start, stop = begin(reader(root, columns=columns))
    found = read(reader(root, columns=columns), start, stop)
    for turn, name in enumerate("cabba"):
        uploaded(format, tmp_path, root, name, 120 * (turn + 1), 60)
        if turn != 2:
            stream = reader(root, columns=columns)  # as after a restart
            start, stop = stop, stream.latestOffset(stop, ALL)
            assert numbers(stop) == 4 + turn
            found += read(stream, start, stop)
    expected = [row for name in "abc" for row in rows(f"{root}/{name}", columns=columns)]
    assert sorted(found) == sorted(expected)
    some = rows(root, columns=columns, start=expected[20][1])
    assert sorted(some) == sorted(row for row in expected if row[1] >= expected[20][1])


def test_stream_of_one_archive_has_its_pieces(path: Path, root: str) -> None:
    grow("wal", path, 0)
    archive.upload(path, root)
    stream = reader(root, maxBytesPerTrigger="1")
    start, stop = begin(stream, ReadMaxBytes(1))
    batches = 0
    found = []
    while stop != start:
        found += read(stream, start, stop)
        start, stop, batches = stop, stream.latestOffset(stop, ReadMaxBytes(1)), batches + 1
    assert found == rows(root) and batches > 5
    grow("wal", path, 120)
    archive.upload(path, root)
    again = reader(root)
    assert found + all_after(again, start, ALL) == rows(root)
    lsn = found[50][0]
    late = reader(root, startingPosition=str(lsn))
    assert read(late, *begin(late)) == [row for row in rows(root) if row[0] >= lsn]


def test_stream_begins_and_ends_as_told(tmp_path: Path, root: str) -> None:
    catalog("ledger", tmp_path, root, "abcde", 40)
    of_one = len(rows(f"{root}/a"))
    stream = reader(root)
    start, stop = begin(stream)
    assert (numbers(start), numbers(stop)) == (0, 5)
    assert len(read(stream, start, stop)) == 5 * of_one
    assert numbers(stream.latestOffset(start, ReadMaxRows(2 * of_one))) == 2
    assert numbers(stream.latestOffset(start, ReadMaxRows(1))) == 1
    stream.prepareForTriggerAvailableNow()
    uploaded("ledger", tmp_path, root, "f", 0, 40)
    assert stream.latestOffset(stop, ALL) == stop
    assert numbers(reader(root).latestOffset(stop, ALL)) == 6
    assert numbers(reader(root, startingPosition="latest").initialOffset()) == 6
    fourth = reader(root, startingPosition="4")
    assert len(read(fourth, *begin(fourth))) == 3 * of_one
    assert stream.reportLatestOffset()["entry"] == 6
    with pytest.raises(
        InvalidArgumentError, match="a stream of ledgers needs the URL of a catalog"
    ):
        reader(f"{root}/a").initialOffset()


def test_stream_refuses_another_catalog(tmp_path: Path, root: str) -> None:
    catalog("wal", tmp_path, root)
    _, stop = begin(reader(root))
    (tmp_path / "store").rename(tmp_path / "old")
    uploaded("wal", tmp_path, root, "x", 5, 100)
    with pytest.raises(deedbook.LostRecordsError, match="entry is 1, the query had read 3"):
        reader(root).latestOffset(stop, ALL)
    for name in "yz":
        uploaded("wal", tmp_path, root, name, 5, 100)
    with pytest.raises(deedbook.NotALogError, match=f"the query had read {stop['piece']}"):
        reader(root).latestOffset(stop, ALL)
    with pytest.raises(InvalidArgumentError, match="the checkpoint is not this query's"):
        reader(root).latestOffset({"version": 1, "log": "wal", "logs": {}}, ALL)
