"""The steps of scripts/stranger.sh, with the wheel alone: python -I stranger.py CHECKOUT.

The script imports nothing from the checkout, and reads the pages as a stranger reads the site.
"""

from __future__ import annotations

import contextlib
import io
import os
import pydoc
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deedbook

PAGES = Path(sys.argv[1])
NAMES = (
    *("Book", "Book.open", "Wal.commit", "Pier.roll", "Ledger.fetch", "EventStore.query"),
    *("open", "report", "backup", "LockedError"),
)
WRITER = """
import deedbook
with deedbook.Book.open("live", "a") as book:
    while True:
        print(book.append_many(b"event %d" % n for n in range(10)).end - 1, flush=True)
"""
READER = """
from deedbook import Wal
with Wal.open("queue") as wal:
    for record in wal.iter(wal.consumers()["mailer"]):
        last = record
    wal.set_consumer("mailer", last.next_lsn)
"""


def blocks(page: str, begin: str = "", end: str = "\0") -> list[tuple[str, str]]:
    """Languages and texts of the blocks of a page, between two headings."""
    text = (PAGES / page).read_text()
    part = text[text.index(begin) :].split(end)[0]
    return re.findall(r"^```(python|sh)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


def run(found: list[tuple[str, str]]) -> str:
    """Run blocks unchanged, in one session. Returns the output of the commands."""
    names: dict[str, Any] = {"__name__": "__main__"}
    said = ""
    for language, text in found:
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "a block", "exec"), names)
            continue
        for line in text.splitlines():
            code = re.search(r"# exits with (\d+)", line)
            done = subprocess.run(line, shell=True, capture_output=True, text=True)
            assert done.returncode == (int(code[1]) if code else 0), (line, done.stderr)
            said += done.stdout + done.stderr
    return said


def command(*words: str) -> str:
    done = subprocess.run(["deedbook", *words], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def ten_lines() -> str:
    run(blocks("README.md")[:1])
    return command("verify", "log").strip()


def asyncio_service() -> str:
    """A hundred tasks that write, twenty that follow."""
    ((language, text), *_) = blocks("docs/asyncio.md", "## A service")
    assert "range(20)" in text and "range(100)" in text
    run([(language, text)])
    return command("verify", "service").strip()


def backup_of_a_live_log_and_restore() -> str:
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        try:
            for _ in range(2):
                acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
                command("backup", "live", "saved")
            assert writer.poll() is None
        finally:
            writer.send_signal(signal.SIGKILL)
    with deedbook.Book.open("saved", "a") as restored:
        last = restored.last
        assert last >= acknowledged and restored[last].jam == b"event %d" % ((last - 1) % 10)
        assert restored.append(b"goes on") == last + 1
    return f"{acknowledged} acknowledged before the copy began, {last} in it; it goes on"


def retention_by_a_consumer_elsewhere() -> str:
    options = {"segment_bytes": 20_000, "retain_consumers": True}
    with deedbook.Wal.create("queue", **options) as wal:
        wal.append_many(bytes(1000) for _ in range(200))
        wal.sync()
        wal.set_consumer("mailer", wal.head)
        subprocess.run([sys.executable, "-c", READER], check=True)
        deadline = time.monotonic() + 60
        while wal.head == 0:
            assert time.monotonic() < deadline, "the writer dropped nothing"
            wal.append_many(bytes(1000) for _ in range(30))
            wal.sync()
        return f"the writer dropped {wal.head:,} bytes that the reader had read"


def repair_by_the_walk_through() -> str:
    Path("recovery").mkdir()
    os.chdir("recovery")
    try:
        first = blocks("docs/recovery.md", "# When it says X", "\n## Verdicts")[:1]
        torn = blocks("docs/recovery.md", "### torn", "\n### corrupt")
        corrupt = blocks("docs/recovery.md", "### corrupt", "\n## What a salvage")
        said = run([*first, *torn, *corrupt])
    finally:
        os.chdir("..")
    for line in ("torn: torn,", "\ntorn: ok,", "\ndamaged: corrupt:", "\nrescued: ok,"):
        assert line in said, said
    return "torn: cut and saved; corrupt: salvaged; both verified"


def html_report() -> str:
    command("report", "live", "queue", "-o", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 4 and "<script" not in page
    assert not re.search(r"(?:src|href)=[\"']?https?:", page)
    return f"{len(page):,} characters, {page.count('<svg')} charts, nothing loaded"


def help_on_ten_names() -> str:
    lengths = []
    for name in NAMES:
        value: Any = deedbook
        for part in name.split("."):
            value = getattr(value, part)
        text = pydoc.plain(pydoc.render_doc(value))
        assert len(text) > 200 and (value.__doc__ or "").strip(), name
        lengths.append(len(text))
    return f"{len(lengths)} names, {min(lengths):,} to {max(lengths):,} characters"


STEPS: tuple[Callable[[], str], ...] = (
    ten_lines,
    asyncio_service,
    backup_of_a_live_log_and_restore,
    retention_by_a_consumer_elsewhere,
    repair_by_the_walk_through,
    html_report,
    help_on_ten_names,
)


def main() -> None:
    """Take the steps."""
    place = Path(deedbook.__file__ or "").resolve()
    assert PAGES.resolve() not in place.parents, f"{place} is not the wheel's"
    for step in STEPS:
        begun = time.monotonic()
        said = step()
        name = step.__name__.replace("_", " ")
        print(f"{name:34} ok {time.monotonic() - begun:5.1f} s  {said}", flush=True)


if __name__ == "__main__":
    main()
