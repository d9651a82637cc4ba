"""Piers that are damaged, and piers in parts: repair, salvage and splits; also in the shell."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
from pathlib import Path

import pytest

import deedbook
from deedbook import (
    AlreadyExistsError,
    Book,
    ContiguityError,
    CorruptError,
    LockedError,
    MissingError,
    NotALogError,
    Pier,
)
from deedbook.jobs import Split
from deedbook.reports import EpochSalvage, PierSalvage, RepairReport
from shell import outputs as deedbook_cli

JAMS = [b'{"n":%d}' % n for n in range(1, 10)]


@pytest.fixture
def zod(tmp_path: Path) -> Path:
    """A pier with the epochs 0i0 (events 1 to 3), 0i3 (4 and 5) and 0i5 (6 to 9)."""
    path = tmp_path / "zod"
    with Pier.create(path) as pier:
        pier.append_many(JAMS[:3])
        pier.roll()
        pier.append_many(JAMS[3:5])
        pier.roll()
        pier.append_many(JAMS[5:])
    return path


def log_of(zod: Path, epoch: int) -> Path:
    return zod / ".urb" / "log" / f"0i{epoch}" / "book.log"


def flip_the_first_jam(log: Path) -> None:
    """A book's first deed begins at byte 16, and its jam 12 bytes later."""
    with log.open("r+b") as file:
        file.seek(16 + 12)
        byte = file.read(1)[0]
        file.seek(16 + 12)
        file.write(bytes([byte ^ 1]))


def read_part(pickled: bytes) -> list[int]:
    """The events of a part, in any process."""
    part: Split = pickle.loads(pickled)
    return [event for batch in part.batches(columns=["event"]) for event in deedbook_events(batch)]


def deedbook_events(batch: object) -> list[int]:
    import pyarrow

    events: list[int] = pyarrow.record_batch(batch)["event"].to_pylist()
    return events


# -- splits ----------------------------------------------------------------------------------------


def test_the_parts_of_all_epochs_are_in_order(zod: Path) -> None:
    with Pier.open(zod) as pier:
        parts = pier.splits()
        assert [(part.ordinal, part.records) for part in parts] == [(1, 3), (4, 2), (6, 4)]
        assert [part.path for part in parts] == [str(log_of(zod, epoch)) for epoch in (0, 3, 5)]
        assert {part.format for part in parts} == {"book"}
        assert [(part.ordinal, part.records) for part in pier.splits(1, 3, 7)] == [
            (3, 1),
            (4, 2),
            (6, 1),
        ]
        assert pier.splits(start=20) == []
    assert [Book.open(Path(part.path).parent).splits() for part in parts] == [[p] for p in parts]


