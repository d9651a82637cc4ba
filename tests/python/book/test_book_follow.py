"""Following a log while it is written, by this process and by others."""

import os
import threading
from pathlib import Path

import pytest

from deedbook import Book, ClosedError

pytestmark = pytest.mark.promise("reader-beside")


def test_a_follower_that_ended_may_go_on(path: Path) -> None:
    with Book.create(path) as book:
        deeds = book.follow(timeout=0)
        assert list(deeds) == []
        book.append(b"a")
        assert [deed.event for deed in deeds] == [1]


def test_closing_the_book_ends_following(path: Path) -> None:
    book = Book.create(path)
    book.append(b"one")
    closing = threading.Timer(0.1, book.close)
    closing.start()
    assert [deed.jam for deed in book.follow()] == [b"one"]
    closing.join()
    with pytest.raises(ClosedError):
        book.follow()


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
def test_signal_handler_may_use_a_waiting_follower(path: Path, run_child) -> None:
    code = """
import os, signal, sys, threading, deedbook
book = deedbook.Book.create(sys.argv[1])
deeds = book.follow(timeout=0.5)
signal.signal(signal.SIGUSR1, lambda *_: print("handler", list(deeds)))
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print("main", list(deeds))
"""
    assert run_child(code, path).stdout == "handler []\nmain []\n"
