"""The command line at the boundary of the process: arguments in; bytes, text and exit code out."""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import deedbook as package
from log_bytes import make_book, packed
from logs import append_to, snapshot
from places import DATA
from shell import command, complaint, deedbook, environment, json_lines, ok, outputs, payloads

WHY = "expecting value at column 1"
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

# Events 1..3, records 2 and 3 from bytes 41 and 68 on, and the same with a damaged byte.
GOOD = (DATA / "book" / "uip-packed-3" / "book.log").read_bytes()
JAMS = [b"\x02", b"qH4", GOOD[80:112]]
TORN = GOOD[:-5]
MIDCORRUPT = GOOD[:53] + b"\x8e" + GOOD[54:]

COMMANDS = ("info", "cat", "append", "verify", "repair", "salvage", "demo")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "five.book"
    ok("append", path, stdin=b"1\n2\n3\n4\n5\n")
    return path


def test_version_names_program_and_version() -> None:
    assert ok("--version").decode() == f"deedbook {package.__version__}\n"


def test_help_covers_every_command_and_all_exit_codes() -> None:
    """Only the module of the chosen command is imported: each command needs a row in the table."""
    main = ok("--help").decode()
    assert "exit codes:" in main
    listed = main.partition("\ncommands:")[2].partition("\nexamples:")[0]
    names = re.findall(r"^    ([a-z-]+)", listed, re.MULTILINE)
    assert len(names) > 20 and set(COMMANDS) <= set(names)
    for name in names:
        help_text = ok(name, "--help").decode()
        assert help_text.startswith(f"usage: deedbook {name} "), name
        if name in COMMANDS:
            example = help_text.replace("salvage events", "repair ev")
            assert f"examples:\n  deedbook {name}" in example
            assert all(len(line) <= 100 for line in help_text.splitlines())


def test_options_may_stand_between_positional_arguments(tmp_path: Path, book: Path) -> None:
    assert ok("cat", book, "--raw", "2:4") == b"2\n3\n"
    file = tmp_path / "lines"
    file.write_bytes(b"1\n2\n3\n4\n5\n6\n")
    ok("append", book, "--resume", file)
    assert ok("cat", "--raw", book) == b"1\n2\n3\n4\n5\n6\n"


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["--help"], "deedbook._cli.first_minute"),
        (["info", "--help"], "deedbook.spark"),
        (["verify"], "rich"),
    ],
)
def test_command_imports_only_the_modules_it_needs(
    book: Path, words: list[str], module: str
) -> None:
    code = (
        "import sys; from deedbook._cli import main; main(sys.argv[2:]);"
        "sys.exit(any(name.startswith(sys.argv[1]) for name in sys.modules))"
    )
    command = [sys.executable, "-c", code, module, *words, *([book] if words == ["verify"] else [])]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0 and done.stdout and not done.stderr


@pytest.mark.parametrize(
    ("modules", "words", "said"),
    [
        ("shtab", "completion bash", "completion: needs shtab: pip install 'deedbook[cli]'"),
        ("pyarrow", "export book -o x.parquet", "needs pyarrow (pip install pyarrow)"),
        *(
            ("obstore", words, "pip install 'deedbook[s3]'")
            for words in (
                "backup book s3://b/x",
                "backup s3://b/x y",
                "verify s3://b/x",
                "cat s3://b/x",
            )
        ),
        ("urllib3", "send spool http://127.0.0.1:9/", "pip install 'deedbook[http]'"),
        (
            "compression.zstd,backports.zstd",
            "send spool http://127.0.0.1:9/ --compression zstd",
            "pip install 'deedbook[zstd]'",
        ),
    ],
)
def test_missing_dependency_of_a_command_is_named(
    tmp_path: Path, modules: str, words: str, said: str
) -> None:
    if "zstd" in modules:
        pytest.importorskip("urllib3")
    ok("append", tmp_path / "book", stdin=b"1\n")
    ok("append", "--format", "ledger", tmp_path / "spool", stdin=b"1\n")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(',')))\n"
        "from deedbook._cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, modules, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    text = complaint(done, 2)
    assert said in text and text.startswith(words.split()[0])
    assert sorted(os.listdir(tmp_path)) == ["book", "spool"]


