"""The command line for people: completion, the manual page, colour and progress."""

import argparse
import importlib
import os
import re
import select
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deedbook import Book
from deedbook._cli import parser
from deedbook._cli.man import manual, markdown
from places import ROOT

pty = pytest.importorskip("pty", reason="terminals here are POSIX")
fcntl, termios = importlib.import_module("fcntl"), importlib.import_module("termios")

COMMAND = [sys.executable, "-m", "deedbook"]
HIDE = (
    "import sys\n"
    "for name in ('rich', 'shtab'): sys.modules[name] = None\n"
    "from deedbook._cli import main\n"
    "sys.exit(main(sys.argv[1:]))\n"
)
"""The command without the extra ``cli``."""
PLAIN = [sys.executable, "-c", HIDE]
SLOW = (
    "import sys, time\n"
    "from deedbook._cli.terminal.progress import Progress\n"
    "with Progress('verify log', 4 << 20) as progress:\n"
    "    for done in range(5):\n"
    "        progress.update(done << 20)\n"
    "        time.sleep(0.15)\n"
)


def on_terminal(command: list[str], **environment: str) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    for name in ("NO_COLOR", "FORCE_COLOR"):
        if name not in environment:
            env.pop(name, None)
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown, until = b"", time.monotonic() + 60
        while time.monotonic() < until and select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            shown += piece
        process.wait(60)
    os.close(ours)
    return shown.decode()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    with Book.create(tmp_path / "book") as log:
        log.append_many(b'{"n":%d}' % number for number in range(100))
    return tmp_path / "book"


@pytest.fixture(scope="module")
def bash_script() -> bytes:
    pytest.importorskip("shtab")
    return subprocess.run([*COMMAND, "completion", "bash"], capture_output=True, check=True).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["deedbook", "ver"], "verify"),
        (["deedbook", "cat", "--js"], "--json"),
        (["deedbook", "append", "--format", "w"], "wal"),
        (["deedbook", "verify", "some-l"], "some-log"),
        (["deedbook", "spark", "ver"], "verify"),
        (["deedbook", "import", "some-l"], "some-log"),
        (["deedbook", "demo", "--input", "some-l"], "some-log"),
    ],
)
def test_bash_completes(
    words: list[str], completed: str, bash_script: bytes, tmp_path: Path
) -> None:
    (tmp_path / "some-log").mkdir()
    (tmp_path / "script").write_bytes(bash_script)
    listed = " ".join(f"'{word}'" for word in words)
    ask = (
        "source ./script\n"
        "function=$(complete -p deedbook | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; COMP_LINE='{' '.join(words)}'\n"
        f"$function deedbook '{words[-1]}' '{words[-2]}'\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    answer = subprocess.run(
        ["bash", "--norc", "-c", ask], capture_output=True, text=True, cwd=tmp_path
    )
    assert completed in [word.strip() for word in answer.stdout.splitlines()], answer


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is missing")
def test_zsh_takes_its_script() -> None:
    pytest.importorskip("shtab")
    script = subprocess.run([*COMMAND, "completion", "zsh"], capture_output=True, check=True)
    subprocess.run(["zsh", "-n"], input=script.stdout, check=True)


def leaves(of: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    groups = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    below = [leaf for group in groups for one in group.choices.values() for leaf in leaves(one)]
    return below if groups else [of]


def test_the_manual_page_has_every_command_and_option() -> None:
    whole = parser.whole()
    page = manual(whole, parser.EXIT_CODES).replace("\\-", "-")
    commands = leaves(whole)
    assert len(commands) > 30
    for command in commands:
        section = page.split(f".SS {command.prog}\n")[1].split("\n.S")[0]
        for action in command._actions:
            if action.help == argparse.SUPPRESS:
                continue
            for option in {*action.option_strings} - {"-h", "--help"}:
                assert option in section, (command.prog, option)
        example = next((one for one in (command.epilog or "").splitlines() if "  " in one), "")
        assert example.strip() in section
    assert re.search(r"\.SH EXIT STATUS\n(.*\n)+ *0 +fine", page)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing")
def test_groff_has_no_complaint_about_the_manual_page() -> None:
    page = subprocess.run([*PLAIN, "completion", "man"], capture_output=True, check=True).stdout
    done = subprocess.run(["groff", "-man", "-ww", "-z"], input=page, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_verdicts_have_colours_on_a_terminal_only(book: Path) -> None:
    pytest.importorskip("rich")
    green, red = "\x1b[32m", "\x1b[31m"
    assert f"{green}{book}: ok" in on_terminal([*COMMAND, "verify", "-q", str(book)])
    assert "\x1b[" not in on_terminal([*COMMAND, "verify", "-q", "--json", str(book)])
    assert "\x1b[" not in on_terminal([*COMMAND, "verify", "-q", str(book)], NO_COLOR="1")
    assert "\x1b[" not in on_terminal([*COMMAND, "verify", "-q", str(book)], TERM="dumb")
    piped = subprocess.run([*COMMAND, "verify", "-q", book], capture_output=True, check=True)
    plain = subprocess.run([*PLAIN, "verify", "-q", book], capture_output=True, check=True)
    assert piped.stdout == plain.stdout and b"\x1b" not in piped.stdout
    forced = {**os.environ, "FORCE_COLOR": "1"}
    shown = subprocess.run([*COMMAND, "verify", "-q", book], capture_output=True, env=forced)
    assert green.encode() in shown.stdout
    log = book / "book.log"
    log.write_bytes(log.read_bytes()[:-40])
    assert red in on_terminal([*COMMAND, "verify", "-q", str(book)])
    assert f"{red}damage" in on_terminal([*COMMAND, "info", str(book)])
    shutil.rmtree(book / ".deedbook")  # now no file names the acknowledged records
    shown = on_terminal([*COMMAND, "verify", "-q", str(book)])
    assert f"\x1b[33m{book}: torn" in shown and red not in shown


def test_without_rich_there_is_no_colour(book: Path) -> None:
    assert "\x1b[" not in on_terminal([*PLAIN, "verify", "-q", str(book)])


def test_progress_bar_shows_percentage_and_disappears() -> None:
    shown = on_terminal([sys.executable, "-c", SLOW])
    assert "verify log" in shown and "50%" in shown and "2.0 MiB of 4.0 MiB" in shown
    assert re.search(r"\d+ s left", shown)
    assert "####" in shown
    assert shown.rstrip("\r\n").endswith("\x1b[K")


EAGER = (
    "import sys\nfrom deedbook._cli import main\nfrom deedbook._cli.terminal import progress\n"
    "progress.REDRAW_SECONDS = 0\nsys.exit(main(sys.argv[1:]))\n"
)
"""The command with a bar that is redrawn at each step."""


def test_quiet_draws_no_bar_on_a_terminal(book: Path) -> None:
    verify = [sys.executable, "-c", EAGER, "verify", str(book)]
    assert f"verify {book}" in on_terminal(verify)
    assert f"verify {book}" not in on_terminal([*verify, "--quiet"])


def test_a_pipe_has_no_progress() -> None:
    done = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, check=True)
    assert done.stderr == b""


def test_commands_page_matches_the_parser() -> None:
    page = ROOT / "docs" / "commands.md"
    if not page.exists():
        pytest.skip("docs is not in this checkout")
    made = markdown(parser.whole(), parser.EXIT_CODES)
    assert page.read_text(encoding="utf-8") == made, "run scripts/commands_page.py"
