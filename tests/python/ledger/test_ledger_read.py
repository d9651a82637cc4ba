"""Ledgers read backwards and followed, their transactions without a writer, and their repair."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from deedbook import (
    ClosedError,
    CorruptError,
    InvalidArgumentError,
    Ledger,
    LockedError,
    OutOfRangeError,
    ReadOnlyError,
)
from deedbook.reports import LedgerRepair, RepairReport
from ledgers import damage, events, files


def test_a_ledger_is_read_backwards_between_positions(tmp_path: Path) -> None:
    sent = files(tmp_path / "spool", 2, 10)
    with Ledger.open(tmp_path / "spool") as ledger:
        assert [one.payload for one in ledger.iter(reverse=True)] == sent[::-1]
        assert [one.position for one in reversed(ledger)] == [one.position for one in ledger][::-1]
        for start, stop in (
            ((2, 1), (10, 2)),
            ((2, 3), (10, 0)),
            ((3, 0), (10, 0)),
            (None, (2, 2)),
        ):
            forwards = [one.payload for one in ledger.iter(start, stop)]
            assert [one.payload for one in ledger.iter(start, stop, reverse=True)] == forwards[::-1]
        assert [one.payload for one in reversed(ledger[(2, 1) : (10, 1)])] == sent[3:0:-1]


def test_damage_is_raised_or_skipped_backwards(tmp_path: Path) -> None:
    sent = files(tmp_path / "spool", 2, 9, 10)
    damage(tmp_path / "spool" / "9-events")
    with Ledger.open(tmp_path / "spool") as ledger:
        walk = ledger.iter(reverse=True)
        assert [next(walk).payload for _ in range(4)] == sent[:4:-1]
        with pytest.raises(CorruptError, match="9-events"):
            next(walk)
        assert [*walk] == []
        walk = ledger.iter(reverse=True, on_corrupt="skip")
        found = [(one.file, one.record) for one in walk]
        assert found == [(10, 2), (10, 1), (10, 0), (9, 2), (9, 0), (2, 2), (2, 1), (2, 0)]
        assert [one.first_lost for one in walk.damages] == [1]


def test_a_reader_has_the_transactions(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "spool") as ledger:
        ledger.append(b"before")
    reader = Ledger.open(tmp_path / "spool", batch_records=2)
    transactions = reader.transactions
    with transactions.stage("load", 0, 1) as stage:
        stage.extend([b"1", b"2", b"3"])
        parts = stage.finish()
    assert len(parts) == 2 and [job.job for job in transactions.staged()] == ["load"]
    with pytest.raises(ReadOnlyError, match="open for reading"):
        transactions.publish("load", parts)
    with Ledger.open(tmp_path / "spool", "a") as ledger:
        ledger.transactions.publish("load", parts, app="load", version=3)
    assert [(one.app, one.version) for one in transactions.committed()] == [("load", 3)]
    assert transactions.staged() == [] and transactions.abandon() is None
    assert transactions.discard("load") is True
    reader.close()
    for call in (transactions.staged, transactions.committed, lambda: reader.transactions):
        with pytest.raises(ClosedError):
            call()


@pytest.mark.parametrize("mode", ["a", "r"])
def test_a_follower_goes_on_into_new_files(tmp_path: Path, mode: str) -> None:
    writer = Ledger.create(tmp_path / "spool", batch_records=3)
    wanted = [b"%d" % number for number in range(50)]
    writer.append_many(wanted[:10])
    followed = writer if mode == "a" else Ledger.open(tmp_path / "spool")
    follower = followed.follow(timeout=10)
    found = [next(follower) for _ in range(10)]
    thread = threading.Thread(target=lambda: [writer.append(one) for one in wanted[10:]])
    thread.start()
    found += [next(follower) for _ in range(40)]
    thread.join()
    assert [one.payload for one in found] == wanted
    assert [one.position for one in found] == sorted(one.position or (0, 0) for one in found)
    assert [one.payload for one in writer.follow((16, 0), timeout=0.0)] == wanted[48:]
    followed.close()
    assert [*follower] == []
    with pytest.raises(ClosedError):
        followed.follow()
    writer.close()


def test_a_follower_continues_after_its_timeout(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "spool") as ledger:
        ledger.append(b"1")
        follower = ledger.follow(timeout=0.05)
        assert [one.payload for one in follower] == [b"1"]
        ledger.append(b"2")
        assert [one.payload for one in follower] == [b"2"]
        with pytest.raises(InvalidArgumentError):
            ledger.follow(timeout=-1)


def test_a_file_sent_unread_is_out_of_range(tmp_path: Path) -> None:
    with Ledger.create(tmp_path / "spool") as ledger:
        ledger.append(b"1")
        fetched = ledger.fetch()
        assert fetched is not None
        ledger.remove(fetched.removable)
        with pytest.raises(OutOfRangeError, match="file 0 was removed before it was read"):
            ledger.follow((0, 0))
        assert [*ledger.follow(timeout=0)] == []


def test_a_repair_removes_damage_and_keeps_the_file(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    sent = files(spool, 2, 9, 10)
    damage(spool / "9-events")
    torn = spool / "10-events"
    torn.write_bytes(torn.read_bytes()[:-1])
    before = (spool / "9-events").read_bytes()
    planned = Ledger.repair(spool, dry_run=True)
    assert isinstance(planned, LedgerRepair) and isinstance(planned.files[0].report, RepairReport)
    found = (planned.ok, planned.verdict, planned.records, len(planned.damages))
    assert found == (False, "corrupt", 7, 2)
    assert (spool / "9-events").read_bytes() == before
    left = Ledger.repair(spool)
    assert [one.report.mended for one in left.files] == [True, False, True]
    assert (left.ok, left.loss is not None, left.files[1].report.saved_to) == (False, True, None)
    done = Ledger.repair(spool, accept_loss=True)
    assert (done.ok, done.verdict, done.records) == (True, "clean", 7)
    saved = done.files[1].report.saved_to
    assert saved is not None and Path(saved).read_bytes() == before
    checked = Ledger.verify(spool)
    assert (checked.ok, checked.records, checked.quarantined) == (True, 7, [saved])
    with Ledger.open(spool) as ledger:
        assert [*ledger.payloads()] == [*sent[:3], sent[3], sent[5], *sent[6:8]]
        assert ledger[(9, 1)].payload == events(9)[2]


def test_a_repair_refuses_what_a_sender_has(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    files(spool, 0)
    damage(spool / "0-events")
    with Ledger.open(spool, "a") as sender:
        assert sender.fetch() is not None
        with pytest.raises(LockedError, match="leased"):
            Ledger.repair(spool, accept_loss=True)
    assert Ledger.repair(spool / "0-events", accept_loss=True).records == 2
