"""Values: deeds and metadata. Handles and iterators cannot be pickled or copied by accident."""

import copy
import operator
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, Deed, Log, Meta
from deedbook.jobs import Split


@pytest.fixture
def book(path: Path) -> Iterator[Book]:
    with Book.create(path) as book:
        book.append_many([b"a", b"b"], [1, 2])
        yield book


def test_a_deed_is_a_value() -> None:
    deed = Deed(3, 7, b"jam")
    assert (deed.event, deed.mug, deed.jam, len(deed)) == (3, 7, b"jam", 3)
    assert deed == Deed(event=3, mug=7, jam=b"jam")
    assert hash(deed) == hash(Deed(3, 7, b"jam"))
    event, mug, jam = deed
    assert (event, mug, jam) == (3, 7, b"jam")


@pytest.mark.parametrize(
    "other",
    [Deed(4, 7, b"jam"), Deed(3, 8, b"jam"), Deed(3, 7, b""), Deed(None, 7, b"jam"), 3, None],
)
def test_deeds_that_differ_are_not_equal(other: object) -> None:
    deed = Deed(3, 7, b"jam")
    assert deed != other and not operator.eq(deed, other)
    with pytest.raises(TypeError):
        assert deed < deed  # type: ignore[operator]


def test_deed_repr_is_short_and_evaluates_back() -> None:
    for deed in (Deed(1, 2, b"j\0\"'\\\xff"), Deed(None, 0, b"")):
        assert eval(repr(deed)) == deed
    assert len(repr(Deed(1, 2, bytes(100_000)))) < 300


@pytest.mark.parametrize(
    "wrong",
    [
        *({"who": 2**128}, {"who": -1}, {"version": 2**32}, {"life": -1}),
        *({"fake": "no"}, {"fake": 0}, {"life": "3"}, {"name": 1}),
    ],
    ids=str,
)
def test_a_wrong_field_is_refused_and_changes_nothing(book: Book, wrong: dict[str, Any]) -> None:
    book.save_meta(who=5, version=1, fake=True)
    before = book.meta
    with pytest.raises((OverflowError, ValueError, TypeError)):  # by the version of Python
        book.save_meta(**{"life": 9, **wrong})
    assert book.meta == Book.open(book.path).meta == before


def test_file_handles_refuse_pickle_and_copy(book: Book) -> None:
    handles = [
        book,
        book[:],
        book.batches(),
        iter(book),
        reversed(book),
        book.payloads(),
        book.follow(),
    ]
    for handle in handles:
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"cannot pickle.*{type(handle).__name__}"):
                copied(handle)


def test_final_classes_refuse_construction_and_subclassing() -> None:
    for made in (Book, Log):
        with pytest.raises(TypeError):
            made()
    for final in (Book, Deed, Meta, Split):
        with pytest.raises(TypeError):
            type("Sub", (final,), {})
