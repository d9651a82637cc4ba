"""Archives read by ranges, and an archive with its live log as one log."""

import doctest
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")

import deedbook
from deedbook import Ledger, Pier, Wal, archive
from deedbook.archive import _read, _store
from shell import complaint, ok
from shell import deedbook as run

SEGMENT = 16384


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []
    whole = _store.Store.range

    def fetch(store: Any, name: str, start: int, end: int) -> bytes:
        seen.append((name, end - start))
        return whole(store, name, start, end)

    monkeypatch.setattr(_store.Store, "range", fetch)
    return seen


def wal(path: Path) -> list[deedbook.Record]:
    """A log with records of 0 to 40,000 bytes: some span two borders."""
    with Wal.create(path, segment_bytes=SEGMENT) as log:
        lengths = [0, 1, 50, 700, 9000, 3, 40_000, 100] * 20
        log.append_many(bytes([number]) * length for number, length in enumerate(lengths))
        return list(log)


@pytest.mark.parametrize("window", [1, 50_000, 8 << 20])
def test_ranges_of_a_wal_equal_the_log(
    window: int, path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_read, "WINDOW_BYTES", window)
    records = wal(path)
    archive.upload(path, url)
    opened = archive.open(url)
    assert opened.bounds is not None and opened.format == "wal"
    whole = [record for record in records if record.next_lsn <= opened.bounds[1]]
    assert list(opened.iter()) == whole and len(whole) > 140
    places = [record.lsn for record in records[::30]]
    for start, stop in itertools.combinations(places, 2):
        assert list(opened.iter(start, stop)) == [r for r in whole if start <= r.lsn < stop]
    assert list(opened.payloads(places[3])) == [r.payload for r in whole if r.lsn >= places[3]]
    assert opened.read(places[3]) == next(record for record in whole if record.lsn == places[3])


def test_a_range_fetches_its_pieces_only(
    path: Path, url: str, fetched: list[tuple[str, int]]
) -> None:
    with Wal.create(path, segment_bytes=1 << 20) as log:
        log.append_many(bytes(1000) for _ in range(8000))
        places = [record.lsn for record in log]
    archive.upload(path, url)
    fetched.clear()
    opened = archive.open(url)
    assert len(list(opened.iter(places[3000], places[3010]))) == 10
    assert len({name for name, _ in fetched}) == 1 and sum(n for _, n in fetched) < 200_000
    fetched.clear()
    assert next(opened.payloads()) == bytes(1000)
    assert sum(length for _, length in fetched) <= 8 << 20


STOPS_EARLY = """
import sys
from deedbook import archive
from deedbook.archive import _read
_read.WINDOW_BYTES = 50_000
records = archive.open(sys.argv[1]).iter()
for _ in range(60):
    next(records)
"""


def test_a_reader_may_stop_early(
    path: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_child: Any
) -> None:
    wal(path)
    archive.upload(path, url)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    done = run_child(STOPS_EARLY, url)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "temporary").iterdir()) == []


