"""Following a log while it is written, by this process and by others."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deedbook import Book, ClosedError

pytestmark = pytest.mark.promise("reader-beside")

WRITER = """
import sys, time, deedbook
with deedbook.Book.open(sys.argv[1], "a", durability="manual") as book:
    for number in range(int(sys.argv[2])):
        book.append(b"%d" % number)
        if number % 100 == 0:
            time.sleep(0.001)
"""


def test_deeds_of_another_process_are_followed_as_they_come(path: Path) -> None:
    Book.create(path).close()
    with Book.open(path) as reader:
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path), "5000"]) as writer:
            found = []
            for deed in reader.follow(timeout=20):
                found.append(deed.jam)
                if len(found) == 5000:
                    break
        assert writer.returncode == 0
    assert found == [b"%d" % number for number in range(5000)]


def test_following_ends_when_nothing_came_for_the_timeout(path: Path) -> None:
    with Book.create(path) as book:
        book.append_many([b"a", b"b"])
        begun = time.monotonic()
        assert [deed.jam for deed in book.follow(timeout=0.2)] == [b"a", b"b"]
        assert [deed.jam for deed in book.follow(2, timeout=0)] == [b"b"]
        assert 0.2 <= time.monotonic() - begun < 5
        assert [deed.jam for deed in book.follow(timeout=0)] == [b"a", b"b"]


def test_a_follower_that_ended_may_go_on(path: Path) -> None:
    with Book.create(path) as book:
        deeds = book.follow(timeout=0)
        assert list(deeds) == []
        book.append(b"a")
        assert [deed.event for deed in deeds] == [1]


def test_closing_the_book_ends_following(path: Path) -> None:
    """A follower in a thread raised `ClosedError`, and one of asyncio just ended."""
    book = Book.create(path)
    book.append(b"one")
    closing = threading.Timer(0.1, book.close)
    closing.start()
    assert [deed.jam for deed in book.follow()] == [b"one"]
    closing.join()
    with pytest.raises(ClosedError):
        book.follow()


def test_a_follower_shared_by_threads_gives_every_deed_once(path: Path) -> None:
    with Book.create(path, durability="manual") as book:
        deeds = book.follow(timeout=0.5)
        found: list[int | None] = []
        threads = [
            threading.Thread(target=lambda: found.extend(deed.event for deed in deeds))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for number in range(2000):
            book.append(b"%d" % number)
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(1, 2001))  # type: ignore[type-var]


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_control_c_ends_the_waiting(path: Path, run_child) -> None:
    code = """
import os, signal, sys, threading, deedbook
book = deedbook.Book.create(sys.argv[1])
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    next(book.follow())
except KeyboardInterrupt:
    book.append(b"usable")
    print("interrupted", len(book))
"""
    assert run_child(code, path).stdout == "interrupted 1\n"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_signal_handler_may_use_the_follower_that_waits(path: Path, run_child) -> None:
    code = """
import os, signal, sys, threading, deedbook
book = deedbook.Book.create(sys.argv[1])
deeds = book.follow(timeout=0.5)
signal.signal(signal.SIGUSR1, lambda *_: print("handler", list(deeds)))
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print("main", list(deeds))
"""
    assert run_child(code, path).stdout == "handler []\nmain []\n"
