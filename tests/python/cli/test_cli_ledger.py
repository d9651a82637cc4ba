"""Ledgers through the commands and calls for books and write-ahead logs."""

import itertools
import json
import os
import re
import signal
from pathlib import Path

import pytest

import deedbook as package
from deedbook import ClosedError, CorruptError, InvalidArgumentError, Ledger, Wal
from deedbook import _formats as formats
from ledgers import damage, events, file_of, files, record
from live import ended, next_line, running
from shell import complaint, deedbook, json_lines, ok, outputs

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    files(tmp_path / "spool", 10, 9, 2)
    return tmp_path / "spool"


ALL = [event for index in (2, 9, 10) for event in events(index)]


def test_a_ledger_is_opened_by_its_path(spool: Path) -> None:
    assert formats.detect(spool) == "ledger" == formats.detect(spool / "9-events")
    with package.open(spool) as snapshot:
        assert isinstance(snapshot, Ledger)
        assert [record.payload for record in snapshot] == list(snapshot.payloads()) == ALL
        assert [file.index for file in snapshot.files] == [2, 9, 10]  # by number, not by text
        assert (snapshot.path, snapshot.base, bool(snapshot)) == (str(spool), "events", True)
        assert next(iter(snapshot)) == package.LedgerRecord(2, 0, events(2)[0])
        assert snapshot[9, 2] == package.LedgerRecord(9, 2, events(9)[2])
        assert [one.position for one in snapshot.iter((2, 2), (9, 1))] == [
            package.LedgerPosition(2, 2),
            package.LedgerPosition(9, 0),
        ]
        assert list(snapshot[(9, 0) : (10, 0)].payloads()) == events(9)
        for nowhere in ((3, 0), (9, 3)):
            with pytest.raises(
                package.OutOfRangeError, match=f"no record {nowhere[1]} in a file {nowhere[0]}"
            ):
                snapshot[nowhere]
        assert list(snapshot.iter((3, 0), (9, 0))) == []
    with pytest.raises(ClosedError):
        snapshot.iter()
    one = package.open(spool / "9-events")
    assert isinstance(one, Ledger) and list(one.payloads()) == events(9)
    assert os.listdir(spool) == os.listdir(spool) and not (spool / ".deedbook").exists()


