"""The words of the shell: old ones name the new ones, mistyped ones the nearest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deedbook._cli import parser
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
