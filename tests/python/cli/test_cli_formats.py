"""The command line asks each format the same questions, and recognizes its own saved files."""

import gzip
import json
import os
import re
import zlib
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

import deedbook as package
from deedbook import Book, NotALogError, Wal
from deedbook import _formats as formats
from deedbook._system.compressed import zstd
from line_files import has_zstd
from log_bytes import flip
from logs import append_to
from shell import complaint, deedbook, json_lines, ok, outputs

LINES = b"".join(b'{"n":%d}\n' % number for number in range(1000, 1200))


class Kind(NamedTuple):
    name: Literal["book", "wal"]
    options: tuple[str, ...]
    log: type[Book] | type[Wal]
    payload: str

    def file(self, path: Path) -> Path:
        if self.name == "book":
            return path / "book.log"
        return path if self.options == ("--single-file",) else path / f"{0:020d}.wal"

    @property
    def noun(self) -> str:
        return "deed" if self.name == "book" else "record"

    def saved(self, path: Path) -> list[Path]:
        return [*path.glob("*.cut*"), *path.parent.glob(f"{path.name}.cut*")]


BOOK = Kind("book", (), Book, "jam")
SEGMENTS = Kind("wal", ("--segment-bytes", "8k"), Wal, "payload")
SINGLE = Kind("wal", ("--single-file",), Wal, "payload")
KINDS = {"book": BOOK, "segments": SEGMENTS, "single": SINGLE}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def log(kind: Kind, path: Path) -> Path:
    ok("append", "--format", kind.name, *kind.options, path, stdin=LINES)
    return path


def place_of(log: Path, number: int) -> int:
    kind = formats.detect(log)
    return (16 + number * 34 + 12) if kind == "book" else number * 18 + 8


def begin_of(log: Path, number: int) -> int:
    return place_of(log, number) - (12 if formats.detect(log) == "book" else 8)


def test_info_has_the_same_keys_for_every_format(kind: Kind, log: Path) -> None:
    facts = json.loads(ok("info", log, "--json"))
    shared = [
        *("path", "format", "layout", "records", "bounds", "bytes", "end", "file_end"),
        *("durable_end", "recovery", "writer", "transactions", "staged"),
    ]
    assert list(facts)[: len(shared)] == shared
    assert facts["format"] == kind.name and facts["path"] == str(log)
    with package.open(log) as handle:
        assert facts["records"] == len(handle) == 200
        for name in ("bytes", "end", "durable_end", "file_end"):
            assert facts[name] == handle.end, name
        assert facts["bounds"] == list(handle.bounds)
        assert facts["layout"] == handle.layout
    # The help of info lists the other keys (test_cli_export.py).
    for command in ("verify", "repair"):
        assert json.loads(ok(command, log, "--json"))["format"] == kind.name


@pytest.fixture
def saved(kind: Kind, log: Path) -> Path:
    """Saved by an opening: record 50, damaged, and 149 intact records after it."""
    with kind.log.open(log) as handle:
        sidecar = Path(formats.by_name(kind.name).sidecar(handle))
    flip(kind.file(log), begin_of(log, 50))
    (sidecar / "mark").unlink()  # otherwise the opening stops at the mark
    kind.log.open(log, "a", recovery="spec").close()
    (file,) = kind.saved(log)
    return file


def test_what_was_saved_is_recognised(kind: Kind, log: Path, saved: Path) -> None:
    found = formats.require(saved)
    assert (found.format.name, found.saved) == (kind.name, True)
    assert found.saved_offset == begin_of(log, 50)
    other = Wal if kind.name == "book" else Book
    with pytest.raises(NotALogError, match="is what was cut off a"):
        other.open(saved)
    for command in ("append", "repair"):
        text = complaint(deedbook(command, saved, stdin=b"1\n"), 2)
        assert "what was cut off a" in text and "salvage copies it" in text
    for args in (["retain", "--to", "0"], ["retain", "--consumed"], ["consumers"]):
        assert "the saved end of a" in complaint(deedbook(*args, saved), 2)
    assert kind.saved(log) == [saved]