def test_debug_mode_prints_traceback_and_keeps_exit_code(tmp_path: Path) -> None:
    done = deedbook("info", tmp_path / "none", env={"DEEDBOOK_DEBUG": "1"})
    assert done.returncode == 2
    assert b"Traceback" in done.stderr and b"deedbook: " in done.stderr


@pytest.mark.parametrize(
    ("args", "events"),
    [
        ([], "12345"),
        (["2:4"], "23"),
        (["4:"], "45"),
        ([":3"], "12"),
        ([":"], "12345"),
        (["3"], "3"),
        (["3:3"], ""),
        (["4:900"], "45"),
        (["900:"], ""),
        (["--from", "4"], "45"),
        (["--to", "3"], "12"),
        (["--from", "2", "--to", "4"], "23"),
        (["--reverse"], "54321"),
        (["2:5", "--reverse"], "432"),
        (["2:4", "--skip-corrupt"], "23"),
    ],
)
def test_cat_prints_the_selected_events(book: Path, args: Sequence[str], events: str) -> None:
    assert ok("cat", book, "--raw", *args).decode().split() == list(events)


def test_cat_prints_three_forms_and_reports_missing_events(book: Path) -> None:
    assert ok("cat", book, "2:4").decode() == "2\t2\n3\t3\n"
    assert ok("cat", book, "2:4", "--raw") == b"2\n3\n"
    three = b'{"event":3,"mug":0,"jam":"3"}\n'
    assert ok("cat", book, "2:4", "--json") == b'{"event":2,"mug":0,"jam":"2"}\n' + three
    assert ok("cat", book, "3", "--json") == three
    said = complaint(deedbook("cat", book, "6"), 2)
    assert "6" in said and "5" in said