FORKS = """
import os, sys, time
from deedbook import archive
from deedbook.archive import _read
_read.WINDOW_BYTES = 50_000
records = archive.open(sys.argv[1]).iter()
for _ in range(60):
    next(records)
time.sleep(0.5)  # the next windows are there
child = os.fork()
if not child:
    sys.exit(0)
os.waitpid(child, 0)
print(sum(1 for _ in records))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_removes_no_directory(path: Path, url: str, run_child: Any) -> None:
    wal(path)
    archive.upload(path, url)
    expected = len(list(archive.open(url).iter())) - 60
    done = run_child(FORKS, url)
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr


def test_positions_within_records_are_refused(path: Path, url: str) -> None:
    records = wal(path)
    archive.upload(path, url)
    opened = archive.open(url)
    for start in (records[3].lsn + 1, records[6].lsn + 9000):
        with pytest.raises(deedbook.OutOfRangeError, match=url):
            next(opened.iter(start))
        with pytest.raises(deedbook.OutOfRangeError):
            opened.read(start)
    with Wal.open(path, "a") as log:
        log.truncate_before(log.end, force=True)
    with pytest.raises(deedbook.NotALogError, match="no archived file is left"):
        archive.open(url, log=path)


def test_reading_meets_damage_in_a_piece(path: Path, url: str, tmp_path: Path) -> None:
    wal(path)
    archive.upload(path, url)
    piece = sorted((tmp_path / "store" / "pieces").iterdir())[3]
    data = bytearray(piece.read_bytes())
    data[2000] ^= 1
    piece.write_bytes(data)
    with pytest.raises(deedbook.CorruptError, match="file://"):
        list(archive.open(url).iter())
    piece.write_bytes(data[:1000])
    with pytest.raises((deedbook.CorruptError, deedbook.IoError), match=piece.name):
        list(archive.open(url).iter())


def test_damage_before_a_border_is_no_end(
    path: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core would take the last record of a window for a torn end."""
    monkeypatch.setattr(_read, "WINDOW_BYTES", 1)
    records = wal(path)
    archive.upload(path, url)
    manifest = json.loads((tmp_path / "store" / "manifest.json").read_text())
    borders = {entry[0] for piece in manifest["pieces"] for entry in piece["index"]}
    last = next(record for record in records if record.next_lsn in borders and record.lsn > 9000)
    piece = sorted((tmp_path / "store" / "pieces").iterdir())[last.lsn // SEGMENT]
    data = bytearray(piece.read_bytes())
    data[last.lsn % SEGMENT + 5] ^= 1
    piece.write_bytes(data)
    for limits in ((), (0, last.next_lsn)):
        with pytest.raises(deedbook.CorruptError, match=f"{url}: record at lsn {last.lsn}"):
            list(archive.open(url).iter(*limits))
    assert [r.lsn for r in archive.open(url).iter(0, last.lsn)][-1] < last.lsn


def test_wal_archive_and_live_log_are_one(path: Path, url: str) -> None:
    records = wal(path)
    archive.upload(path, url)
    with Wal.open(path, "a") as log:
        assert log.retain(consumed=True).records > 50
        head = log.head
        log.append_many(b"more %d" % number for number in range(10))
        records += list(log)[-10:]
        both = archive.open(url, log=path)
        assert list(both.iter()) == records
        for start, stop in [(records[0].lsn, head), (head, None), (records[9].lsn, log.end)]:
            upto = log.end if stop is None else stop
            assert list(both.iter(start, stop)) == [r for r in records if start <= r.lsn < upto]


def test_pier_archive_and_live_pier_are_one(
    path: Path, url: str, fetched: list[tuple[str, int]]
) -> None:
    with Pier.create(path) as pier:
        for epoch in range(4):
            pier.append_many(b"%d %d" % (epoch, number) for number in range(10))
            pier.roll()
        pier.append(b"last")
        deeds = list(pier)
        archive.upload(path, url)
        pier.retain(max_bytes=0)
        fetched.clear()
        assert list(archive.open(url).iter(12, 15)) == deeds[11:14]
        assert len({name for name, _ in fetched}) == 1
        assert list(archive.open(url).iter()) == deeds[:40]
        both = archive.open(url, log=path)
        assert list(both.iter()) == deeds and both.read(7) == deeds[6]
        assert list(both.iter(25, 41)) == deeds[24:40]


def test_ledger_archive_and_live_ledger_are_one(path: Path, url: str) -> None:
    with Ledger.create(path, batch_bytes=500) as ledger:
        ledger.append_many(b"%d" % number * 10 for number in range(200))
        archive.upload(path, url)
        archived = list(ledger)
        assert list(archive.open(url).iter()) == archived
        fetched = ledger.fetch(4)
        assert fetched is not None
        ledger.remove(fetched.removable)
        ledger.append_many(b"%d" % number * 10 for number in range(200, 300))
        both = archive.open(url, log=path)
        everything = archived + [record for record in ledger if record not in archived]
        assert list(both.iter()) == everything
        start, stop = everything[5].position, everything[150].position
        assert list(both.iter(start, stop)) == everything[5:150]
        assert list(both.iter(3, 6)) == [r for r in everything if 3 <= r.file < 6]


@pytest.mark.parametrize("function", [archive.before_drop, archive.open])
def test_the_examples_of_the_docstrings_run(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.DocTestFinder(recurse=False).find(function, "example", globs={})
    assert [doctest.DocTestRunner().run(one).failed for one in found] == [0]


def test_cat_prints_an_archive(path: Path, url: str) -> None:
    records = wal(path)
    ok("archive", path, url)
    whole = ok("cat", url, "--json").splitlines()
    assert whole == ok("cat", path, "--json").splitlines()[: len(whole)] and len(whole) > 140
    first = records[10].lsn
    assert json.loads(ok("cat", url, str(first), "--json"))["lsn"] == first
    part = ok("cat", url, f"{first}:{records[20].lsn}", "--json")
    assert part == ok("cat", path, f"{first}:{records[20].lsn}", "--json")
    assert "is an archive" in complaint(run("cat", url, "--reverse"), 2)
    assert "no such object" in complaint(run("cat", url + "/none"), 2)