def test_another_process_reads_a_part(zod: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with Pier.open(zod) as pier:
        parts = [pickle.dumps(part) for part in pier.splits()]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(read_part, parts) == [[1, 2, 3], [4, 5], [6, 7, 8, 9]]


def test_waiting_for_a_deed_to_be_durable(tmp_path: Path) -> None:
    with Pier.create(tmp_path / "zod", durability="manual") as pier:
        pier.append(b"1")
        pier.roll()
        event = pier.append(b"2")
        assert (event, pier.durable_last) == (2, 1)
        pier.wait_durable(1)
        assert pier.durable_last == 1
        pier.wait_durable(event)
        assert pier.durable_last == 2
        with pytest.raises(deedbook.OutOfRangeError):
            pier.wait_durable(3)


# -- repair ----------------------------------------------------------------------------------------


def test_the_newest_epoch_is_repaired_as_a_book(zod: Path) -> None:
    log = log_of(zod, 5)
    flip_the_first_jam(log)
    damaged = log.read_bytes()
    with pytest.raises(CorruptError, match="3 intact deeds lie after the damage"):
        Pier.repair(zod)
    report = Pier.repair(zod, dry_run=True)
    assert isinstance(report, RepairReport)
    assert (report.path, report.cut_records, report.mended, report.ok) == (
        str(log),
        3,
        False,
        False,
    )
    assert log.read_bytes() == damaged
    assert not Pier.repair(zod, force=True).mended, "acknowledged deeds go with the cut"
    report = Pier.repair(zod, force=True, accept_loss=True)
    assert report.mended and report.ok and report.loss is not None
    assert report.saved_to is not None and Path(report.saved_to).parent == log.parent
    with Pier.open(zod, "a") as pier:
        assert pier.append(b"again") == 6


def test_a_repair_refuses_damage_of_an_older_epoch(zod: Path) -> None:
    flip_the_first_jam(log_of(zod, 3))
    for options in ({}, {"dry_run": True}, {"force": True, "accept_loss": True}):
        with pytest.raises(CorruptError, match="salvage copies the pier") as refused:
            Pier.repair(zod, **options)
        assert refused.value.path == str(log_of(zod, 3))
    with pytest.raises(MissingError):
        Pier.repair(zod / "nowhere")
    with pytest.raises(NotALogError, match="book"):
        Pier.repair(log_of(zod, 0).parent)
    with Pier.open(zod, "a"), pytest.raises(LockedError):
        Pier.repair(zod)


# -- salvage ---------------------------------------------------------------------------------------


def test_a_salvage_keeps_the_numbers(zod: Path, tmp_path: Path) -> None:
    flip_the_first_jam(log_of(zod, 0))
    os.truncate(log_of(zod, 3), log_of(zod, 3).stat().st_size - 5)
    steps: list[tuple[int, int]] = []
    report = Pier.salvage(zod, tmp_path / "copy", progress=lambda *step: steps.append(step))
    assert isinstance(report, PierSalvage)
    assert (report.ok, report.verdict, report.records) == (False, "corrupt", 7)
    assert (report.stubs, report.uncertain, len(report.gaps)) == ([1, 5], 0, 1)
    assert report.loss is not None and report.loss.first == 5
    assert [damage.first_lost for damage in report.damages] == [1, 5]
    first = report.epochs[0]
    assert isinstance(first, EpochSalvage)
    assert (first.number, first.path) == (0, str(log_of(zod, 0).parent))
    assert first.copy == str(log_of(tmp_path / "copy", 0).parent)
    assert (first.report.records, first.report.stubs) == (2, [1])
    assert steps[-1][0] == steps[-1][1] > 0
    assert pickle.loads(pickle.dumps(report)) == report
    assert json.loads(json.dumps(report.to_dict()))["stubs"] == [1, 5]
    with Pier.open(tmp_path / "copy") as pier:
        wanted = [b"\x02" if event in (1, 5) else JAMS[event - 1] for event in range(1, 10)]
        assert [*pier.payloads()] == wanted
    assert Pier.verify(tmp_path / "copy").ok


def test_a_salvage_ends_where_its_progress_fails(zod: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        Pier.salvage(zod, tmp_path / "copy", progress=stop)


def test_a_salvage_refuses_an_existing_log(zod: Path, tmp_path: Path) -> None:
    with pytest.raises(AlreadyExistsError):
        Pier.salvage(zod, zod)
    Book.create(tmp_path / "book").close()
    with pytest.raises(NotALogError):
        Pier.salvage(zod, tmp_path / "book")
    assert not (tmp_path / "book" / ".urb").exists()


def test_a_salvage_fills_a_missing_epoch(zod: Path, tmp_path: Path) -> None:
    log_of(zod, 3).parent.rename(tmp_path / "0i3")
    with pytest.raises(ContiguityError, match="salvage"):
        Pier.repair(zod)
    report = Pier.salvage(zod, tmp_path / "copy")
    assert (report.ok, report.verdict, report.stubs) == (False, "corrupt", [4, 5])
    assert len(report.gaps) == 1 and "events 4 to 5 are missing" in report.gaps[0]
    with Pier.open(tmp_path / "copy") as pier:
        assert len(pier) == 9


# -- the shell -------------------------------------------------------------------------------------


def test_the_shell_repairs_the_newest_epoch(zod: Path) -> None:
    with log_of(zod, 5).open("ab") as file:
        file.write(b"half of a deed")
    out, _ = deedbook_cli("repair", zod, "--dry-run", code=1)
    assert "would cut 14 bytes" in out and str(log_of(zod, 5)) in out
    out, _ = deedbook_cli("repair", zod)
    assert "cut 14 bytes" in out and "book.log.cut-" in out
    assert "nothing to repair" in deedbook_cli("repair", zod)[0]
    assert json.loads(deedbook_cli("repair", zod, "--json")[0])["format"] == "pier"


def test_the_shell_salvages_a_pier(zod: Path, tmp_path: Path) -> None:
    flip_the_first_jam(log_of(zod, 0))
    log_of(zod, 3).parent.rename(tmp_path / "0i3")
    assert "salvage copies the pier" in deedbook_cli("repair", zod, code=1)[1]
    out, _ = deedbook_cli("salvage", zod, tmp_path / "copy", code=1)
    assert f"left out of {log_of(zod, 0).parent}: bytes 16.." in out
    assert "events 4 to 5 are missing" in out
    assert "stubs stand for lost events: 1, 4..5" in out
    copied = json.loads(deedbook_cli("salvage", zod, tmp_path / "two", "--json", code=1)[0])
    assert (copied["format"], copied["records"], copied["stubs"]) == ("pier", 6, [1, 4, 5])
    assert len(copied["epochs"]) == 2
