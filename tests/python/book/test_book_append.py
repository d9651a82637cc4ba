"""Appending: bytes-like objects, mugs, iterables, batches, sizes."""

import array
import mmap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deedbook import Book, InvalidArgumentError
from logs import span


class Jam(bytes):
    """A subclass, stored and returned as plain bytes."""


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    with Book.create(path, durability="manual") as book:
        yield book


def jams(book: Book) -> list[bytes]:
    with Book.open(book.path) as reader:
        return [deed.jam for deed in reader]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (b"", b""),
        (b"bytes", b"bytes"),
        (Jam(b"deed"), b"deed"),
        (bytearray(b"array"), b"array"),
        (memoryview(b"view"), b"view"),
        (memoryview(b"0123456789")[::2], b"02468"),
        (memoryview(b"0123456789")[::-3], b"9630"),
        (memoryview(b"abcdef").cast("B", (2, 3)), b"abcdef"),
        (array.array("H", [1, 2]), b"\1\0\2\0"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_bytes_like_objects_are_stored_as_their_bytes(book: Book, given, stored) -> None:
    assert book.append(given) == 1
    assert span(book.append_many([given, given])) == (2, 4)
    assert span(book.append_many((given,), atomic=True)) == (4, 5)
    assert jams(book) == [stored] * 4
    assert type(book[1].jam) is bytes


def test_a_memory_map_is_stored(book: Book) -> None:
    with mmap.mmap(-1, 4096) as pages:
        pages[:4] = b"deed"
        book.append(pages)
    assert jams(book) == [b"deed" + bytes(4092)]
    with pytest.raises(ValueError, match="closed"):
        book.append(pages)


def test_numpy_arrays_are_stored_by_their_memory(book: Book) -> None:
    numpy = pytest.importorskip("numpy")
    matrix = numpy.arange(6, dtype="<u2").reshape(2, 3)
    book.append(matrix)
    book.append(matrix.T)
    book.append_many(matrix)
    book.append_many(numpy.array([b"one", b"three"]))
    rows = [matrix[0].tobytes(), matrix[1].tobytes()]
    assert jams(book) == [matrix.tobytes(), matrix.T.tobytes(), *rows, b"one", b"three"]


@pytest.mark.parametrize("wrong", ["text", 5, None, 1.5, [b"list"], object()], ids=repr)
def test_text_and_number_payloads_are_refused(book: Book, wrong: object) -> None:
    for append in (
        book.append,
        book.commit,
        lambda jam: book.append_many([jam]),
        lambda jam: book.append_many([b"fine", jam], atomic=True),
    ):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            append(wrong)  # type: ignore[operator]
    assert len(book) == 0


def test_single_payload_instead_of_an_iterable_is_refused(book: Book) -> None:
    for wrong in (b"bytes", bytearray(b"bytes"), "text", 5):
        for append in (book.append_many, partial(book.append_many, atomic=True)):
            with pytest.raises(TypeError):
                append(wrong)  # type: ignore[operator]
    assert len(book) == 0


@pytest.mark.parametrize("mugs", [[1], [1, 2, 3]], ids=["fewer", "more"])
def test_batch_with_a_different_mug_count_is_refused(book: Book, mugs: list[int]) -> None:
    with pytest.raises(InvalidArgumentError, match="more"):
        book.append_many([b"a", b"b"], mugs, atomic=True)
    assert len(book) == 0


def test_every_iterable_is_appended_and_its_range_returned(book: Book) -> None:
    book.append(b"first")
    assert span(book.append_many([b"l"])) == (2, 3)
    assert span(book.append_many((b"t", b"u"))) == (3, 5)
    assert span(book.append_many({b"k": 1})) == (5, 6)
    assert span(book.append_many(jam for jam in (b"g", b"h"))) == (6, 8)
    assert span(book.append_many(iter([b"i"]))) == (8, 9)
    assert span(book.append_many([])) == (9, 9)
    assert jams(book) == [b"first", b"l", b"t", b"u", b"k", b"g", b"h", b"i"]


def test_what_came_before_an_error_is_durable(path: Path) -> None:
    with Book.create(path) as book:
        with pytest.raises(TypeError):
            book.append_many([b"a", None])  # type: ignore[list-item]
        with pytest.raises(InvalidArgumentError, match="1 mugs, but more jams"):
            book.append_many([b"b", b"c"], [1])
        assert (jams(book), book.durable_last) == ([b"a", b"b"], 2)


def test_iterable_appending_to_its_own_book_avoids_deadlock(book: Book) -> None:
    def greedy() -> Iterator[bytes]:
        for number in range(20_000):
            if number % 5000 == 0:
                book.append(b"inner")
                book.append_many([b"inner"])
                book.sync()
            yield b"%032d" % number

    first, end = span(book.append_many(greedy()))
    found = jams(book)
    assert found.count(b"inner") == 8
    assert [jam for jam in found if jam != b"inner"] == [b"%032d" % n for n in range(20_000)]
    assert first < end <= book.last + 1 and len(found) == book.last
