"""The words of the shell: old, mistyped, and those of sizes and lengths of time."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deedbook._cli import parser
from deedbook._show import amounts
from shell import ok, outputs, refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
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
    ],
)
def test_a_wrong_word_names_the_right_one(words: str, said: str) -> None:
    assert said in refused(*words.split())


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