def test_the_finished_files_are_one_arrow_table(spool: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    with package.open(spool) as snapshot:
        table = pa.table(snapshot)
        columns = [
            ("file", "int64", False),
            ("record", "int64", True),
            ("payload", "binary", False),
        ]
        assert [(one.name, str(one.type), one.nullable) for one in table.schema] == columns
        rows = [(record.file, record.record, record.payload) for record in snapshot]
        assert list(zip(*table.to_pydict().values(), strict=True)) == rows and len(rows) == 9
        of_9 = snapshot.batches((9, 0), (10, 0), columns=["length", "file", "offset"], batch_rows=2)
        chosen = pa.table(of_9)
        assert chosen.column_names == ["length", "file", "offset"]
        assert [batch.num_rows for batch in snapshot.batches(batch_rows=2)] == [2, 1] * 3
        lengths = chosen["length"].to_pylist()
        assert chosen["offset"].to_pylist() == [0, *itertools.accumulate(lengths[:-1])]
        assert pa.table(snapshot.batches(columns=["file"]))["file"].to_pylist() == (
            [2] * 3 + [9] * 3 + [10] * 3
        )
        with pytest.raises(InvalidArgumentError, match="must be one of file, record, offset"):
            snapshot.batches(columns=["jam"])
        with pytest.raises(InvalidArgumentError, match=r"whole files, from \(9, 0\), not \(9, 1\)"):
            snapshot.batches((9, 1))
        assert pa.table(snapshot.batches((3, 0), (9, 0))).num_rows == 0
    with pytest.raises(ClosedError):
        pa.table(snapshot)


def test_open_for_append_continues_an_existing_ledger(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with pytest.raises(InvalidArgumentError, match='"ledger"'):
        package.open(path, "a")
    with package.open(path, "x", format="ledger", base="clicks", batch_records=1) as ledger:
        assert isinstance(ledger, Ledger) and ledger.base == "clicks"
        ledger.append(b"1")
    with package.open(path, "a") as again:
        assert isinstance(again, Ledger) and again.base == "clicks"
        again.append(b"2")
    with package.open(path) as snapshot:
        assert list(snapshot.payloads()) == [b"1", b"2"]  # type: ignore[union-attr]
    with pytest.raises(package.AlreadyExistsError, match="cannot create the ledger"):
        package.open(path, "x", format="ledger")
    with package.open(tmp_path / "other", "a", format="ledger") as fresh:
        assert fresh.base == "events"


def test_names_alone_make_no_ledger(tmp_path: Path) -> None:
    assert formats.detect(tmp_path) is None
    named = {
        "2024-report.txt": b"Sales went up, then down.\n" * 100,
        "0-nothing": b"",
        "0-checksum": record(b"1234")[:-1] + b"5",
    }
    for name in ("07-events", "x-events", "3-"):
        (tmp_path / name).write_bytes(record(b"1"))
    assert "named as" not in complaint(deedbook("cat", tmp_path), 2)
    for name, content in named.items():
        (tmp_path / name).write_bytes(content)
    assert formats.detect(tmp_path) is None
    said = complaint(deedbook("cat", tmp_path), 2)
    assert "no log there (looked for book.log, epochs 0iN of a pier, WAL segments, files N" in said
    meant = r"([\w.-]+) is named as a ledger's file, and has no intact record: if it is one, name "
    found = re.findall(meant + r"its base \(([\w.]+)\)", said)
    assert found and {(name, name.partition("-")[2]) for name in named}.issuperset(found)
    with pytest.raises(package.MissingError, match="no ledger"):
        Ledger.open(tmp_path)
    # And they do not block another format in the directory.
    with Wal.open(tmp_path, "a") as wal:
        wal.append(b"1")
    assert formats.detect(tmp_path) == "wal"


def test_base_option_identifies_a_damaged_ledger(spool: Path) -> None:
    for file in spool.iterdir():
        file.write_bytes(b"\xff" * 100)
    assert formats.detect(spool) is None
    assert b"0 records" in deedbook("verify", spool, "--base", "events").stdout
    assert "no log there" in complaint(deedbook("verify", spool, "--base", "clicks"), 2)


def test_two_ledgers_per_directory_need_a_base(spool: Path, tmp_path: Path) -> None:
    file_of(spool, 0, [b"1", b"2"], "clicks")
    for call in (package.open, Ledger.open):
        with pytest.raises(InvalidArgumentError, match="clicks, events: say which"):
            call(spool)
    with pytest.raises(InvalidArgumentError, match="clicks, events: say which"):
        package.open(spool, "a")
    with package.open(spool, base="clicks") as snapshot:
        assert list(snapshot.payloads()) == [b"1", b"2"]
    for words in (["cat", spool], ["salvage", spool, tmp_path / "copy"]):
        assert "clicks, events: say which" in complaint(deedbook(*words), 2)
    assert ok("cat", spool, "--base", "clicks", "--raw") == b"1\n2\n"
    # Commands that only count and check work on both ledgers.
    facts = json.loads(ok("info", spool, "--json"))
    counted = [(one["base"], one["records"]) for one in facts["ledgers"]]
    assert counted == [("clicks", 2), ("events", 9)]
    assert facts["records"] == 11
    assert b": ok, 4 files, 11 records" in ok("verify", spool)
    assert b": ok, 1 file, 2 records" in ok("verify", spool, "--base", "clicks")
    assert "a file of the base" in complaint(deedbook("cat", spool / "2-events", "--base", "x"), 2)


def test_ledger_info_counts_unsent_records_and_reports_damage(spool: Path) -> None:
    damage(spool / "9-events")
    file_of(spool, 11, [])
    with Ledger.open(spool, "a") as ledger:
        ledger.append(b"being written")
        done = deedbook("info", spool, "--json")
        shown = deedbook("info", spool).stdout.decode()
    assert done.returncode == 1  # same as for a corrupt log
    facts = json.loads(done.stdout)
    assert (facts["path"], facts["format"]) == (str(spool), "ledger")
    sizes = [file.stat().st_size for file in spool.iterdir() if file.is_file()]
    assert (facts["records"], facts["bytes"]) == (9, sum(sizes))
    assert (facts["finished_files"], facts["active_files"]) == (4, 1)
    (events_,) = facts["ledgers"]
    assert events_["verdicts"] == {"clean": 4, "corrupt": 1}
    named = {file["index"]: file for file in events_["files"]}
    assert (named[9]["verdict"], named[9]["records"]) == ("corrupt", 2)
    assert (named[12]["active"], named[11]["records"], named[11]["bytes"]) == (True, 0, 0)
    assert "4 finished files, 2 to 11" in shown and "12-events, 21 bytes, being written" in shown
    assert "corrupt  1 file" in " ".join(shown.split()).replace("corrupt 1", "corrupt  1")
    assert "next intact record at byte" in shown


def test_info_counts_what_was_set_aside(spool: Path) -> None:
    damage(spool / "2-events")
    with Ledger.open(spool, "a") as ledger:
        fetched = ledger.fetch()
        ledger.remove(fetched.removable)
    facts = json.loads(ok("info", spool, "--json"))
    assert (facts["quarantined_files"], facts["finished_files"]) == (1, 0)
    assert facts["ledgers"][0]["quarantined_files"] == 1
    aside = spool / ".deedbook" / "quarantine"
    assert f"quarantine  1 file in {aside}" in ok("info", spool).decode()
    # info and cat work on quarantined files, too.
    assert json.loads(deedbook("info", aside, "--json").stdout)["records"] == 2


def test_cat_prints_events_in_sending_order(spool: Path) -> None:
    assert ok("cat", spool, "--raw").split(b"\n")[:-1] == ALL
    assert ok("cat", spool, "--null").split(b"\0")[:-1] == ALL
    with Ledger.open(spool, "a") as ledger:
        fetched = ledger.fetch()
        sent = [payload for body in fetched.data for payload in body.records()]
    assert sent == ALL
    assert ok("cat", spool).splitlines()[3] == b'9/0\t{"file":9,"n":0}'
    assert json_lines(ok("cat", spool, "--json"))[4] == {
        "file": 9,
        "record": 1,
        "payload": '{"file":9,"n":1}',
    }


def test_a_range_of_cat_is_one_of_files(spool: Path) -> None:
    def raw(*args: str) -> list[bytes]:
        return ok("cat", spool, "--raw", *args).splitlines()

    assert raw("9") == events(9) == raw("9:10") == raw("--from", "9", "--to", "10")
    assert raw("3:") == events(9) + events(10) and raw(":9") == events(2) and raw("11:") == []
    assert ok("cat", spool / "9-events", "--raw").splitlines() == events(9)
    assert raw("--reverse") == raw()[::-1] and raw("9:10", "--reverse") == events(9)[::-1]


@posix
def test_tail_follows_a_ledger_through_its_files(tmp_path: Path) -> None:
    """Files being written, and new files, even if a sender removes older files in between."""
    with Ledger.open(tmp_path / "spool", "a", batch_records=5) as ledger:
        sent = [b'{"n":%d}' % number for number in range(40)]
        ledger.append_many(sent[:12])
        with running("tail", ledger.path, "--raw", "-n", "4") as last:
            done = ended(last)
        assert done.stdout.splitlines() == sent[8:12] and done.stderr == b""
        with running("tail", ledger.path, "--raw", "-n", "3", "-f") as follower:
            got = [next_line(follower).strip() for _ in range(3)]
            for start in range(12, 40, 7):
                ledger.append_many(sent[start : start + 7])
                got += [next_line(follower).strip() for _ in range(7)]
                if (found := ledger.fetch()) is not None:
                    ledger.remove(found.removable)
            follower.send_signal(signal.SIGINT)
            done = ended(follower)
        assert (done.returncode, got, done.stdout) == (130, sent[9:], b"")


def test_ledger_cat_stops_at_damage_or_skips_it(spool: Path) -> None:
    at = damage(spool / "9-events")
    done = deedbook("cat", spool, "--raw")
    assert done.returncode == 1 and done.stdout.splitlines() == ALL[:4]
    assert b"9-events" in done.stderr and b"checksum" in done.stderr
    done = deedbook("cat", spool, "--raw", "--skip-corrupt")
    assert done.returncode == 1 and done.stdout.splitlines() == ALL[:4] + ALL[5:]
    said = done.stderr.decode()
    assert f"skipping damage: bytes {at} to" in said and "9-events)" in said
    done = deedbook("tail", spool, "--raw")  # continues after the damage
    assert done.returncode == 1 and b"9-events" in done.stderr and b"checksum" in done.stderr
    assert set(done.stdout.splitlines()) < set(ALL) and done.stdout.splitlines()[-1] == ALL[-1]
    with package.open(spool) as snapshot:
        records = snapshot.iter(on_corrupt="skip")
        assert [record.payload for record in records] == ALL[:4] + ALL[5:]
        assert [found.offset for found in records.damages] == [at]
        with pytest.raises(CorruptError):
            list(snapshot)


def test_cat_leaves_out_what_is_being_written(spool: Path) -> None:
    with Ledger.open(spool, "a") as ledger:
        ledger.append(b"being written")
        done = deedbook("cat", spool, "--raw")
        assert done.returncode == 0 and done.stdout.splitlines() == ALL
        assert "left out 1 file being written" in done.stderr.decode()
        assert ok("cat", spool / "11-events", "--raw") == b"being written\n"  # requested by name
        with package.open(spool) as snapshot:
            assert list(snapshot.payloads()) == ALL
            assert snapshot[11, 0].payload == b"being written", "asked for by its position"
    assert ok("cat", spool, "--raw").splitlines() == [*ALL, b"being written"]


def test_verify_names_the_damaged_file(spool: Path) -> None:
    file_of(spool, 11, [])
    ok("verify", spool)
    damage(spool / "9-events")
    facts = json.loads(deedbook("verify", spool, "--json").stdout)
    assert (facts["ok"], facts["format"], facts["records"]) == (False, "ledger", 8)
    verdicts = {file["file"]["index"]: file["report"]["verdict"] for file in facts["files"]}
    assert verdicts == {2: "clean", 9: "corrupt", 10: "clean", 11: "clean"}
    shown = deedbook("verify", spool).stdout.decode()
    assert "9-events: bytes" in shown and "1 damaged file, 4 files, 8 records" in shown
    assert b": ok, 1 file, 3 records" in ok("verify", spool / "2-events")


def test_salvage_copies_each_file(spool: Path, tmp_path: Path) -> None:
    damage(spool / "9-events")
    before = {file.name: file.read_bytes() for file in spool.iterdir()}
    copy, one = tmp_path / "copy", tmp_path / "one"
    done = deedbook("salvage", spool, copy)
    assert done.returncode == 1
    assert b"copied 8 records" in done.stdout and b"left out of" in done.stdout
    assert ok("cat", copy, "--raw").splitlines() == ALL[:4] + ALL[5:]
    assert {file.name: file.read_bytes() for file in spool.iterdir()} == before
    facts = json.loads(outputs("salvage", spool / "9-events", one, "--json", code=1)[0])
    assert (facts["ok"], facts["format"], facts["records"]) == (False, "ledger", 2)
    assert ok("cat", one, "--raw").splitlines() == [events(9)[0], events(9)[2]]
    assert deedbook("salvage", spool, copy).returncode == 2  # the target exists
    (spool / "9-events").write_bytes(b"\xff" * 100)
    done = deedbook("salvage", spool / "9-events", tmp_path / "none", "--base", "events")
    assert done.returncode == 1  # the file was not empty, but had no intact record


def test_repair_removes_damage_and_verify_names_it(spool: Path) -> None:
    assert b"nothing to repair" in ok("repair", spool)
    damage(spool / "9-events")
    planned = deedbook("repair", spool, "--dry-run")
    assert planned.returncode == 1 and b"2 intact records would stay" in planned.stdout
    left = deedbook("repair", spool)
    assert left.returncode == 1 and b"--accept-loss goes on without" in left.stdout
    done = ok("repair", spool, "--accept-loss")
    aside = spool / ".deedbook" / "quarantine" / "9-events"
    assert f"the damaged file is in {aside}".encode() in done
    shown = ok("verify", spool).decode()
    assert f"{aside}: damaged, in the quarantine" in shown and "8 records" in shown
    facts = json.loads(ok("verify", spool, "--json"))
    assert (facts["ok"], facts["quarantined"]) == (True, [str(aside)])
