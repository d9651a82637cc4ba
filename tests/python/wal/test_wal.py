"""Write-ahead logs from Python, and changes of an open log or of its surroundings."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deedbook
from deedbook import Book, Wal
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


def fill(path: Path, records: int = 100) -> tuple[Wal, list[int]]:
    wal = Wal.create(path, segment_bytes=4096)
    lsns = [wal.append(b"%05d" % i * 200) for i in range(records)]
    wal.sync()
    return wal, lsns


def test_open_log_ignores_a_changed_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "b")
    Wal.create("log", segment_bytes=4096).close()
    monkeypatch.chdir(tmp_path / "a")
    with Wal.create("log", segment_bytes=4096) as wal, Book.create("book") as book:
        monkeypatch.chdir(tmp_path / "b")
        first = wal.commit(b"x" * 1000)
        for _ in range(20):
            last = wal.commit(b"x" * 1000)
        wal.set_consumer("c", last)
        wal.truncate_before(last)
        book.append(b"deed")
        book.save_meta(who=1, fake=False, life=1)
    assert first == 0
    monkeypatch.chdir(tmp_path)
    assert Wal.verify("a/log").records == 1
    assert Wal.verify("b/log").records == 0
    assert Book.verify("a/book").records == 1


@pytest.mark.parametrize("last", ["sync", "close", "truncate_before"])
def test_slow_sync_handler_may_use_the_log(tmp_path: Path, last: str) -> None:
    program = """
import logging, sys
from deedbook import Wal

wal = Wal.create(sys.argv[1], slow_sync=0.0)

class Handler(logging.Handler):
    told = 0

    def emit(self, record):
        self.told += 1
        if self.told == 1:
            lsn = wal.commit(b"from the handler")
            getattr(wal, sys.argv[2])(*([lsn] if "truncate" in sys.argv[2] else []))

logging.getLogger("deedbook").addHandler(Handler())
wal.commit(b"one")
wal.close()
"""
    path = str(tmp_path / "log")
    subprocess.run([sys.executable, "-c", program, path, last], check=True, timeout=30)
    assert Wal.verify(path).records == (1 if last == "truncate_before" else 2)


@pytest.mark.skipif(sys.platform == "win32", reason="no POLLERR")
def test_following_ends_when_the_reader_is_gone(tmp_path: Path) -> None:
    """As with `tail -f`, when a reader has read enough and leaves."""
    wal, _ = fill(tmp_path / "log", 3)
    with wal:
        command = [sys.executable, "-m", "deedbook", "cat", str(tmp_path / "log"), "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.stdout.close()
            assert child.wait(30) == 141
