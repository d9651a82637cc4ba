"""The words of the shell: old, mistyped, and those of sizes and lengths of time."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from deedbook._cli import parser
from deedbook._show import amounts
from logs import append_to, make_logs, snapshot
from shell import complaint, deedbook, ok, outputs, refused

MISTYPED = [
    ("nostr query store {}", "no command 'nostr query': use 'deedbook query STORE FILTER'"),
    ("nostr reindex store", "use 'deedbook repair STORE --index'"),
    ("spool append spool", "use 'deedbook append LEDGER FILE --format ledger'"),
    ("spool endpoint", "no command 'spool endpoint': use examples/endpoint.py"),
    ("pipeline run a.toml", "no command 'pipeline': use examples/pipeline"),
    ("pier roll zod", "use 'deedbook retain PIER --roll'"),
    ("export-lmdb a b", "use 'deedbook migrate BOOK DST --format lmdb'"),
    ("truncate wal --before 9", "use 'deedbook retain WAL --from LSN' (drop what comes before"),
    ("nostr", "no command 'nostr': each command detects the format"),
    ("verfy log", "no command 'verfy'; did you mean 'verify'?"),
    ("spark ingst a b", "; did you mean 'ingest'? (see 'deedbook spark --help')"),
    ("append log --format bok", "; did you mean 'book'? (see"),
    ("qqq log", "no command 'qqq' (see 'deedbook --help')"),
    ("append log --skip-invalid", "bad lines are left out without it"),
    ("export log --csv", "unrecognized arguments: --csv; use --format csv"),
    ("cat log --start=9", "use --from"),
    ("verify log --jsn", "did you mean '--json'? (see 'deedbook verify --help')"),
]


def test_old_commands_point_to_existing_commands() -> None:
    from deedbook._cli import old_words

    for old, new in old_words._COMMANDS.items():
        words = new.partition(" (")[0].split()
        assert words[0] in parser._ADDED_BY, old
        options = list(parser._options(parser.build(words)))
        assert all(word in options for word in words if word.startswith("--")), old


def test_help_is_a_command() -> None:
    assert ok("help", "verify") == ok("verify", "--help")
    assert ok("help") == ok("--help") == ok("help", "help")
    assert ok("help", "spark", "ingest") == ok("spark", "ingest", "--help")
    assert "no command 'verfy'" in refused("help", "verfy")


def test_there_are_few_commands() -> None:
    from deedbook._cli.man import _commands

    leaves = [command.prog for command in _commands(parser.whole())]
    assert len([one for one in leaves if " pipeline " not in one]) <= 32


def test_ls_lists_the_logs_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("book", "wal", "ledger"):
        ok("append", "--format", name, logs / name, stdin=b"1\n22\n")
    ok("import", logs / "store", stdin=b"")
    (logs / "notes.txt").write_text("no log")
    (logs / "empty").mkdir()
    listed = [json.loads(line) for line in ok("ls", logs, "--json").splitlines()]
    assert [(one["format"], one["records"]) for one in listed] == [
        ("book", 2), ("ledger", None), ("nostr", 0), ("wal", 2)
    ]  # fmt: skip
    assert all(one["path"] == str(logs / Path(one["path"]).name) for one in listed)
    monkeypatch.chdir(logs)
    lines = ok("ls").decode().splitlines()
    assert len(lines) == 4 and lines[0].split()[0] == "book" and lines[0].endswith(" book")
    assert ok("ls", logs / "book").decode().split()[0] == "book"
    assert refused("ls", tmp_path / "none").startswith(f"deedbook: {tmp_path / 'none'}: No such")
    (logs / "wal" / "book.log").write_bytes(b"")
    out, err = outputs("ls", logs, code=2)
    assert out.count("\n") == 3 and "holds both a book" in err


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64k", 65_536),
        ("64 KiB", 65_536),
        ("2Mb", 2 << 20),
        ("1g", 1 << 30),
    ],
)
def test_a_size_is_bytes_or_has_a_unit(text: str, size: int) -> None:
    assert amounts.size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5), ("500ms", 0.5), ("90 s", 90), ("10M", 600), ("2 hours", 7200), ("1 day", 86_400)],
)
def test_a_duration_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert amounts.duration(text) == seconds


LONG_S, KELVIN, ARABIC_THREE = "\u017f", "\u212a", "\u0663"
WRONG = ["", "k", "-1", "1.5", "1t", "7y", f"1{LONG_S}", f"1{KELVIN}", ARABIC_THREE, " 1", "1" * 21]


@pytest.mark.parametrize("parse", [amounts.size, amounts.duration])
@pytest.mark.parametrize("text", WRONG)
def test_a_text_that_is_neither_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


PAYLOADS = [b'{"n":%d}' % number for number in range(30)]
TAIL = "--tail goes with neither"
LOGS_ONLY = "holds a ledger, this is for write-ahead logs"
LONG = "9" * 5000

# Wrong usage, of which argparse says the reason.
USAGE = ("", "unknown", "verify", "salvage x", "append x --batch 0", "append x --epoch -1")
USAGE += ("append x --durability sometimes", "cat", "cat x --unknown", "cat x 10:20 --from 1")
USAGE += ("cat x 20:10", "cat x 0", "cat x -5:", "cat x 1:x", "cat x ²", "cat x --timeout 1")
USAGE += ("cat x --follow --timeout nan", "cat x --follow --reverse", "cat x --json --raw")
USAGE += ("cat x --reverse --skip-corrupt", f"cat x {2**64}")

REFUSED = [
    *((words, "") for words in USAGE),
    *MISTYPED,
    ("export wal -o out", "--format parquet, --format arrow, --format csv"),
    ("export wal --format arrow", "an Arrow file needs -o FILE"),
    ("export wal --format csv", "CSV with a header needs -o FILE"),
    ("export wal --json", "--json needs -o FILE"),
    ("export nostr --json", "--json needs -o FILE"),
    ("export wal --include all", "--include is for event stores"),
    ("export wal -o wal/x.csv", "lies in the log"),
    ("export wal -o no/x.csv", "cannot write"),
    ("export wal -o x.parquet.gz", "say what to write"),
    ("cat wal -n 2 3", TAIL),
    ("cat wal -n 2 --reverse", TAIL),
    ("cat wal -n 2 --skip-corrupt", TAIL),
    ("cat wal -n 2 --from 1", TAIL),
    ("cat wal -n -1", ""),
    ("cat wal 16", "lies inside the record at lsn 15"),
    ("cat book no", "no file, and no range"),
    ("cat book wal --follow", "follows one log, not 2"),
    (f"cat book {2**64}", "beyond 2**64-1"),
    ("cat book --payload json", "needs --json"),
    ("cat book --base events", "holds a book, --base is for ledgers"),
    ("cat ledger 0:1 -f", "--follow of a ledger takes no range"),
    ("cat nostr --follow", "a reader sees"),
    ("tail wal wal -f", "tail: --follow follows one log, not 2"),
    ("tail wal --timeout 1", "tail: --timeout needs --follow"),
    ("tail wal --payload json", "tail: --payload needs --json"),
    ("tail nostr -f", "ask again, as by 'deedbook query STORE"),
    ("info nostr --base x", "--base is for ledgers"),
    ("info ledger --base \udcff", "\\xff is not UTF-8"),
    ("info book --segment-bytes 512", "--segment-bytes is for write-ahead logs"),
    ("retain ledger --from 0", LOGS_ONLY),
    ("retain ledger --consumed", LOGS_ONLY),
    ("consumers ledger", LOGS_ONLY),
    ("retain nostr --consumed", "this is for write-ahead logs and piers"),
    ("retain book --to 0", "holds a book"),
    ("retain book --consumed", "this is for write-ahead logs, piers and Nostr event stores"),
    ("consumers book", "holds a book"),
    ("retain wal", "give --max-bytes"),
    ("retain wal --max-age 7y", "is not an age"),
    ("retain wal --from 0 --to 9", "--from and --to each go alone"),
    ("retain wal --max-bytes 9223372036854775807g", ""),
    ("retain wal --max-age 9223372036854775807d", ""),
    (f"retain wal --max-age {LONG}", ""),
    (f"retain wal --from {LONG}", ""),
    (f"consumers wal --set c {LONG}", ""),
    ("consumers wal --set c 16", "lies inside"),
    ("consumers wal --set c x", "neither an LSN"),
    ("consumers wal --remove none", "no consumer 'none'"),
    ("consumers pier --set c x", "neither an event nor"),
    ("append nostr", "'deedbook import' stores events in it"),
    ("append wal --resume", "--resume is for books"),
    ("append wal --epoch 1", "for books"),
    ("append wal --format book", "holds a write-ahead log"),
    ("append wal --layout slots", "--layout is for books"),
    ("append book --format wal", "holds a book"),
    ("append book --single-file", "(--format wal)"),
    ("append book --layout slots", "layout slots asked for, but the log has packed"),
    ("append book book/book.log --no-validate", ""),
    ("append new gone", "gone"),
    ("append new empty", "empty"),
    ("append new --format ledger --drop-oldest", "needs --max-bytes"),
    ("append new --drop-oldest", "is for ledgers"),
    ("append /proc/none/book", ""),
    ("append no/such/parent", ""),
    ("convert wal new --layout packed", "only books have layouts"),
    ("convert book slots --layout packed", "exist"),
    ("query nostr oops", "filter: "),
    ("compact nostr --ratio 2", "is not a share"),
    ("import new gone", "gone: No such file"),
    ("import new empty", "empty: is a directory, not a file of lines"),
    ("send no http://x/", "no ledger there"),
    ("send ledger http://x/ --header oops", "NAME: VALUE"),
    ("report empty -o page.html", "no log there"),
    ("report book", "-o FILE"),
    ("report book -o book/book.log", "lies in the log"),
    ("report book -o no/page.html", "cannot write"),
    ("stats empty", "no log there"),
    ("metrics wal wal", "is named twice"),
    ("metrics wal --listen x", "is not [HOST:]PORT"),
    ("metrics wal --listen 0 --json", "goes without --json"),
    ("metrics wal -o wal/x", "lies in the log"),
    *((f"{words} no", "No such file") for words in ("stats", "compact", "verify", "info")),
    *((f"{words} no", "No such file") for words in ("export", "repair --index")),
    ("export no -o x.csv", "No such file"),
    ("report no -o page.html", "No such file"),
    ("query no {}", "No such file"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = make_logs(tmp_path_factory.mktemp("logs"), PAYLOADS)
    append_to("book", home / "slots", PAYLOADS, layout="slots")
    (home / "empty").mkdir()
    return home


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=lambda one: one[:60])
def test_impossible_commands_print_one_line_and_change_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    monkeypatch.chdir(home)
    before, names = snapshot(home), os.listdir(home)
    done = deedbook(*words.split(), stdin=b'{"n":1}\n')
    told = complaint(done, 2)
    assert said in told and "internal error" not in told and len(told) < 1000
    assert done.stdout == b"" or "--json" in words
    assert snapshot(home) == before and sorted(os.listdir(home)) == sorted(names)
