"""Batch reads of ledgers through Spark: only finished files, and no replaced files."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deedbook import InvalidArgumentError, Ledger, MissingError, NotALogError
from ledgers import damage, events, file_of, files
from places import ROOT, SUPPORT
from shell import obey_permissions
from spark_session import load, reader_of, rows_of, tuples

INDEXES = (2, 9, 10)
ROWS = [(index, n, event) for index in INDEXES for n, event in enumerate(events(index))]


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    files(tmp_path / "spool", *INDEXES)
    return tmp_path / "spool"


def payloads(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["payload"] for row in rows if row["payload"] is not None]


def test_ledger_events_are_read_once_in_sending_order(spark: Any, spool: Path) -> None:
    frame = load(spark, spool)
    assert frame.dtypes == [("file", "bigint"), ("record", "int"), ("payload", "binary")]
    assert tuples(frame) == ROWS
    assert frame.rdd.getNumPartitions() == 1  # small files share a task
    assert frame.where("file = 9").count() == 3
    wide = load(spark, spool, columns="path,offset,length,file").collect()
    assert [row.path for row in wide] == [str(spool / f"{file}-events") for file, _, _ in ROWS]
    assert (wide[1].offset, wide[1].length) == (len(events(2)[0]) + 8, len(events(2)[1]) + 8)
    assert load(spark, spool, columns="file").agg({"file": "sum"}).head()[0] == 3 * sum(INDEXES)
    assert sorted(os.listdir(spool)) == ["10-events", "2-events", "9-events"]


def test_paths_globs_and_directories_lead_to_ledgers(spark: Any, tmp_path: Path) -> None:
    for name in ("a1", "a2", "b"):
        file_of(tmp_path / name, 0, [name.encode()])
    assert [p for _, _, p in tuples(load(spark, tmp_path / "a*"))] == [b"a1", b"a2"]
    assert [p for _, _, p in tuples(load(spark, tmp_path))] == [b"a1", b"a2", b"b"]
    both = load(spark, [tmp_path / "b", tmp_path / "a1" / "0-events"])
    assert [p for _, _, p in tuples(both)] == [b"b", b"a1"]


def test_damage_in_each_mode(spark: Any, spool: Path) -> None:
    at = damage(spool / "9-events")
    with pytest.raises(Exception, match=rf"9-events: byte {at}.*PERMISSIVE reads on"):
        load(spark, spool).collect()
    intact = [payload for _, _, payload in ROWS[:4] + ROWS[5:]]
    dropped = tuples(load(spark, spool, mode="DROPMALFORMED"))
    assert [payload for _, _, payload in dropped] == intact
    permissive = load(spark, spool, mode="PERMISSIVE").collect()
    told = [row for row in permissive if row["_corrupt_record"] is not None]
    assert len(permissive) == 9 and len(told) == 1
    assert (told[0].file, told[0].record, told[0].payload) == (9, None, None)
    assert "9-events: bytes" in told[0]["_corrupt_record"]


WRITER = """
import sys, time
from deedbook import Ledger
ledger = Ledger.open(sys.argv[1], "a")
ledger.append(b"being written")
print("ready", flush=True)
sys.stdin.read()
"""


def test_active_file_of_a_live_writer_is_excluded(spool: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(spool)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
        planned = reader_of(spool)
        assert payloads(rows_of(planned)) == [payload for _, _, payload in ROWS]
        # A named file is left out, too, because the content of a read file must not change.
        assert rows_of(reader_of(spool / "11-events")) == []
        assert len(rows_of(reader_of(spool / "*-events"))) == 9
        writer.communicate()
    assert payloads(rows_of(planned))[-1] == b"being written"  # planned again, as Spark does


def test_blank_and_empty_files_have_no_rows(spool: Path) -> None:
    file_of(spool, 3, [])
    (spool / "4-events").write_bytes(bytes(4096))
    (spool / "5-other").write_bytes(b"no ledger's")
    torn = spool / "9-events"
    torn.write_bytes(torn.read_bytes() + b"\x20\0\0\0torn")
    assert len(rows_of(reader_of(spool))) == 9


def test_drained_ledger_is_empty_and_empty_directory_fails(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "spool", "a") as ledger:
        ledger.append(b"1")
        fetched = ledger.fetch()
        assert fetched is not None
        ledger.remove(fetched.removable)
    assert reader_of(tmp_path / "spool").partitions() == []
    (tmp_path / "empty").mkdir()
    (tmp_path / "like").mkdir()
    (tmp_path / "like" / "2024-report").write_bytes(b"up and down\n" * 100)
    for name in ("empty", "like"):
        with pytest.raises(MissingError, match="files N-BASE of a ledger"):
            reader_of(tmp_path / name)


def test_start_and_end_are_files(spool: Path) -> None:
    damage(spool / "2-events")  # outside of the range
    assert payloads(rows_of(reader_of(spool, start=3, end=10))) == events(9)
    assert payloads(rows_of(reader_of(spool, start=10))) == events(10)
    assert rows_of(reader_of(spool, start=9, end=9)) == []


def test_several_logs_per_directory_need_base_or_format(spool: Path) -> None:
    file_of(spool, 0, [b"1"], "clicks")
    for mode in ("FAILFAST", "PERMISSIVE"):
        with pytest.raises(
            InvalidArgumentError, match=r"option base: there are several.*clicks, ev"
        ):
            reader_of(spool, mode=mode)
    assert payloads(rows_of(reader_of(spool, base="clicks"))) == [b"1"]
    assert len(rows_of(reader_of(spool, base="events"))) == 9
    with pytest.raises(MissingError):
        reader_of(spool, base="none")
    (spool / "0-clicks").unlink()
    (spool / f"{0:020d}.wal").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="holds both a write-ahead log"):
        reader_of(spool)
    assert len(rows_of(reader_of(spool, log="ledger"))) == 9


def test_large_files_are_split(spool: Path) -> None:
    large = [b"%06d" % n * 100 for n in range(5000)]
    file_of(spool, 300, large)
    planned = reader_of(spool, start=300, splitSize="256k")
    parts = planned.partitions()
    assert 10 <= len(parts) <= 14
    rows = rows_of(planned, parts)
    assert payloads(rows) == large and [row["record"] for row in rows] == list(range(5000))


def test_file_sent_after_planning_raises_or_is_skipped(
    spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        planned = reader_of(spool, mode=mode)
        parts = planned.partitions()
        (spool / "9-events").rename(spool / "away")
        with pytest.raises(
            MissingError, match=r"since the query was planned.*ignoreMissingFiles"
        ) as e:
            rows_of(planned, parts)
        assert e.value.path == str(spool / "9-events") and e.value.filename == e.value.path
        (spool / "away").rename(spool / "9-events")
    planned = reader_of(spool, ignoreMissingFiles=True)
    parts = planned.partitions()
    (spool / "9-events").unlink()
    with caplog.at_level(logging.WARNING, "deedbook"):
        rows = rows_of(planned, parts)
    assert payloads(rows) == events(2) + events(10)
    assert f"passed over {spool / '9-events'}" in caplog.text
    # A later plan does not have the file.
    assert payloads(rows_of(reader_of(spool))) == events(2) + events(10)


def test_another_file_of_that_name_is_refused(spool: Path) -> None:
    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        planned = reader_of(spool, mode=mode, ignoreMissingFiles=True)
        parts = planned.partitions()
        for file, others in (("9", [b"another"]), ("9", [*events(9)[:2], b'{"file":9,"n":X}'])):
            file_of(spool, int(file), others)
            with pytest.raises(NotALogError, match="another log than the one that was split"):
                rows_of(planned, parts)
        file_of(spool, 9, events(9))
        assert len(rows_of(planned, parts)) == 9  # the same bytes are the same file


UNREADABLE = """
import sys
from spark_session import reader_of, rows_of
from streams import read, reader
path = sys.argv[1]
try:
    reader_of(path).partitions()