def test_what_was_saved_is_described_printed_and_salvaged(
    kind: Kind, log: Path, saved: Path, tmp_path: Path
) -> None:
    done = deedbook("info", saved, "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 1, "it begins with damage"
    assert (facts["format"], facts["path"]) == (kind.name, str(saved))
    assert facts["saved_from"] == formats.require(saved).saved_offset
    assert facts["recovery"]["verdict"] == "corrupt"
    shown = deedbook("info", saved).stdout.decode()
    assert "this is what was cut off a log at byte" in shown
    done = deedbook("verify", saved, "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["records"] == 149

    done = deedbook("cat", saved, "--skip-corrupt", "--json")
    assert done.returncode == 1, done.stderr
    records = json_lines(done.stdout)
    assert [record[kind.payload] for record in records] == LINES.decode().splitlines()[51:]
    assert {record.get("event") for record in records} == {None}

    assert f"copied 149 {kind.noun}s" in outputs("salvage", saved, tmp_path / "copy", code=1)[0]
    assert ok("cat", tmp_path / "copy", "--raw") == LINES.split(b"\n", 51)[51]


def test_damage_is_reported_skipped_and_omitted_from_copies(
    kind: Kind, log: Path, tmp_path: Path
) -> None:
    begins = [begin_of(log, number) for number in (100, 150)]
    for begin in begins:
        flip(kind.file(log), begin + 13)
    before = kind.file(log).read_bytes()
    lines = LINES.splitlines(keepends=True)
    intact = b"".join(line for number, line in enumerate(lines) if number not in (100, 150))
    done = deedbook("verify", log, "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["ok"]) == (1, b"", False)
    assert (report["verdict"], report["records"]) == ("corrupt", 198)
    assert [damage["offset"] for damage in report["damages"]] == begins
    shown = deedbook("verify", log).stdout.decode()
    assert f": corrupt: 198 of 200 {kind.noun}s are intact" in shown
    assert all(f"\n  bytes {begin:,}.." in shown for begin in begins) and "checksum" in shown

    done = deedbook("cat", log, "--raw")
    assert "next intact record at byte" in complaint(done, 1)
    assert done.stdout == b"".join(lines[:100])
    for form in ("--raw", "--json"):
        done = deedbook("cat", log, "--skip-corrupt", form)
        assert done.returncode == 1 and done.stdout.count(b"\n") == 198
        assert form == "--json" or done.stdout == intact
        talk = done.stderr.decode().splitlines()
        assert len(talk) == 2
        for line, begin in zip(talk, begins, strict=True):
            assert line.startswith(f"deedbook: skipping damage: bytes {begin} to "), line

    report = json.loads(outputs("salvage", log, tmp_path / "copy", "--json", code=1)[0])
    assert (report["ok"], report["records"]) == (False, 198)
    assert [damage["offset"] for damage in report["damages"]] == begins
    assert ok("cat", tmp_path / "copy", "--raw") == intact
    ok("verify", tmp_path / "copy")
    complaint(deedbook("salvage", log, tmp_path / "copy"), 2)  # the target exists
    shown = outputs("salvage", log, tmp_path / "again", code=1)[0]
    assert f"copied 198 {kind.noun}s" in shown and f"left out bytes {begins[0]:,}.." in shown
    assert kind.file(log).read_bytes() == before


def test_a_salvage_fails_if_anything_was_damaged(kind: Kind, path: Path, tmp_path: Path) -> None:
    ok("append", "--format", kind.name, *kind.options, path, stdin=b"")
    assert b"copied 0 " in ok("salvage", path, tmp_path / "empty")
    ok("append", path, stdin=b"[1]\n")
    flip(kind.file(path), place_of(path, 0))
    done = deedbook("salvage", path, tmp_path / "copy", "--json")
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["ok"] is False and result["damages"] and result["format"] == kind.name
    done = deedbook("salvage", path, tmp_path / "copy2")
    assert done.returncode == 1 and b"copied 0 " in done.stdout


def test_a_salvage_reports_a_loss_at_the_end(kind: Kind, log: Path, tmp_path: Path) -> None:
    with package.open(log) as handle:
        end = handle.end
    edge = begin_of(log, 150)
    os.truncate(kind.file(log), edge)
    result = json.loads(outputs("salvage", log, tmp_path / "copy", "--json", code=1)[0])
    assert result["lost_at_end"] == {"intact_end": edge, "durable_end": end}
    text = outputs("salvage", log, tmp_path / "copy2", code=1)[0]
    assert re.search(rf"acknowledged \w+s are lost: durable to byte {end:,}, intact", text)
    intact = json.loads(ok("salvage", tmp_path / "copy", tmp_path / "copy3", "--json"))
    assert intact["lost_at_end"] is None


def test_a_repair_does_not_cut_intact_records_unasked(kind: Kind, log: Path) -> None:
    flip(kind.file(log), place_of(log, 50))
    before = kind.file(log).read_bytes()
    facts = json.loads(outputs("repair", log, "--dry-run", "--json", code=1)[0])
    assert not facts["ok"] and facts["cut_records"] == 149 and facts["saved_to"] is None
    text = outputs("repair", log, "--dry-run", code=1)[0]
    assert "would cut" in text and "149 intact" in text and "salvage" in text
    done = deedbook("repair", log)
    assert "salvage" in complaint(done, 1)
    assert kind.file(log).read_bytes() == before and kind.saved(log) == []
    done = deedbook("repair", log, "--force")
    assert done.returncode == 1 and b"--accept-loss goes on without" in done.stdout
    assert kind.saved(log) == []
    assert b"what was cut is in" in ok("repair", log, "--force", "--accept-loss")
    assert len(kind.saved(log)) == 1
    assert f": ok, 50 {kind.noun}s" in ok("verify", log).decode()
    assert json.loads(ok("repair", log, "--json"))["cut_bytes"] == 0
    assert "lost: " in outputs("repair", log, "--dry-run", code=1)[0]
    ok("append", log, stdin=b"1\n")


def test_a_repair_reports_a_loss_and_keeps_it(kind: Kind, log: Path) -> None:
    edge = begin_of(log, 150)
    os.truncate(kind.file(log), edge)
    noun, where = kind.noun, "event 151" if kind is BOOK else f"lsn {edge:,}"
    said = f"lost: 50 acknowledged {noun}s from {where} on (byte {edge:,})"
    for args in (["repair"], ["repair", "--json"], ["verify"], ["append"]):
        done = deedbook(*args, log, stdin=b"1\n")
        assert done.returncode == 1, args
        if args == ["repair"]:
            assert said in done.stdout.decode()
        if args == ["verify"]:
            assert f"acknowledged {noun}s are lost: durable to" in done.stdout.decode()
    text = ok("repair", log, "--accept-loss").decode()
    assert said in text and "--accept-loss" not in text
    ok("append", log, stdin=b"1\n")
    assert said in deedbook("info", log).stdout.decode()
    assert json.loads(deedbook("info", log, "--json").stdout)["recovery"]["loss"]["records"] == 50
    assert said in deedbook("verify", log).stdout.decode()


def test_commands_report_a_loss_of_unknown_size(kind: Kind, log: Path) -> None:
    edge = begin_of(log, 150)
    note = f"records 0\nfirst 151\noffset {edge}\n"
    (mark,) = (log if log.is_dir() else log.parent).rglob("mark")
    mark.with_name("loss").write_text(f"{note}crc {zlib.crc32(note.encode()):08x}\n")
    said = re.compile(r"lost: acknowledged \w+s, how many is not known, from .* on \(byte ")
    assert said.search(deedbook("info", log).stdout.decode())
    assert said.search(deedbook("verify", log).stdout.decode())
    (line,) = re.findall(r"(?m)^deedbook_lost_records\{.*", ok("metrics", log).decode())
    assert line.endswith(" 1"), line


def test_cat_prints_payloads_as_json_text_or_base64(kind: Kind, path: Path, tmp_path: Path) -> None:
    lines = b'{"n":1.10}\n"\\n"\n12345678901234567890123\n'
    ok("append", "--format", kind.name, *kind.options, path, stdin=lines)
    shown = ok("cat", path, "--json", "--payload", "json").decode().splitlines()
    values = [line.partition(f'"{kind.payload}":')[2].removesuffix("}") for line in shown]
    assert values == lines.decode().splitlines()
    assert [json.loads(line)[kind.payload] for line in shown][1] == "\n"
    last = ok("cat", path, "-n", "1", "--json", "--payload", "base64")
    assert json.loads(last)[f"{kind.payload}_base64"] == "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM="
    other = tmp_path / "other"
    ok("append", "--no-validate", "--format", kind.name, *kind.options, other, stdin=b"{}\na\xff\n")
    for payload, said in (("json", "is not JSON"), ("text", "byte 2 of the payload is not UTF-8")):
        told = complaint(deedbook("cat", other, "--json", "--payload", payload), 2)
        assert said in told and re.search(r"(event 2|lsn [0-9]+): ", told)


@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_append_takes_compressed_lines_from_files_and_pipes(
    kind: Kind, path: Path, tmp_path: Path, packer: str
) -> None:
    if packer == "zstd" and not has_zstd():
        pytest.skip("backports.zstd is not installed")
    module = gzip if packer == "gzip" else zstd("the test")
    lines = [b'{"n":%d,"text":"%s"}' % (n, b"x" * (n % 700)) for n in range(3000)]
    half = b"".join(line + b"\n" for line in lines[:1500])
    other = b"".join(line + b"\n" for line in lines[1500:])
    packed = module.compress(half) + module.compress(other)  # like the output of `cat a.gz b.gz`
    (tmp_path / "input").write_bytes(packed)
    ok("append", "--format", kind.name, *kind.options, path, tmp_path / "input")
    assert ok("cat", path, "--raw").splitlines() == lines
    piped = tmp_path / "piped"
    ok("append", "--format", kind.name, *kind.options, piped, stdin=packed)
    assert ok("cat", piped, "--raw").splitlines() == lines
    for name, wrong, said in (
        ("cut", packed[:-5], "ends within compressed bytes"),
        ("changed", packed[:40] + bytes(200) + packed[240:], f"{packer}: "),
        ("more", packed + b"no more of it", f"{packer}: "),
    ):
        target = ("-q", *kind.options, tmp_path / name)
        told = complaint(deedbook("append", "--format", kind.name, *target, stdin=wrong), 2)
        assert said in told and "standard input" in told


def test_small_compressed_input_is_expanded_in_pieces(path: Path, tmp_path: Path) -> None:
    line = b'"' + b"a" * 1022 + b'"\n'
    (tmp_path / "input").write_bytes(gzip.compress(line * 50_000))
    assert (tmp_path / "input").stat().st_size < 1 << 18
    ok("append", path, tmp_path / "input")
    assert json.loads(deedbook("info", path, "--json").stdout)["records"] == 50_000


def test_info_and_stats_continue_after_a_bad_log(kind: Kind, path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for log, lines in ((path, b"1\n2\n"), (other, b"3\n")):
        ok("append", "--format", kind.name, *kind.options, log, stdin=lines)
    for command in ("info", "stats"):
        done = deedbook(command, "--json", path, tmp_path / "none", other)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [one.get("records") for one in found] == [2, None, 1]
        assert found[1]["ok"] is False and found[1]["path"] == str(tmp_path / "none")
        assert done.returncode == 2 and str(tmp_path / "none") in done.stderr.decode()
        shown = ok(command, path, other).decode()
        assert shown.count("path ") == 2 and "\n\n" in shown


def test_several_logs_are_printed_with_their_names(tmp_path: Path) -> None:
    book, wal, none = tmp_path / "a.book", tmp_path / "b.wal", tmp_path / "none"
    append_to("book", book, [b"1", b"2"])
    append_to("wal", wal, [b"3"])
    assert ok("cat", book, wal).decode().splitlines() == [
        f"{book}:1\t1",
        f"{book}:2\t2",
        f"{wal}:0\t3",
    ]
    told = json_lines(ok("cat", book, wal, "--json"))
    assert told[0] == {"path": str(book), "event": 1, "mug": 0, "jam": "1"}
    assert told[2] == {"path": str(wal), "lsn": 0, "payload": "3"}
    assert ok("cat", book, wal, "--raw") == b"1\n2\n3\n"
    assert ok("cat", book, wal, "-n", 1).decode() == f"{book}:2\t2\n{wal}:0\t3\n"
    assert ok("cat", book, book, "2:").decode() == f"{book}:2\t2\n" * 2
    # A single log needs no name.
    assert ok("cat", book, "2") == b"2\t2\n"
    missing = deedbook("cat", book, none, wal)
    assert (missing.returncode, missing.stdout.splitlines()[-1]) == (2, f"{wal}:0\t3".encode())
    assert str(none) in complaint(missing, 2)
    with open(book / "book.log", "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"???")
    damaged = deedbook("cat", book, wal)
    assert damaged.stdout.decode().splitlines() == [f"{book}:1\t1", f"{wal}:0\t3"]
    assert "deed 2" in complaint(damaged, 1)