def test_cat_shows_mugs_and_binary_payloads(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book", GOOD)
    first, second, third = json_lines(ok("cat", book, "--json"))
    assert first == {"event": 1, "mug": 0x01020304, "jam": "\x02"}
    assert second == {"event": 2, "mug": 0x7FFFFFFF, "jam": "qH4"}
    assert third["mug"] == 0x00ABCDEF
    assert base64.b64decode(third["jam_base64"]) == JAMS[2]
    assert "jam" not in third
    assert ok("cat", book, "--raw") == b"".join(jam + b"\n" for jam in JAMS)
    assert ok("cat", book, "-0") == b"".join(jam + b"\0" for jam in JAMS)
    assert ok("cat", book, "--raw", "--reverse", "-0", "3") == JAMS[2] + b"\0"


@pytest.mark.parametrize(
    ("log_format", "places", "key"),
    [("book", [1, 2, 3, 4, 5], "jam"), ("wal", [0, 17, 30, 38, 48], "payload")],
)
def test_non_json_lines_are_appended_and_printed_escaped(
    path: Path, log_format: str, places: list[int], key: str
) -> None:
    lines = [b"\xff\x1b[2Ja\tb\r", "grün".encode(), b"", b"\xff\xfe"]
    words = ("append", "--format", log_format, "--no-validate", path)
    ok(*words, stdin=b"\n".join(lines) + b"\n")
    assert payloads(path) == lines
    with package.open(path, "a") as log:
        log.append(b"a\nb")
    texts = ["\\xff\\x1b[2Ja\\tb\\r", "grün", "", "\\xff\\xfe", "a\\nb"]
    rows = [f"{place}\t{text}\n" for place, text in zip(places, texts, strict=True)]
    assert ok("cat", path).decode() == "".join(rows)
    first, second, third, *_ = json_lines(ok("cat", path, "--json"))
    assert base64.b64decode(first[f"{key}_base64"]) == lines[0] and key not in first
    assert (second[key], third[key]) == ("grün", "")


def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    book = tmp_path / "büch"
    ok("append", book, stdin='{"größe":"😀"}'.encode())
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    for args in (["cat", book, "--json"], ["cat", book], ["info", book]):
        done = deedbook(*args, env=env)
        assert done.returncode == 0, done.stderr
        assert "größe" in done.stdout.decode() or args[0] == "info"


def test_cat_of_a_large_payload_is_complete(path: Path) -> None:
    payload = b"x" * 3_000_000 + b"\ntail"
    append_to("book", path, [payload])
    assert ok("cat", path, "--raw") == payload + b"\n"


def test_append_creates_a_book_with_each_lines_bytes(tmp_path: Path) -> None:
    book = tmp_path / "book"
    lines = ['{"a": "ü😀"}', ' [1, 2.50, 1e400, "\\ud800"] ', "1" * 5000, "null\r", '"last"']
    done = deedbook("append", book, stdin="\n".join(lines).encode())
    assert done.returncode == 0 and done.stdout == b""
    assert done.stderr == b"deedbook: appended 5 deeds (events 1..5); all durable\n"
    assert payloads(book) == [line.encode() for line in lines]
    assert (book / "book.log").read_bytes() == packed(line.encode() for line in lines)


def test_empty_append_creates_book_and_quiet_hides_success(path: Path) -> None:
    ok("append", "-q", path, os.devnull)
    assert json.loads(ok("info", path, "--json"))["bounds"] is None and ok("cat", path) == b""
    assert deedbook("append", "-q", path, stdin=b"1\n").stderr == b""
    assert deedbook("append", "-q", path, stdin=b"no\n").returncode == 1


# test_ledger.py tests which lines are not JSON.
@pytest.mark.parametrize("bad", [b"{", "1".encode("utf-16"), b"[" * 200_000])
def test_first_bad_line_stops_append_on_request(tmp_path: Path, bad: bytes) -> None:
    book = tmp_path / "book"
    done = deedbook("append", book, "--json", "--stop-at-bad", stdin=b"1\n2\n" + bad + b"\n4\n")
    assert "line 3 of standard input is not JSON" in complaint(done, 2)
    result = json.loads(done.stdout)
    assert (result["ok"], result["appended"], result["error"]["line"]) == (False, 2, 3)
    assert payloads(book) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("log_format", "own"),
    [
        ("book", {"skipped": 0, "last_event": 6, "durable_event": 6}),
        ("wal", {"first_lsn": 27, "end": 54, "durable_end": 54}),
    ],
)
def test_bad_lines_are_skipped_reported_and_put_aside(
    path: Path, tmp_path: Path, log_format: str, own: dict[str, int]
) -> None:
    text = b"1\nno\n2\n\n3\n"
    aside = tmp_path / "bad"
    words = ("append", "--format", log_format, path, "--aside", aside)
    done = deedbook(*words, stdin=text)
    assert done.returncode == 1  # as in shell.md; earlier it was 0
    assert done.stderr.startswith(b"deedbook: line 2: not JSON: ") and b", 1 bad; " in done.stderr
    assert aside.read_bytes() == b"no\n"  # an empty line is not bad
    assert payloads(path) == [b"1", b"2", b"3"]
    done = deedbook(*words, "--json", stdin=text)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        **{"ok": False, "path": str(path), "appended": 3},
        **{
            "bad": 1,
            "bad_lines": [{"line": 2, "reason": f"not JSON: {WHY}"}],
            "interrupted": False,
        },
        **own,
    }


