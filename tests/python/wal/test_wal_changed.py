"""Changes of an open log, or of its surroundings."""

import subprocess
import sys
from pathlib import Path

import pytest

from deedbook import Book, Wal
from shell import refused


def fill(path: Path, records: int = 100) -> tuple[Wal, list[int]]:
    wal = Wal.create(path, segment_bytes=4096)
    lsns = [wal.append(b"%05d" % i * 200) for i in range(records)]
    wal.sync()
    return wal, lsns


def test_open_log_ignores_a_changed_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "b")
    Wal.create("log", segment_bytes=4096).close()
    monkeypatch.chdir(tmp_path / "a")
    with Wal.create("log", segment_bytes=4096) as wal, Book.create("book") as book:
        monkeypatch.chdir(tmp_path / "b")
        first = wal.commit(b"x" * 1000)
        for _ in range(20):
            last = wal.commit(b"x" * 1000)
        wal.set_consumer("c", last)
        wal.truncate_before(last)
        book.append(b"deed")
        book.save_meta(who=1, fake=False, life=1)
    assert first == 0
    monkeypatch.chdir(tmp_path)
    assert Wal.verify("a/log").records == 1
    assert Wal.verify("b/log").records == 0
    assert Book.verify("a/book").records == 1


@pytest.mark.parametrize("last", ["sync", "close", "truncate_before"])
def test_slow_sync_handler_may_use_the_log(tmp_path: Path, last: str) -> None:
    program = """
import logging, sys
from deedbook import Wal

wal = Wal.create(sys.argv[1], slow_sync=0.0)

class Handler(logging.Handler):
    told = 0

    def emit(self, record):
        self.told += 1
        if self.told == 1:
            lsn = wal.commit(b"from the handler")
            getattr(wal, sys.argv[2])(*([lsn] if "truncate" in sys.argv[2] else []))

logging.getLogger("deedbook").addHandler(Handler())
wal.commit(b"one")
wal.close()
"""
    path = str(tmp_path / "log")
    subprocess.run([sys.executable, "-c", program, path, last], check=True, timeout=30)
    assert Wal.verify(path).records == (1 if last == "truncate_before" else 2)


@pytest.mark.skipif(sys.platform == "win32", reason="no POLLERR")
def test_following_ends_when_the_reader_is_gone(tmp_path: Path) -> None:
    """As with `tail -f`, when a reader has read enough and leaves."""
    wal, _ = fill(tmp_path / "log", 3)
    with wal:
        command = [sys.executable, "-m", "deedbook", "cat", str(tmp_path / "log"), "--follow"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            child.stdout.close()
            assert child.wait(30) == 141


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("retain", ["--max-bytes", "9223372036854775807g"]),
        ("retain", ["--max-age", "9223372036854775807d"]),
        ("retain", ["--max-age", "9" * 5000]),
        ("retain", ["--from", "9" * 5000]),
        ("consumers", ["--set", "c", "9" * 5000]),
    ],
)
def test_no_number_is_too_long_for_an_answer(
    tmp_path: Path, command: str, words: list[str]
) -> None:
    fill(tmp_path / "log", 3)[0].close()
    said = refused(command, tmp_path / "log", *words)
    assert "internal error" not in said and len(said) < 1000
