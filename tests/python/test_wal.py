"""Write-ahead logs from Python."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import deedbook
from deedbook import Record, Split, Wal

LAYOUTS = [{"single_file": True}, {"segment_bytes": 64}, {"segment_bytes": 1 << 20}]


@pytest.fixture(params=LAYOUTS, ids=["single", "segments-64", "segments-1M"])
def layout(request: pytest.FixtureRequest) -> dict[str, object]:
    return dict(request.param)


def create(path: Path, layout: dict[str, object], **options: object) -> Wal:
    return Wal.create(path, **layout, **options)  # type: ignore[arg-type]


# -- appending and reading ------------------------------------------------------------------------


def test_records_come_back_by_position_and_both_ways(
    tmp_path: Path, layout: dict[str, object]
) -> None:
    path = tmp_path / "wal"
    payloads = [b"%d" % i * (i % 40) for i in range(500)]
    with create(path, layout) as wal:
        lsns = [wal.append(payload) for payload in payloads[:100]]
        lsns += [record.lsn for record in wal.iter(*wal.append_batch(payloads[100:200]))]
        first, end = wal.append_many(payloads[200:])
        assert (wal.end, wal.head, len(wal)) == (end, 0, 500)
        assert wal.durable_end == 0
        wal.sync()
        assert wal.durable_end == end
    with Wal.open(path) as wal:
        assert wal.recovery.source == "mark" and wal.recovery.verdict == "clean"
        records = list(wal)
        assert [record.payload for record in records] == payloads
        assert [record.lsn for record in records][:200] == lsns
        assert records[200].lsn == first and records[-1].next_lsn == end
        assert list(reversed(wal)) == records[::-1]
        assert list(wal.payloads()) == payloads
        start, stop = records[123].lsn, records[130].lsn
        assert list(wal.iter(start, stop)) == records[123:130]
        assert list(wal.iter(start, stop, reverse=True)) == records[123:130][::-1]
        assert wal.read(start) == Record(start, payloads[123])
        assert wal.bounds == (0, records[-1].lsn)
        with pytest.raises(deedbook.OutOfRangeError):
            wal.read(records[-1].lsn + 1)
        with pytest.raises(deedbook.OutOfRangeError):
            wal.read(end)
        with pytest.raises(deedbook.ReadOnlyError):
            wal.append(b"no")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_like_objects_go_in_and_bytes_come_out(tmp_path: Path, kind: type) -> None:
    with Wal.create(tmp_path / "wal") as wal:
        lsn = wal.append(kind(b"payload"))
        assert wal.read(lsn) == Record(lsn, b"payload")
        assert type(wal.read(lsn).payload) is bytes
        with pytest.raises(TypeError, match="bytes are needed"):
            wal.append("text")  # type: ignore[arg-type]


def test_an_atomic_append_is_one_record_of_several_parts(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal") as wal:
        lsn = wal.append_atomic([b"one", b"", bytearray(b"three")])
        wal.append(b"ordinary")
        packed, ordinary = wal
        assert packed.lsn == lsn and packed.parts == [b"one", b"", b"three"]
        assert ordinary.parts is None
        number, payload = ordinary
        assert (number, payload) == (packed.next_lsn, b"ordinary")


def test_arrow_goes_in_and_out(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with Wal.create(tmp_path / "wal", segment_bytes=4096) as wal:
        wal.append_many(pa.array(["a", "bb"] * 1000))
        wal.append_many(pa.table({"payload": [b"x"], "other": [1]}))
        with pytest.raises(deedbook.InvalidArgumentError, match='no column "payload"'):
            wal.append_many(pa.table({"a": [b"x"], "b": [1]}))
        table = pa.table(wal)
        assert table.schema.names == ["lsn", "payload"]
        assert table.num_rows == 2001 and pa.table(wal).equals(table)
        assert table["lsn"].to_pylist() == [record.lsn for record in wal]
        lengths = pa.table(wal.batches(columns=["length", "lsn"]))
        assert lengths["length"].to_pylist()[:2] == [9, 10]
        splits = wal.splits(4096)
        assert len(splits) == 1 or sum(split.records or 0 for split in splits) == 2001
    with Wal.open(tmp_path / "wal") as wal:
        parts = [pa.table(split.batches()) for split in wal.splits(4096)]
        assert pa.concat_tables(parts).equals(table)
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    with Wal.open(tmp_path / "wal") as wal:
        assert polars.DataFrame(wal).height == 2001
        assert duckdb.sql("select count(*) from wal").fetchall() == [(2001,)]


# -- dropping -------------------------------------------------------------------------------------


def test_truncation_at_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "wal"
    with Wal.create(path, segment_bytes=128) as wal:
        lsns = [wal.append(bytes([i]) * 20) for i in range(100)]
        with pytest.raises(deedbook.InvalidArgumentError, match="not durable"):
            wal.truncate_after(lsns[80])
        wal.sync()
        wal.truncate_after(lsns[80])
        wal.truncate_from(lsns[79])
        wal.set_consumer("reader", lsns[10])
        assert wal.consumers() == {"reader": lsns[10]}
        with pytest.raises(deedbook.InvalidArgumentError, match='"reader" needs lsn 280'):
            wal.truncate_before(lsns[20])
        wal.truncate_before(lsns[20], force=True)
        wal.remove_consumer("reader")
        assert [record.lsn for record in wal] == lsns[20:79]
        would = wal.retain(max_bytes=500, dry_run=True)
        gone = wal.retain(max_bytes=500)
        assert gone == would and gone.records > 0
        assert (gone.head, gone.end, gone.bytes) == (wal.head, wal.end, wal.head - lsns[20])
        assert wal.retain(consumed=True).records == 0
        assert wal.retain(max_age=3600.0).records == 0
        stats, head = wal.stats(), wal.head
        assert stats.dropped_records == 20 + gone.records
        assert (stats.dropped_bytes, stats.dropped_files) == (head, head // 128)
    assert not (path / "00000000000000000000.wal").exists()
    with Wal.open(path) as wal:
        assert wal.head == head and [record.lsn for record in wal][-1] == lsns[78]
        with pytest.raises(deedbook.OutOfRangeError):
            wal.read(lsns[20])


def test_the_archive_hook_gets_segments_and_may_refuse(tmp_path: Path) -> None:
    got: list[int] = []

    def archive(index: int, path: os.PathLike[str]) -> None:
        if len(got) == 2:
            raise OSError("no room")
        got.append(index)
        assert Path(path).stat().st_size == 64

    with Wal.create(tmp_path / "wal", segment_bytes=64, archive=archive) as wal:
        lsns = [wal.append(b"x" * 24) for _ in range(20)]
        wal.sync()
        wal.truncate_before(lsns[4])
        assert got == [0, 1]
        with pytest.raises(deedbook.IoError, match="no room"):
            wal.truncate_before(lsns[8])
        assert wal.head == lsns[4]


def test_an_open_writer_keeps_to_its_retention(tmp_path: Path) -> None:
    path = tmp_path / "wal"
    with Wal.create(path, segment_bytes=64, retain_bytes=200, retain_consumers=True) as wal:
        for _ in range(50):
            wal.commit(b"x" * 24)
            assert wal.end - wal.head < 200 + 2 * 64
        with Wal.open(path) as reader:
            reader.set_consumer("slow", reader.head)
        kept = wal.head
        assert [wal.commit(b"x" * 24) for _ in range(50)] and wal.head == kept
        head = wal.head
    # At opening, too; what is too old may go although it is not much.
    with Wal.open(path) as reader:
        reader.remove_consumer("slow")
    with Wal.open(path, "a", retain_age=0.0) as wal:
        assert wal.head > head
    with pytest.raises(deedbook.InvalidArgumentError, match="retain_age"):
        Wal.open(path, "a", retain_age=-1.0)
    with pytest.raises(deedbook.UnsupportedError, match="single file"):
        Wal.open(tmp_path / "single", "a", single_file=True, retain_bytes=1)


# -- what goes wrong ------------------------------------------------------------------------------


def test_damage_is_told_and_read_around(tmp_path: Path, layout: dict[str, object]) -> None:
    path = tmp_path / "wal"
    with create(path, layout) as wal:
        lsns = [wal.append(b"%02d" % i * 10) for i in range(30)]
    with Wal.open(path) as wal:
        size = wal.segment_bytes or 1 << 40
        file = wal.segment_paths[(lsns[9] + 10) // size]
    with open(file, "r+b") as raw:
        raw.seek((lsns[9] + 10) % size)
        byte = raw.read(1)
        raw.seek(-1, os.SEEK_CUR)
        raw.write(bytes([byte[0] ^ 1]))
    report = Wal.verify(path)
    assert (report.verdict, report.ok, report.records) == ("corrupt", False, 29)
    assert report.damages[0].offset == lsns[9] and report.damages[0].next_intact == lsns[10]
    assert report.to_dict()["damages"][0]["offset"] == lsns[9]
    with Wal.open(path) as wal:
        with pytest.raises(deedbook.CorruptError) as caught:
            list(wal)
        assert caught.value.offset == lsns[9] and caught.value.next_intact == lsns[10]
        skipping = wal.iter(on_corrupt="skip")
        assert len(list(skipping)) == 29
        assert len(skipping.damages) == 1  # type: ignore[attr-defined]
    salvaged = Wal.salvage(path, tmp_path / "copy")
    assert salvaged.records == 29
    assert [run.source_offset for run in salvaged.runs] == [0, lsns[10]]
    with pytest.raises(deedbook.CorruptError):
        Wal.repair(path)
    repaired = Wal.repair(path, force=True, accept_loss=True)
    assert repaired.valid_end == lsns[9] and repaired.saved_to is not None
    assert len(Path(repaired.saved_to).read_bytes()) >= lsns[-1] - lsns[9]
    with Wal.open(path, "a") as wal:
        assert len(wal) == 9 and wal.append(b"on") == lsns[9]
    assert Wal.verify(path).ok and Wal.verify(tmp_path / "copy").ok


@pytest.mark.parametrize("single_file", [False, True])
def test_a_salvage_takes_consumers_along(tmp_path: Path, single_file: bool) -> None:
    """A newcomer: ``wal.consumers()["mail"]`` died with KeyError in the copy."""
    path, copy = tmp_path / "log", tmp_path / "copy"
    with Wal.create(path, single_file=single_file) as wal:
        lsns = [wal.append(b"%02d" % i * 10) for i in range(10)]
        for name, number in {"before": 2, "gap": 4, "after": 7}.items():
            wal.set_consumer(name, lsns[number])
        wal.set_consumer("end", wal.end)
    file = path if single_file else path / f"{0:020d}.wal"
    raw = bytearray(file.read_bytes())
    raw[lsns[4] + 9] ^= 1
    file.write_bytes(raw)
    report = Wal.salvage(path, copy)
    assert (report.records, report.consumers, report.moved_consumers) == (9, 4, ["gap"])
    assert (report.transactions, report.unfinished_transactions, report.not_carried) == (0, 0, [])
    with Wal.open(copy) as wal:
        consumers = wal.consumers()
        assert consumers.pop("end") == wal.end
        needed = {name: wal.read(lsn).payload[:2] for name, lsn in consumers.items()}
    assert needed == {"before": b"02", "gap": b"05", "after": b"07"}


def test_a_split_carries_the_segment_size_to_other_processes(tmp_path: Path) -> None:
    """A hunt: an executor of Spark had to guess the size that ``segment_bytes`` had named.

    It refused a log whose only segment is not the first, which ``Wal.open`` had read.
    """
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


def test_errors_are_told_by_class(tmp_path: Path) -> None:
    with pytest.raises(deedbook.MissingError) as missing:
        Wal.open(tmp_path / "none")
    assert missing.value.errno == errno.ENOENT
    with Wal.create(tmp_path / "wal", record_bytes_max=100) as wal:
        with pytest.raises(deedbook.TooLargeError):
            wal.append(b"x" * 101)
        with pytest.raises(deedbook.LockedError) as locked:
            Wal.open(tmp_path / "wal", "a")
        assert locked.value.holder == os.getpid()
        with pytest.raises(TypeError):
            pickle.dumps(wal)
    with pytest.raises(deedbook.ClosedError):
        wal.append(b"x")
    with pytest.raises(deedbook.AlreadyExistsError):
        Wal.create(tmp_path / "wal")
    with pytest.raises(deedbook.InvalidArgumentError, match="segment size 64 asked for"):
        Wal.open(tmp_path / "wal", segment_bytes=64)
    with pytest.raises(deedbook.InvalidArgumentError, match="layout single asked for"):
        Wal.open(tmp_path / "wal", single_file=True)
    with pytest.raises(deedbook.InvalidArgumentError, match="beside single_file"):
        Wal.create(tmp_path / "other", single_file=True, segment_bytes=64)


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal") as wal:
        wal.append(b"parent")
        child = os.fork()
        if child == 0:
            try:
                wal.append(b"child")
            except deedbook.ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        wal.commit(b"parent goes on")
    assert len(Wal.open(tmp_path / "wal")) == 2


# -- threads, statistics --------------------------------------------------------------------------


def test_a_slow_sync_is_told_to_the_logger(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "deedbook"),
        Wal.create(tmp_path / "wal", slow_sync=0.0) as wal,
    ):
        wal.commit(b"x")
    assert "slow sync" in caplog.text and wal.path in caplog.text


def test_following_sees_what_another_handle_appends(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "wal", segment_bytes=64) as wal:
        wal.append(b"first")
        with Wal.open(tmp_path / "wal") as reader:
            records = reader.follow(timeout=5.0)
            assert next(records).payload == b"first"
            timer = threading.Timer(0.05, lambda: wal.append(b"x" * 200))
            timer.start()
            assert next(records).payload == b"x" * 200
            timer.join()
            assert list(reader.follow(reader.end, timeout=0.01)) == []
            stale = reader.follow(reader.end, timeout=0.1)
            wal.sync()
            wal.truncate_from(0)
            with pytest.raises(deedbook.OutOfRangeError):
                next(stale)


CUTTER = """
import sys
from deedbook import Wal

with Wal.open(sys.argv[1], "a", segment_bytes=512) as wal:
    while True:
        lsns = [wal.append(b"%04d" % i * 5) for i in range(100)]
        wal.sync()
        wal.truncate_after(lsns[10])
"""


def test_a_follower_of_a_log_whose_end_is_cut_meets_no_damage(tmp_path: Path) -> None:
    """Kills beside followers: "segment 7 has 175 bytes, must have 512", and lost records."""
    path = tmp_path / "wal"
    Wal.create(path, segment_bytes=512).close()
    followed = 0
    with subprocess.Popen([sys.executable, "-c", CUTTER, path]) as writer:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            with Wal.open(path) as reader, contextlib.suppress(deedbook.OutOfRangeError):
                for _ in reader.follow(reader.end, timeout=0.1):
                    followed += 1
                    if time.monotonic() > until:
                        break
        writer.kill()
    assert followed > 100