@pytest.mark.parametrize(
    ("log_format", "durability", "acks"),
    [
        *[("book", "always", [2, 4, 5]), ("book", "manual", [5]), ("book", "none", [])],
        *[("wal", "always", [18, 36, 45]), ("wal", "manual", [45]), ("wal", "none", [])],
        ("wal", "bytes:30", [36, 45]),
    ],
)
def test_acks_tell_the_last_durable_event_or_byte(
    tmp_path: Path, path: Path, log_format: str, durability: str, acks: list[int]
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"1\n2\n3\n4\n5\n")
    args = ("--format", log_format, "--acks", "--batch", "2", "--durability", durability)
    assert [int(line) for line in ok("append", path, file, *args).splitlines()] == acks
    assert len(payloads(path)) == 5


def test_epoch_numbers_the_first_event(tmp_path: Path) -> None:
    book = tmp_path / "book"
    result = json.loads(ok("append", book, "--epoch", "100", "--json", stdin=b"1\n2\n"))
    assert result["last_event"] == 102
    result = json.loads(ok("append", book, "--resume", "--json", stdin=b"1\n2\n3\n"))
    assert (result["skipped"], result["appended"], result["last_event"]) == (2, 1, 103)
    assert ok("cat", book, "102:") == b"102\t2\n103\t3\n"


@pytest.mark.parametrize("line", [b"x" * 400_000, b"x" * 5_000 + b"\n", b"x" * 1_001 + b"\n1\n"])
def test_a_line_over_the_limit_is_refused(tmp_path: Path, line: bytes) -> None:
    args = ("append", tmp_path / "book", "--line-bytes-max", "1000", "--no-validate")
    text = complaint(deedbook(*args, stdin=b"1\n" + line), 2)
    assert "line 2 of standard input is longer than 1,000 bytes (--line-bytes-max)" in text
    assert payloads(tmp_path / "book") == []
    ok(*args, stdin=b"x" * 1_000 + b"\n")


def test_append_reports_truncating_the_tail_of_torn_logs(tmp_path: Path) -> None:
    book = make_book(tmp_path / "book", TORN)
    done = deedbook("append", book, stdin=b"3\n")
    assert done.returncode == 0
    assert b"cut a torn tail of" in done.stderr
    log = (book / "book.log").read_bytes()
    assert log == GOOD[:68] + packed([b"3"])[16:]


def test_resume_appends_the_rest_and_then_nothing(tmp_path: Path) -> None:
    book = tmp_path / "book"
    lines = [b"%d" % number for number in range(2500)]
    ok("append", book, stdin=b"\n".join(lines[:1700]))
    text = b"\n".join(lines) + b"\n"
    for skipped, appended in ((1700, 800), (2500, 0)):
        result = json.loads(ok("append", book, "--resume", "--json", stdin=text))
        assert (result["ok"], result["skipped"], result["appended"]) == (True, skipped, appended)
        assert result["last_event"] == 2500
    assert payloads(book) == lines


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"1\n2\n3\n4\n55\n6\n", ["line 5", "event 5"]),
        (b"1\ntwo\n3\n4\n5\n6\n", ["line 3", "event 2"]),
        (b"1\n2\n3\n4\n", ["4 lines", "5 deeds"]),
        (b"", ["0 lines", "5 deeds"]),
    ],
)
def test_resume_refuses_another_input(book: Path, text: bytes, names: Sequence[str]) -> None:
    message = complaint(deedbook("append", book, "--resume", stdin=text), 2)
    assert all(name in message for name in names), message
    assert payloads(book) == [b"1", b"2", b"3", b"4", b"5"]


def test_resume_does_not_count_bad_lines(tmp_path: Path) -> None:
    book = tmp_path / "book"
    deedbook("append", book, stdin=b"no\n1\nno\n2\n")
    deedbook("append", book, "--resume", stdin=b"no\n1\nno\n2\nno\n3\n")
    assert payloads(book) == [b"1", b"2", b"3"]