except OSError as error:
    print(error.filename)
print(len(rows_of(reader_of(path, mode="DROPMALFORMED"))))
rows = rows_of(reader_of(path, mode="PERMISSIVE"))
print(len(rows), *[(row["file"], row["_corrupt_record"]) for row in rows if row["_corrupt_record"]])
for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
    stream = reader(path, mode=mode, failOnDataLoss="false", maxRowsPerTrigger="4")
    place, counts = stream.initialOffset(), []
    try:
        while (stop := stream.latestOffset(place, stream.getDefaultReadLimit())) != place:
            counts.append(len(read(stream, place, stop)))
            place = stop
    except OSError as error:
        counts.append(error.filename)
    print(*counts)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="root may read everything")
def test_unreadable_ledger_file_does_not_hide_others(spool: Path) -> None:
    hidden = spool / "9-events"
    hidden.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, str(spool)],
        capture_output=True,
        text=True,
        cwd=SUPPORT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        preexec_fn=obey_permissions,
    )
    assert done.returncode == 0, done.stderr
    batch, stream = done.stdout.splitlines()[:3], done.stdout.splitlines()[3:]
    assert batch[:2] == [str(hidden), "6"]
    assert batch[2].startswith("7 (9, ") and "does not open" in batch[2]
    assert f"passed over {hidden}" in done.stderr
    assert stream[0].endswith(str(hidden)) and stream[1:] == ["3 3", "3 4"]
