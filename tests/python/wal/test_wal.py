"""Write-ahead logs from Python."""

import pickle
import shutil
from pathlib import Path

import pytest

import deedbook
from deedbook import Wal
from deedbook.jobs import Split


def test_arrow_goes_in_and_out(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with Wal.create(tmp_path / "wal", segment_bytes=4096) as wal:
        wal.append_many(pa.array(["a", "bb"] * 1000))
        wal.append_many(pa.table({"payload": [b"x"], "other": [1]}))
        with pytest.raises(deedbook.InvalidArgumentError, match='no column "payload"'):
            wal.append_many(pa.table({"a": [b"x"], "b": [1]}))
        table = pa.table(wal)
        assert table.schema.names == ["lsn", "payload"] and table.num_rows == 2001
        assert table["lsn"].to_pylist() == [record.lsn for record in wal]
        lengths = pa.table(wal.batches(columns=["length", "lsn"]))
        assert lengths["length"].to_pylist()[:2] == [9, 10]
    with Wal.open(tmp_path / "wal") as wal:
        parts = [pa.table(split.batches()) for split in wal.splits(4096)]
        assert pa.concat_tables(parts).equals(table)


# -- dropping -------------------------------------------------------------------------------------


def test_an_open_writer_keeps_to_its_retention(tmp_path: Path) -> None:
    path = tmp_path / "wal"
    with Wal.create(path, segment_bytes=64, retain_bytes=200, retain_consumers=True) as wal:
        for _ in range(50):
            wal.commit(b"x" * 24)
        assert wal.end - wal.head < 200 + 2 * 64
        wal.set_consumer("slow", kept := wal.head)
        for _ in range(50):
            wal.commit(b"x" * 24)
        assert wal.head == kept
        wal.remove_consumer("slow")
    with Wal.open(path, "a", retain_age=0.0) as wal:
        assert wal.head > kept
    with pytest.raises(deedbook.InvalidArgumentError, match="retain_age"):
        Wal.open(path, "a", retain_age=-1.0)


def test_one_file_has_no_segments(tmp_path: Path) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="beside single_file"):
        Wal.create(tmp_path / "wal", single_file=True, segment_bytes=64)
    Wal.create(tmp_path / "wal").close()
    with pytest.raises(deedbook.InvalidArgumentError, match="layout single asked for"):
        Wal.open(tmp_path / "wal", single_file=True)


def test_split_carries_segment_size_to_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "wal"
    with Wal.create(path, segment_bytes=1000) as wal:
        lsns = [wal.append(b"%04d" % i * 10) for i in range(200)]
        (split,) = wal.splits()
        assert (split.segment_bytes, split.to_dict()["segment_bytes"]) == (1000, 1000)
        wal.sync()
        wal.truncate_before(lsns[-3])
    shutil.rmtree(path / ".deedbook")
    with Wal.open(path, segment_bytes=1000) as wal:
        sent = pickle.dumps(wal.splits())
    (split,) = pickle.loads(sent)
    assert split.segment_bytes == 1000
    assert sum(batch.num_rows for batch in split.batches()) == 3
    assert split.check().intact
    fields = split.to_dict() | {"segment_bytes": None}
    with pytest.raises(deedbook.InvalidArgumentError, match="segment size unknown"):
        Split(**fields).batches()
    with pytest.raises(deedbook.InvalidArgumentError, match="segment size 0"):
        Split(**fields | {"segment_bytes": 0}).batches()
    with Wal.create(tmp_path / "single", single_file=True) as wal:
        wal.append(b"x")
        assert [split.segment_bytes for split in wal.splits()] == [None]