def test_salvage_with_keep_numbers_puts_stubs_for_losses(tmp_path: Path) -> None:
    book, wal = tmp_path / "book", tmp_path / "wal"
    raw = bytearray(packed([b"x" * 30] * 10))
    for number in (4, 5, 8):
        raw[16 + 54 * (number - 1) + 20] ^= 1
    make_book(book, bytes(raw))
    asked = ("salvage", "--keep-numbers")
    told = outputs(*asked, book, tmp_path / "copy", code=1)[0]
    assert "copied 7 deeds" in told and "stubs stand for lost events: 4..5, 8\n" in told
    assert "new numbers" not in told
    assert b"events 1..10" in ok("verify", tmp_path / "copy")
    ok("append", "--format", "wal", wal, stdin=b"1\n")
    assert "--keep-numbers is for books" in complaint(deedbook(*asked, wal, tmp_path / "no"), 2)


def test_book_info_prints_one_row_per_fact(book: Path) -> None:
    info = json.loads(ok("info", book, "--json"))
    assert (info["epoch"], info["durable_event"]) == (0, 5)
    assert info["meta"] == {"who": None, "version": None, "life": None, "fake": None}
    assert info["recovery"]["verdict"] == "clean"
    assert info["writer"] == {"held": False, "pid": None}
    text = ok("info", book).decode()
    rows = dict(line.split(None, 1) for line in text.splitlines())
    assert list(rows) == [
        "path", "format", "layout", "events", "size", "durable", "metadata", "writer", "recovery",
    ]  # fmt: skip
    assert rows["events"] == "1..5 (5 deeds, epoch 0)"
    assert rows["durable"].startswith("through event 5")
    # Opening does not read the records behind the mark, so the row does not say just "clean".
    assert rows["recovery"] == "clean (by the mark, 0 bytes read; verify reads all)"
    assert len({len(line) - len(line.split(None, 1)[1]) for line in text.splitlines()}) == 1


def test_info_shows_metadata(book: Path) -> None:
    with package.Book.open(book, "a") as handle:
        handle.save_meta(who=2**127 + 1, version=3, life=7, fake=True)
    facts = json.loads(ok("info", book / "book.log", "--json"))  # the file also names the book
    assert facts["meta"] == {"who": f"{2**127 + 1:#x}", "version": 3, "life": 7, "fake": True}
    assert b"version 3, life 7, fake yes" in ok("info", book)


def test_verify_checks_all_logs_and_exits_with_worst(tmp_path: Path, book: Path) -> None:
    torn, wal = make_book(tmp_path / "torn", TORN), tmp_path / "wal"
    ok("append", "--format", "wal", wal, stdin=b"1\n")
    assert ok("verify", book, wal).decode().count(": ok, ") == 2
    done = deedbook("verify", "--json", book, torn, wal)
    assert done.returncode == 1
    found = [(report["ok"], report["records"]) for report in json_lines(done.stdout)]
    assert found == [(True, 5), (False, 2), (True, 1)]
    done = deedbook("verify", "--json", torn, tmp_path / "none", book)
    complaint(done, 2)
    reports = json_lines(done.stdout)
    assert [report["ok"] for report in reports] == [False, False, True]
    assert reports[1]["error"]["kind"] == "missing"


def test_salvage_reports_new_numbers_of_a_book(tmp_path: Path) -> None:
    source, target = make_book(tmp_path / "broken", MIDCORRUPT), tmp_path / "rescued"
    assert json.loads(outputs("salvage", source, target, "--json", code=1)[0])["renumbered"] is True
    assert payloads(target) == [JAMS[0], JAMS[2]]
    assert "-> 2..2" in outputs("salvage", source, tmp_path / "again", code=1)[0]


