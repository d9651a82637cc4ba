"""The command line with write-ahead logs, at the process boundary."""

import json
import os
import shutil
from pathlib import Path

import pytest

from deedbook import Wal
from log_bytes import flip
from shell import outputs as deedbook
from shell import refused

LINES = b"".join(b'{"n":%d}\n' % n for n in range(300))


@pytest.fixture(params=["segments", "single"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "log"
    layout = ["--segment-bytes", "512"] if request.param == "segments" else ["--single-file"]
    out, err = deedbook("append", "--format", "wal", *layout, path, stdin=LINES)
    assert out == "" and "appended 300 records (bytes 0 to " in err and "all durable" in err
    return path


def test_places_and_ranges_are_bytes(path: Path) -> None:
    out, _ = deedbook("cat", path)
    lines = out.splitlines()
    assert len(lines) == 300 and lines[0] == '0\t{"n":0}' and lines[1] == '15\t{"n":1}'
    newest = deedbook("cat", path, "--json", "--reverse")[0].splitlines()[0]
    assert json.loads(newest)["payload"] == '{"n":299}'
    end = json.loads(deedbook("info", path, "--json")[0])["end"]
    assert f"300, bytes 0 to {end:,}" in deedbook("info", path)[0]
    one, two = '{"n":1}\n', '{"n":2}\n'
    for words, shown in (
        (["15"], one),
        (["15:30"], one),
        (["15:45", "--reverse"], two + one),
        # Following ends at once where what was asked for is there.
        (["15:45", "--follow"], one + two),
        ([f"{end}:"], ""),
        ([f"{end + 5000}:"], ""),
    ):
        assert deedbook("cat", path, "--raw", *words)[0] == shown, words
    for words in ([f"0:{end + 5000}"], [f":{end}", "--follow"], ["--follow", "--timeout", "0.1"]):
        assert len(deedbook("cat", path, *words)[0].splitlines()) == 300, words


def test_records_are_dropped_at_both_ends(path: Path) -> None:
    single = path.is_file()
    lsns = [int(line.split("\t")[0]) for line in deedbook("cat", path)[0].splitlines()]
    before = deedbook("cat", path)[0]
    after = ("retain", path, "--to", lsns[201], "--json")
    with Wal.open(path, "a"):  # asked beside its writer
        would = json.loads(deedbook(*after, "--dry-run")[0])
        asked = deedbook("retain", path, "--to", lsns[199], "--dry-run")[0]
        assert "101 records would go; bytes 0 to" in asked
    assert deedbook("cat", path)[0] == before
    told = json.loads(deedbook(*after)[0])
    assert told["dropped_records"] == 99
    assert would == {**told, "dry_run": True} and not told["dry_run"]
    assert "dropped 1 record;" in deedbook("retain", path, "--to", lsns[200])[0]
    if single:
        assert "no prefix to drop" in refused("retain", path, "--from", lsns[9])
        return
    with Wal.open(path, "a") as wal:
        wal.set_consumer("reader", lsns[50])
    assert '"reader" needs lsn' in refused("retain", path, "--from", lsns[60])
    needed = refused("retain", path, "--from", lsns[60], "--dry-run")
    assert '"reader" needs lsn' in needed
    deedbook("retain", path, "--from", lsns[60], "--force")
    assert deedbook("cat", path)[0].splitlines()[0].startswith(f"{lsns[60]}\t")
    assert "reader needs lsn" in deedbook("info", path)[0]
    deedbook("retain", path, "--from", "end", "--force")
    assert deedbook("cat", path)[0] == ""


def test_a_salvage_says_what_it_takes_along(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Wal.create(path, single_file=True) as wal:
        lsns = [wal.append(b"%02d" % i * 10) for i in range(4)]
        wal.set_consumer("mail", lsns[1])
        wal.set_consumer("backup", lsns[2])
    flip(path, lsns[1] + 9)
    out, _ = deedbook("salvage", path, tmp_path / "copy", code=1)
    assert "  2 consumers carried over\n" in out
    assert "  consumers whose record is lost need the next one: mail\n" in out
    (tmp_path / ".deedbook/log/consumers").write_text("mail 9\n")
    out, _ = deedbook("salvage", path, tmp_path / "again", code=1)
    assert "not carried over: " in out and "consumers' file is damaged" in out
    told = json.loads(deedbook("salvage", "--json", path, tmp_path / "third", code=1)[0])
    assert (told["ok"], told["consumers"], len(told["not_carried"])) == (False, 0, 1)


def test_read_commands_accept_the_segment_size(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Wal.create(path, segment_bytes=512) as wal:
        wal.append_many([b"%05d" % n for n in range(100)])
        wal.sync()
        wal.truncate_before(wal.end - 13)
    (segment,) = path.glob("*.wal")
    assert segment.stat().st_size < 512
    shutil.rmtree(path / ".deedbook")
    size = ["--segment-bytes", "512"]
    commands: list[list[object]] = [["info"], ["verify"], ["cat", "--raw"], ["repair"]]
    for command in commands:
        assert "segment_bytes" in refused(*command, path), command
        deedbook(*command, path, *size)
    assert deedbook("cat", "--raw", path, *size)[0] == "00099\n"
    shutil.rmtree(path / ".deedbook", ignore_errors=True)
    deedbook("salvage", path, tmp_path / "copy", *size)
    with Wal.open(tmp_path / "copy") as wal:
        assert list(wal.payloads()) == [b"00099"]


def test_repair_names_the_segment_that_it_sets_aside(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Wal.open(path, "x", segment_bytes=600) as wal:
        for number in range(24):
            wal.append(bytes([number]) * 92)
    shutil.rmtree(path / ".deedbook")
    segments = [path / f"{number:020d}.wal" for number in range(4)]
    segments[2].unlink()
    forced = ("repair", path, "--force")
    would = deedbook(*forced, "--dry-run", code=1)[0]
    assert f"would set aside 1 segment after a gap: {segments[3]}" in would
    assert segments[2].name in would and "6 intact records among them" in would
    aside = f"{segments[3]}.cut"
    assert f"set aside 1 segment after a gap as: {aside}" in deedbook(*forced)[0]
    assert Path(aside).stat().st_size == 600
    assert "nothing to repair" in deedbook(*forced)[0]


def test_consumers_are_listed_set_and_removed(path: Path) -> None:
    assert deedbook("consumers", path)[0] == ""
    deedbook("consumers", path, "--set", "backup", "15")
    told = json.loads(deedbook("consumers", path, "--set", "copy", "end", "--json")[0])
    with Wal.open(path) as wal:
        assert told["consumers"] == {"backup": 15, "copy": wal.end} == wal.consumers()
    assert deedbook("consumers", path)[0].splitlines()[0] == "backup  15"
    would = deedbook("consumers", path, "--remove", "backup", "--dry-run")[0].splitlines()
    with Wal.open(path) as wal:
        kept = wal.end - 15
        assert wal.consumers() == {"backup": 15, "copy": wal.end}
    assert f"({kept:,} bytes)" in would[0] or f"keeps {kept} bytes" in would[0]
    assert [line.split()[0] for line in would[1:]] == ["copy"]
    last = json.loads(deedbook("consumers", path, "--remove", "copy", "--dry-run", "--json")[0])
    assert (last["consumers"], last["freed_bytes"]) == ({"backup": 15}, 0)
    for wrong in ((), ("--set", "copy", "end"), ("--set", "copy", "end", "--remove", "copy")):
        assert "goes with --remove alone" in refused("consumers", path, *wrong, "--dry-run")
    with Wal.open(path, "a") as wal:  # beside its writer, too
        deedbook("consumers", path, "--remove", "backup")
        assert wal.consumers() == {"copy": wal.end}
        deedbook("consumers", path, "--set", "backup", "15")
        assert wal.consumers() == {"backup": 15, "copy": wal.end}


def test_segments_are_dropped_by_size_age_and_consumers(path: Path) -> None:
    if path.is_file():
        err = refused("retain", path, "--max-bytes", "1k")
        assert "no prefix to drop" in err
        return
    assert "dropped 0 records" in deedbook("retain", path, "--max-age", "7d")[0]
    deedbook("consumers", path, "--set", "slow", "1023", code=2)
    lsns = [int(line.split("\t")[0]) for line in deedbook("cat", path)[0].splitlines()]
    deedbook("consumers", path, "--set", "slow", lsns[100])
    with Wal.open(path, "a"):  # asked beside its writer
        would = json.loads(deedbook("retain", path, "--max-bytes", "1k", "--dry-run", "--json")[0])
        assert "would be left of" in deedbook("retain", path, "--consumed", "--dry-run")[0]
        locked = json.loads(deedbook("retain", path, "--max-bytes", "1k", "--json", code=2)[0])
        assert (locked["error"]["kind"], locked["error"]["holder"]) == ("locked", os.getpid())
        assert "retain_bytes or retain_age" in locked["error"]["message"]
    told = json.loads(deedbook("retain", path, "--max-bytes", "1k", "--json")[0])
    assert (would["head"], would["dropped_bytes"]) == (told["head"], told["dropped_bytes"])
    assert 0 < told["head"] <= lsns[100] and told["dropped_bytes"] == told["head"]
    assert told["dropped_records"] + told["records"] == 300
    deedbook("consumers", path, "--remove", "slow")
    told = json.loads(deedbook("retain", path, "--max-bytes", "1k", "--json")[0])
    assert 1024 <= told["end"] - told["head"] <= 1024 + 2 * 512
    deedbook("consumers", path, "--set", "done", "end")
    assert "are left of" in deedbook("retain", path, "--consumed")[0]
