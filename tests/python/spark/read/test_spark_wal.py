"""Batch reads of write-ahead logs through Spark, held against Python iteration."""

from pathlib import Path
from typing import Any

import pytest

from deedbook import Wal
from logs import append_to
from spark_session import load, tuples

pytestmark = pytest.mark.spark

SEGMENT_BYTES = 128 << 10
RECORDS = 12_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of several segments, and records that span them."""
    path = tmp_path_factory.mktemp("wal") / "log"
    records = [b"%d:" % i * (i % 25) for i in range(RECORDS)]
    append_to("wal", path, records, segment_bytes=SEGMENT_BYTES)
    return path


def rows_of(path: Path) -> list[tuple[int, bytes]]:
    with Wal.open(path) as wal:
        return [(record.lsn, record.payload) for record in wal]


def test_every_record_is_read_once_whatever_the_segments(spark: Any, log: Path) -> None:
    frame = load(spark, log, splitSize="64k", batchRows=100, batchBytes="4k", verify="none")
    assert frame.dtypes == [("lsn", "bigint"), ("payload", "binary")]
    with Wal.open(log) as wal:
        segments, finer = len(wal.segment_paths), len(wal.splits(64 << 10))
    assert segments > 4 and frame.rdd.getNumPartitions() == finer > 4
    assert tuples(frame) == rows_of(log)  # in the order of the log
    assert load(spark, log, log="wal", columns="length").agg({"length": "sum"}).head()[0] == (
        rows_of(log)[-1][0] + 8 + len(rows_of(log)[-1][1])
    )


def test_a_dropped_prefix_and_a_directory_of_logs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("a", "b"):
        with Wal.create(tmp_path / "logs" / name, segment_bytes=4096) as wal:
            lsns = [wal.append(b"%s %d" % (name.encode(), i)) for i in range(2000)]
            wal.sync()
            wal.truncate_before(lsns[1500])
    frame = load(spark, tmp_path / "logs", columns="lsn,path")
    assert frame.count() == 1000 and frame.agg({"lsn": "min"}).head()[0] == lsns[1500]
    single = tmp_path / "one.wal"
    append_to("wal", single, [b"x", b"y"], single_file=True)
    assert [bytes(row.payload) for row in load(spark, single).collect()] == [b"x", b"y"]


def test_a_start_that_was_dropped_is_an_error(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Wal.create(path, segment_bytes=4096) as wal:
        lsns = [wal.append(b"%d" % i) for i in range(1000)]
        wal.sync()
        wal.truncate_before(lsns[600])
        end = wal.end
    with pytest.raises(Exception, match=f"lsn {lsns[10]} was dropped, .* begins at {lsns[600]}"):
        load(spark, path, start=lsns[10]).count()
    assert load(spark, path, start=lsns[600]).count() == 400
    assert load(spark, path, start=lsns[600], end=lsns[601]).head().payload == b"600"
    assert load(spark, path, start=end).count() == 0
    with pytest.raises(Exception, match=f"lsn {end + 5000}, the log ends at byte {end}"):
        load(spark, path, start=end + 5000).count()
