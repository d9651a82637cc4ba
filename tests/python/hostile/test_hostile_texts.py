"""Hostile names and payloads: no command and no logger lets them control a terminal."""

import argparse
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import deedbook
from deedbook._cli import main, parser
from deedbook._cli.terminal.output import to_json
from deedbook._show.page import escaped, table
from deedbook._system.sidecar import dead_letters_of
from deedbook.http._dead import DeadLetters
from nostr_events import event
from shell import unfit

posix = pytest.mark.skipif(os.name != "posix", reason="needs such names of files")

NAME = "a\x1b]0;PWNED\x07\x1b[31mb\x9b31m\u202ec\u2066\r\n\x7f"
PAYLOAD = '{"n":"\x9b31m\u202e\u200f\x7f"}'
NO_LOG = {"demo", "completion"}
JOBS = {"spark"}
"""Jobs start a JVM. Their output goes through the same functions (see the last test)."""
WORDS: dict[str, list[str]] = {
    "cat": ["BOOK", "--payload", "json", "--json"],
    "tail": ["WAL", "--timeout", "0"],
    "export": ["BOOK", "-o", "OUT.csv"],
    "append": ["BOOK", "BAD"],
    "salvage": ["BOOK", "OUT"],
    "backup": ["BOOK", "OUT"],
    "convert": ["BOOK", "OUT", "--layout", "slots"],
    "migrate": ["BOOK", "OUT"],
    "retain": ["WAL", "--max-bytes", "1k"],
    "consumers": ["WAL", "--set", "NAME", "0"],
    "send": ["LEDGER", "http://127.0.0.1:1/", "--timeout", "0"],
    "dead-letters": ["LEDGER"],
    "import": ["STORE", "BAD"],
    "query": ["STORE", "{}"],
    "compact": ["STORE"],
    "report": ["BOOK", "WAL", "LEDGER", "STORE", "-o", "OUT.html"],
}


def commands(
    of: argparse.ArgumentParser | None = None, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    of = of or parser.whole()
    below = [one for one in of._actions if isinstance(one, argparse._SubParsersAction)]
    for action in below:
        for name, each in action.choices.items():
            yield from commands(each, (*words, name))
    name = " ".join(words)
    if not below and name not in NO_LOG and words[0] not in JOBS:
        yield name, of


def make(top: Path) -> dict[str, str]:
    top = top / NAME
    top.mkdir()
    payloads = [PAYLOAD.encode(), b"\x9b31m", b'{"type":"\x1b[31m\xc2\x9b"}']
    with deedbook.Book.create(top / "BOOK") as book:
        book.append_many([PAYLOAD.encode()] * 3)
    with deedbook.Wal.create(top / "WAL") as wal:
        wal.append_many(payloads)
        wal.sync()
    with (next((top / "WAL").glob("*.wal"))).open("ab") as file:
        file.write(b"torn")
    with deedbook.Ledger.open(top / "LEDGER", "a") as ledger:
        ledger.append_many(payloads)
    letters = DeadLetters(dead_letters_of(top / "LEDGER", "events"))
    for letter in payloads:
        letters.write(NAME, [(0, letter)], reason=NAME, status=None, attempts=1, now=0, url=NAME)
    with deedbook.EventStore.open(top / "STORE", "a") as store:
        store.append_many([event(number) for number in range(3)])
    (top / "BAD").write_bytes(b"\x1b[31m\xc2\x9b\n{\n")
    return {name: str(top / name) for name in ("BOOK", "WAL", "LEDGER", "STORE", "BAD", "OUT")}


@posix
@pytest.mark.parametrize("form", ["", "--json"])
def test_commands_escape_hostile_names_and_payloads(
    form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    seen = 0
    for number, (name, of) in enumerate(commands()):
        (tmp_path / str(number)).mkdir()
        places = make(tmp_path / str(number))
        first = "BOOK"
        words = [*name.split(), *WORDS.get(name, [first])]
        argv = words
        for word, path in places.items():
            argv = [re.sub(rf"\b{word}\b", lambda _, path=path: path, one) for one in argv]
        argv = [one.replace("NAME", NAME) for one in argv]
        if form and form in of._option_string_actions and form not in argv:
            argv.append(form)
        capfdbinary.readouterr()
        code = main(argv)
        out, said = capfdbinary.readouterr()
        assert code in (0, 1, 2), argv
        assert b"internal error" not in said, said
        assert not unfit(out) and not unfit(said), (argv, out, said)
        seen += b"PWNED" in out + said
    assert seen >= 18


@posix
def test_no_line_of_a_logger_steers_a_terminal(tmp_path: Path) -> None:
    """A command shows the logger's lines; Python's handler of last resort escapes nothing."""
    places = make(tmp_path)
    source = tmp_path / "lines"
    source.write_bytes(b'{"n":1}\n')
    gone = str(tmp_path / NAME / "GONE")
    for argv in (["metrics", gone], ["append", places["WAL"], str(source)]):
        run = subprocess.run(
            [sys.executable, "-m", "deedbook", *argv], capture_output=True, check=False, timeout=60
        )
        assert b"PWNED" in run.stderr and not unfit(run.stderr + run.stdout), run.stderr


@posix
def test_error_texts_and_log_lines_are_escaped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also for programs that print or log messages; `path` keeps the original text."""
    places = make(tmp_path)
    with caplog.at_level(logging.WARNING, "deedbook"):
        deedbook.Wal.open(places["WAL"], "a").close()
    assert "PWNED" in caplog.text and not unfit("".join(caplog.messages).encode())
    with pytest.raises(deedbook.Error) as raised:
        deedbook.Wal.open(places["BAD"])
    assert raised.value.path == places["BAD"] and not unfit(str(raised.value).encode())


@pytest.mark.parametrize("text", [NAME, PAYLOAD, "é☃\U0001f600", "\udc9b", ""])
def test_json_has_the_same_value(text: str) -> None:
    line = to_json({text: [text, {"a": text}]})
    assert json.loads(line) == {text: [text, {"a": text}]}
    assert not unfit(line) and line.count(b"\n") == 1


def test_a_page_turns_no_text() -> None:
    """Earlier, U+202E stayed on pages: browsers showed a file's name backwards."""
    assert not unfit(escaped(NAME).replace("\n", "").encode())
    assert not unfit(table([NAME], [[NAME]]).encode())
    assert escaped("<é&☃>") == "&lt;é&amp;☃&gt;"


def test_commands_write_by_one_way_alone() -> None:
    """`Output`, `complain`, the bar, the handler and the demo escape; no other code prints."""
    allowed = {"output.py", "progress.py", "failure.py", "first_minute.py", "__init__.py"}
    folder = Path(deedbook.__file__).parent / "_cli"
    writes = re.compile(r"\bprint\(|sys\.std(out|err)\.(write|buffer)|out\.data\(")
    found = {
        file.name: {one[0] for one in writes.finditer(file.read_text(encoding="utf-8"))}
        for file in folder.rglob("*.py")
        if file.name not in allowed
    }
    by_data = {name for name, calls in found.items() if calls}
    # Their data is JSON, escaped text, or raw output on the user's request.
    assert by_data == {"cat.py", "metrics.py", "export_events.py", "query.py", "completion.py"}
    assert all(calls <= {"out.data("} for calls in found.values())
