"""Reading: by number, slices, ranges, iterators both ways, refreshing."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deedbook import Book, ClosedError, Deed, InvalidArgumentError, OutOfRangeError

JAMS = [b"one", b"two", b"three", b"four", b"five"]


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    with Book.create(path, epoch=10) as book:
        book.append_many(JAMS)
        yield book


def events(deeds: object) -> list[int | None]:
    return [deed.event for deed in deeds]  # type: ignore[attr-defined]


def test_a_deed_is_read_by_its_number(book: Book) -> None:
    assert book.read(11) == Deed(11, 0, b"one")
    assert book[15] == book[-1] == Deed(15, 0, b"five")
    assert book[-5].jam == b"one"
    numpy = pytest.importorskip("numpy")
    assert book[numpy.int64(12)] == book[12] == book.read(numpy.uint8(12))


@pytest.mark.parametrize("event", [0, 10, 16, -6, -11, -12, -100, 2**63, 2**64, 2**100, -(2**100)])
def test_missing_event_number_raises_index_error(book: Book, event: int) -> None:
    for read in (book.read, book.__getitem__):
        with pytest.raises(OutOfRangeError):
            read(event)
    with pytest.raises(OutOfRangeError):
        book.read(-1)


@pytest.mark.parametrize("key", ["1", 1.0, None, (1, 2)], ids=repr)
def test_other_keys_are_type_errors(book: Book, key: object) -> None:
    with pytest.raises(TypeError):
        book[key]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (slice(None), [11, 12, 13, 14, 15]),
        (slice(12, 14), [12, 13]),
        (slice(-3, -1), [13, 14]),
        (slice(0, 12), [11]),
        (slice(14, 2**64), [14, 15]),
        (slice(-(2**80), 2**80), [11, 12, 13, 14, 15]),
        (slice(14, 12), []),
        (slice(16, 20), []),
        (slice(0, 0), []),
        (slice(None, None, 1), [11, 12, 13, 14, 15]),
    ],
    ids=str,
)
def test_slices_go_by_event_number_and_are_clipped(
    book: Book, key: slice, wanted: list[int]
) -> None:
    deeds = book[key]
    assert events(deeds) == wanted
    assert events(reversed(deeds)) == wanted[::-1]
    assert [*deeds.payloads()] == [JAMS[event - 11] for event in wanted]
    with pytest.raises(InvalidArgumentError, match="step"):
        book[key.start : key.stop : 2]
    assert len(deeds) == len(wanted) == deeds.stop - deeds.start
    assert 11 <= deeds.start <= deeds.stop <= 16


def test_range_repeats_iteration_and_does_not_grow(book: Book) -> None:
    deeds = book[14:]
    assert events(deeds) == events(deeds) == [14, 15]
    book.append(b"six")
    assert events(deeds) == [14, 15]
    assert events(Book.open(book.path)[14:15]) == [14], "a range keeps its book"
    assert repr(deeds) == "DeedRange(14, 16)"


@pytest.mark.parametrize("start", [None, 0, 11, 13, 15, 16, 2**64 - 1])
@pytest.mark.parametrize("stop", [None, 0, 11, 13, 16, 17, 2**64 - 1])
def test_iter_gives_start_to_stop_both_ways(
    book: Book, start: int | None, stop: int | None
) -> None:
    wanted = [n for n in range(11, 16) if (start or 0) <= n < (2**64 if stop is None else stop)]
    assert events(book.iter(start, stop)) == wanted
    assert events(book.iter(start, stop, reverse=True)) == wanted[::-1]
    assert [*book.payloads(start, stop)] == [JAMS[n - 11] for n in wanted]


def test_an_iterator_is_a_snapshot(book: Book) -> None:
    deeds, back = iter(book), reversed(book)
    book.append_many([b"six"] * 1000)
    assert len(list(deeds)) == len(list(back)) == 5


def test_a_finished_iterator_stays_finished(book: Book) -> None:
    for deeds in (iter(book), reversed(book), book.payloads()):
        assert len(list(deeds)) == 5
        assert next(deeds, "end") == next(deeds, "end") == "end"


@pytest.mark.promise("reader-beside")
def test_a_follower_that_ended_may_go_on(path: Path) -> None:
    with Book.create(path) as book:
        deeds = book.follow(timeout=0)
        assert list(deeds) == []
        book.append(b"a")
        assert [deed.event for deed in deeds] == [1]


@pytest.mark.promise("reader-beside")
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
