"""Piers: epochs read and appended to as one log, in Python and in the shell."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from deedbook import Book, Deed, InvalidArgumentError, OutOfRangeError, Pier
from deedbook.reports import EpochSalvage, PierSalvage
from log_bytes import flip
from logs import span
from shell import outputs as deedbook_cli

JAMS = [b'{"n":%d}' % n for n in range(1, 10)]


@pytest.fixture
def zod(tmp_path: Path) -> Path:
    """A pier with the epochs 0i0 (events 1 to 3), 0i3 (4 and 5) and 0i5 (6 to 9)."""
    path = tmp_path / "zod"
    with Pier.create(path) as pier:
        assert span(pier.append_many(JAMS[:3])) == (1, 4)
        pier.save_meta(who=0x1122, version=3, life=7, fake=False)
        assert pier.roll() == 3
        assert [pier.append(jam, n) for n, jam in enumerate(JAMS[3:5], 4)] == [4, 5]
        assert pier.roll() == 5
        assert span(pier.append_many(JAMS[5:], event=6, epoch=5, atomic=True)) == (6, 10)
    return path


def log_of(zod: Path) -> Path:
    return zod / ".urb" / "log"


def book_of(zod: Path, epoch: int) -> Path:
    return log_of(zod) / f"0i{epoch}" / "book.log"


def test_the_epochs_are_one_log(zod: Path) -> None:
    for path in (zod, log_of(zod)):
        with Pier.open(path) as pier:
            assert len(pier) == 9 and pier.bounds == (1, 9)
            assert (pier.epoch, pier.last, pier.durable_last) == (0, 9, 9)
            assert [deed.event for deed in pier] == list(range(1, 10))
            assert [deed.jam for deed in reversed(pier)] == JAMS[::-1]
            assert list(pier.payloads()) == list(pier.payloads()) == JAMS
            assert list(pier.payloads(3, 7)) == JAMS[2:6]
            assert pier.log_path == str(log_of(zod)) and pier.path == str(path)
            assert (pier.mode, pier.durability) == ("r", "always")
            assert pier.recovery.verdict == "clean"
            last = pier.epochs[-1]
        assert (last.number, last.bounds, last.deeds) == (5, (6, 9), 4)
        assert last.path == str(log_of(zod) / "0i5")
        assert (last.layout, last.verdict) == ("packed", "clean")
        assert last.bytes == book_of(zod, 5).stat().st_size


def test_deeds_are_found_by_index_slice_and_in(zod: Path) -> None:
    with Pier.open(zod) as pier:
        assert pier[4] == Deed(4, 4, JAMS[3]) and pier.read(9).jam == JAMS[8]
        assert pier[-1].event == 9 and pier[-9].event == 1
        assert [deed.event for deed in pier[2:7]] == [2, 3, 4, 5, 6]
        assert [deed.event for deed in reversed(pier[:6])] == [5, 4, 3, 2, 1]
        assert len(pier[:]) == 9 and list(pier[3:5].payloads()) == JAMS[2:4]
        assert 1 in pier and 9 in pier and 0 not in pier and 10 not in pier
        assert Deed(4, 4, JAMS[3]) in pier and Deed(4, 5, JAMS[3]) not in pier
        with pytest.raises(TypeError):
            assert b"x" in pier  # type: ignore[operator]
        for event in (0, 10, -1, 1 << 70):
            with pytest.raises(OutOfRangeError):
                pier.read(event)
        with pytest.raises(IndexError):
            pier[10]
        with pytest.raises(InvalidArgumentError, match="only forwards"):
            pier.iter(reverse=True, on_corrupt="skip")


def test_arrow_has_the_deeds_of_every_epoch(zod: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    with Pier.open(zod) as pier:
        table = pyarrow.table(pier)
        assert table["event"].to_pylist() == list(range(1, 10))
        assert table["jam"].to_pylist() == JAMS
        assert pyarrow.table(pier[3:8])["event"].to_pylist() == [3, 4, 5, 6, 7]
        batches = pier.batches(2, 7, columns=["event"])
        assert [pyarrow.record_batch(batch).to_pydict() for batch in batches] == [
            {"event": [2, 3]},
            {"event": [4, 5]},
            {"event": [6]},
        ]
        empty = pyarrow.table(pier.batches(20))
        assert empty.num_rows == 0 and empty.schema == table.schema
    with Pier.create(zod.parent / "new") as pier:
        assert pyarrow.table(pier).schema == table.schema
        assert span(pier.append_many(pyarrow.array([b"1", b"2"]))) == (1, 3)
        assert list(pier.payloads()) == [b"1", b"2"]


def test_info_shows_the_epochs_as_a_table(zod: Path) -> None:
    out, _ = deedbook_cli("info", zod)
    rows = dict(line.split("  ", 1) for line in out.splitlines() if "  " in line)
    assert rows["format"].strip() == "pier"
    assert rows["events"].strip() == "1..9 (9 deeds, 3 epochs)"
    table = [line.split()[:4] for line in out.splitlines() if line.startswith("0i")]
    assert table == [
        ["0i0", "1..3", "3", "deeds"],
        ["0i3", "4..5", "2", "deeds"],
        ["0i5", "6..9", "4", "deeds"],
    ]
    assert "who 0x1122" in out and "none" in rows["writer"]
    facts = json.loads(deedbook_cli("info", zod, "--json")[0])
    assert (facts["format"], facts["records"], facts["bounds"]) == ("pier", 9, [1, 9])
    assert [epoch["number"] for epoch in facts["epochs"]] == [0, 3, 5]
    assert facts["meta"]["who"] == "0x1122" and facts["durable_event"] == 9


def test_the_shell_reads_appends_rolls_and_verifies(zod: Path) -> None:
    assert deedbook_cli("cat", zod, "3:6", "--raw")[0].encode().splitlines() == JAMS[2:5]
    newest = json.loads(deedbook_cli("cat", zod, "--reverse", "--json")[0].splitlines()[0])
    assert newest == {"event": 9, "mug": 0, "jam": JAMS[8].decode()}
    assert deedbook_cli("cat", zod, "4", "--raw")[0].encode() == JAMS[3] + b"\n"
    _, err = deedbook_cli("append", zod, stdin=b"[10]\n[11]\n")
    assert "appended 2 deeds (events 10..11); all durable" in err
    told = json.loads(deedbook_cli("retain", "--roll", zod, "--json")[0])
    assert told["ok"] and told["epoch"] == 11 and told["epoch_path"] == str(log_of(zod) / "0i11")
    assert "has no event" in deedbook_cli("retain", "--roll", zod, code=2)[1]
    assert "0i11" in deedbook_cli("info", zod)[0]
    out, _ = deedbook_cli("verify", zod)
    assert out.strip() == f"{zod}: ok, 4 epochs, 11 deeds, events 1..11"
    assert len(deedbook_cli("cat", zod, "--follow", "--timeout", "0.1")[0].splitlines()) == 11
    lines = b"".join(jam + b"\n" for jam in JAMS) + b"[10]\n[11]\n[12]\n"
    _, err = deedbook_cli("append", zod, "--resume", stdin=lines)
    assert "appended 1 deed (events 12..12), 11 lines already there" in err
    assert deedbook_cli("retain", "--roll", zod)[1].strip().endswith(f"0i12, the 5. of {zod}")
    new = zod.with_name("new")
    deedbook_cli("append", "--format", "pier", new, stdin=b"[1]\n")
    assert (new / ".urb" / "log" / "0i0" / "book.log").exists()


def test_the_shell_drops_epochs_and_lists_consumers(zod: Path) -> None:
    asked = ("retain", zod, "--max-bytes", "1")
    deedbook_cli("consumers", zod, "--set", "slow", "4")
    told = json.loads(deedbook_cli("consumers", zod, "--set", "done", "end", "--json")[0])
    assert told["consumers"] == {"done": 10, "slow": 4}
    assert json.loads(deedbook_cli("info", zod, "--json")[0])["consumers"] == told["consumers"]
    would = json.loads(deedbook_cli(*asked, "--dry-run", "--json")[0])
    assert (would["dropped_epochs"], would["records"], would["epoch"]) == ([0], 6, 3)
    with Pier.open(zod, "a"):
        assert "has it open for writing" in deedbook_cli(*asked, code=2)[1]
    done = json.loads(deedbook_cli(*asked, "--json")[0])
    assert {**done, "dry_run": True} == would and done["dropped_records"] == 3
    deedbook_cli("consumers", zod, "--remove", "slow")
    out, _ = deedbook_cli(*asked)
    assert out == f"{zod}: dropped 1 epoch with 2 deeds; events 6 to 9 are left\n"
    assert deedbook_cli("verify", zod)[0].strip() == f"{zod}: ok, 1 epoch, 4 deeds, events 6..9"


def test_pier_raises_soft_file_limit_for_many_epochs(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    with Pier.create(tmp_path / "zod") as pier:
        for _ in range(40):
            pier.append(b"")
            pier.roll()

    def info(soft: int, hard: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deedbook", "info", str(tmp_path / "zod"), "--json"],
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
        )

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert len(json.loads(info(32, hard).stdout)["epochs"]) == 41
    refused = info(32, 32)
    assert refused.returncode != 0
    assert "each epoch takes up to two open files: raise the limit" in refused.stderr


def test_the_shell_reports_damage_and_what_cannot_be(zod: Path, tmp_path: Path) -> None:
    none = tmp_path / "none"
    assert "No such file" in deedbook_cli("retain", "--roll", none, code=2)[1] or not none.exists()
    assert not none.exists()
    assert json.loads(deedbook_cli("vacuum", zod, "--json")[0])["left"] == []
    (log_of(zod) / "0i3").rename(tmp_path / "0i3")
    out, _ = deedbook_cli("verify", zod, code=1)
    assert "events 4 to 5 are missing" in out and "damaged, 2 epochs, 7 deeds" in out
    report = json.loads(deedbook_cli("verify", zod, "--json", code=1)[0])
    assert not report["ok"] and len(report["gaps"]) == 1 and len(report["epochs"]) == 2
    assert "are missing" in deedbook_cli("info", zod, code=2)[1]
    assert "are missing" in deedbook_cli("append", zod, code=2, stdin=b"[1]\n")[1]


def test_the_parts_of_all_epochs_are_in_order(zod: Path) -> None:
    with Pier.open(zod) as pier:
        parts = pier.splits()
        assert [(part.ordinal, part.records) for part in parts] == [(1, 3), (4, 2), (6, 4)]
        assert [part.path for part in parts] == [str(book_of(zod, epoch)) for epoch in (0, 3, 5)]
        assert {part.format for part in parts} == {"book"}
        assert [(part.ordinal, part.records) for part in pier.splits(1, 3, 7)] == [
            (3, 1),
            (4, 2),
            (6, 1),
        ]
        assert pier.splits(start=20) == []
    assert [Book.open(Path(part.path).parent).splits() for part in parts] == [[p] for p in parts]


def test_a_salvage_keeps_the_numbers(zod: Path, tmp_path: Path) -> None:
    flip(book_of(zod, 0), 16 + 12)
    os.truncate(book_of(zod, 3), book_of(zod, 3).stat().st_size - 5)
    steps: list[tuple[int, int]] = []
    report = Pier.salvage(zod, tmp_path / "copy", progress=lambda *step: steps.append(step))
    assert isinstance(report, PierSalvage)
    assert (report.ok, report.verdict, report.records) == (False, "corrupt", 7)
    assert (report.stubs, report.uncertain, len(report.gaps)) == ([1, 5], 0, 1)
    assert report.loss is not None and report.loss.first == 5
    assert [damage.first_lost for damage in report.damages] == [1, 5]
    first = report.epochs[0]
    assert isinstance(first, EpochSalvage)
    assert (first.number, first.path) == (0, str(book_of(zod, 0).parent))
    assert first.copy == str(book_of(tmp_path / "copy", 0).parent)
    assert (first.report.records, first.report.stubs) == (2, [1])
    assert steps[-1][0] == steps[-1][1] > 0
    assert pickle.loads(pickle.dumps(report)) == report
    assert json.loads(json.dumps(report.to_dict()))["stubs"] == [1, 5]
    with Pier.open(tmp_path / "copy") as pier:
        wanted = [b"\x02" if event in (1, 5) else JAMS[event - 1] for event in range(1, 10)]
        assert [*pier.payloads()] == wanted
    assert Pier.verify(tmp_path / "copy").ok


def test_the_shell_repairs_the_newest_epoch(zod: Path) -> None:
    with book_of(zod, 5).open("ab") as file:
        file.write(b"half of a deed")
    out, _ = deedbook_cli("repair", zod, "--dry-run", code=1)
    assert "would cut 14 bytes" in out and str(book_of(zod, 5)) in out
    out, _ = deedbook_cli("repair", zod)
    assert "cut 14 bytes" in out and "book.log.cut-" in out
    assert "nothing to repair" in deedbook_cli("repair", zod)[0]
    assert json.loads(deedbook_cli("repair", zod, "--json")[0])["format"] == "pier"


def test_the_shell_salvages_a_pier(zod: Path, tmp_path: Path) -> None:
    flip(book_of(zod, 0), 16 + 12)
    book_of(zod, 3).parent.rename(tmp_path / "0i3")
    assert "salvage copies the pier" in deedbook_cli("repair", zod, code=1)[1]
    out, _ = deedbook_cli("salvage", zod, tmp_path / "copy", code=1)
    assert f"left out of {book_of(zod, 0).parent}: bytes 16.." in out
    assert "events 4 to 5 are missing" in out
    assert "stubs stand for lost events: 1, 4..5" in out
    copied = json.loads(deedbook_cli("salvage", zod, tmp_path / "two", "--json", code=1)[0])
    assert (copied["format"], copied["records"], copied["stubs"]) == ("pier", 6, [1, 4, 5])
    assert len(copied["epochs"]) == 2