def make_places(top: Path) -> dict[str, str]:
    for folder in ("empty", "with-fifo", "with-dir/book.log", "link"):
        (top / folder).mkdir(parents=True)
    (top / "file").write_bytes(b"not a book\n" * 100)
    (top / "other.log").write_bytes(GOOD)
    make_book(top / "garbage", b"\xde\xad\xbe\xef" * 5000)
    make_book(top / "short", GOOD[:9])
    make_book(top / "version", GOOD[:4] + b"\x09" + GOOD[5:16])
    (make_book(top / "both", GOOD) / f"{0:020d}.wal").write_bytes(b"")
    said = {
        **dict.fromkeys(("none", "a\nb\x1b[2J"), "No such file"),
        **dict.fromkeys(("file", "garbage", "short", "version", "x" * 300), ""),
        "empty": "no log there",
        "other.log": "not named book.log",
        "with-dir": "not a regular file",
        "both": "holds both a book",
        f"both/{0:020d}.wal": "name the log's directory",
    }
    if os.name != "posix":  # other systems use other words
        return dict.fromkeys(said, "")
    (top / "link" / "book.log").symlink_to(top / "other.log")
    (top / "link.log").symlink_to(top / "other.log")
    (top / "loop").symlink_to(top / "loop")
    for fifo in ("fifo", "with-fifo/book.log"):
        os.mkfifo(top / fifo)
    said |= dict.fromkeys(("link", "link.log", "fifo", "with-fifo"), "not a regular file")
    said["loop"] = ""
    return said


def test_non_logs_print_one_line_and_stay_unchanged(tmp_path: Path) -> None:
    top, creatable = tmp_path / "top", ("none", "a\nb\x1b[2J", "empty")
    top.mkdir()
    places = make_places(top)
    before = snapshot(top)
    for name, said in places.items():
        runs = ["info", "cat", "verify", "repair", *([] if name in creatable else ["append"])]
        for word in runs:
            done = deedbook(word, top / name, stdin=b"1\n")
            assert said in complaint(done, 2) and done.stdout == b"", (name, word)
        complaint(deedbook("cat", top / name, "--follow", "--timeout", "0.2"), 2)
        complaint(deedbook("salvage", top / name, tmp_path / "target"), 2)
    for words in (["retain", "--to", "0"], ["retain", "--consumed"], ["consumers"]):
        assert "no log there" in complaint(deedbook(*words, top / "empty"), 2)
    assert snapshot(top) == before and os.listdir(top / "empty") == []


def shell(text: str, *args: object) -> subprocess.CompletedProcess[bytes]:
    line = f"exec {shlex.join(command(*args))} {text}"
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, timeout=30, env=environment()
    )


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")


@posix
@pytest.mark.parametrize(
    ("where", "said"), [pytest.param(">/dev/full", "No space", marks=linux), (">&-", "closed")]
)
@pytest.mark.parametrize("words", [["cat"], ["cat", "--raw"], ["info"], ["verify"]])
def test_full_or_closed_stdout_prints_one_line(
    book: Path, where: str, said: str, words: list[str]
) -> None:
    assert said in complaint(shell(where, *words, book), 2)


@posix
def test_a_closed_standard_input_is_one_line(tmp_path: Path) -> None:
    assert "closed" in complaint(shell("<&-", "append", tmp_path / "book"), 2)
    assert not (tmp_path / "book").exists()


@posix
def test_closed_descriptors_never_become_the_log(tmp_path: Path) -> None:
    """Otherwise a message of the native core to descriptor 2 could end up in the log."""
    book = tmp_path / "book"
    file = tmp_path / "lines"
    file.write_bytes(b"1\n2\nnot JSON\n")
    code = (
        "import os, sys; from deedbook._cli import main; code = main(sys.argv[1:4]);"
        "same = [os.path.samestat(os.fstat(fd), os.stat(os.devnull)) for fd in range(3)];"
        "open(sys.argv[4], 'w').write(f'{code} {all(same)}')"
    )
    told = tmp_path / "told"
    args = [sys.executable, "-c", code, "append", str(book), str(file), str(told)]
    line = f"exec {shlex.join(args)} <&- >&- 2>&-"
    subprocess.run(["/bin/sh", "-c", line], timeout=30, env=environment())
    assert told.read_text() == "1 True"
    assert (book / "book.log").read_bytes() == packed([b"1", b"2"])
