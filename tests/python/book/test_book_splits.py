"""Splits: parts of a book for parallel readers, which cover it exactly once."""

from __future__ import annotations

from pathlib import Path

import pytest

from deedbook import Book, CorruptError, InvalidArgumentError, Split

pyarrow = pytest.importorskip("pyarrow")

DEEDS = 30_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events 101 to 30100, about 3 MB."""
    path = tmp_path_factory.mktemp("splits") / "log"
    with Book.create(path, epoch=100, durability="manual") as book:
        book.append_many((b"%d" % n * (n % 30) for n in range(DEEDS)), range(DEEDS))
    return path


def table(stream: object) -> pyarrow.Table:
    return pyarrow.RecordBatchReader.from_stream(stream).read_all()


def events(splits: list[Split], **options: object) -> list[int]:
    columns = [table(split.batches(columns=["event"], **options))["event"] for split in splits]
    return [event for column in columns for event in column.to_pylist()]


@pytest.mark.parametrize("split_bytes", [1, 100_000, 2**62])
def test_splits_cover_every_deed_once_and_in_order(place: Path, split_bytes: int) -> None:
    with Book.open(place) as book:
        splits = book.splits(split_bytes)
        assert events(splits) == list(range(101, 101 + DEEDS))
        assert sum(split.records for split in splits) == DEEDS
        assert (splits[0].offset, splits[-1].end) == (16, book.end)
        assert [split.end for split in splits[:-1]] == [split.offset for split in splits[1:]]
        assert len(splits) == 1 if split_bytes == 2**62 else len(splits) >= book.end // 1_100_000
        assert events(book.splits(split_bytes, 5000, 25_000)) == list(range(5000, 25_000))
        assert book.splits(split_bytes, 300, 200) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": []},
        {"columns": ["events"]},
        {"on_corrupt": "drop"},
        {"verify": "sha"},
        {"record_bytes_max": 0},
    ],
    ids=str,
)
def test_options_outside_the_domain_are_refused(place: Path, wrong: dict[str, object]) -> None:
    with Book.open(place) as book, pytest.raises(InvalidArgumentError):
        book.splits()[0].batches(**wrong)


def test_a_split_of_a_file_that_shrank_gives_what_is_there_and_says_so(make_book, packed) -> None:
    log = packed([b"one", b"two"])
    split = Split("book", make_book(log[:50]), 1, 2, 16, len(log))
    with pytest.raises(CorruptError):
        list(split.batches())
    stream = split.batches(columns=["event"], on_corrupt="skip")
    assert table(stream)["event"].to_pylist() == [1]
    assert [damage.offset for damage in stream.damages] == [43]
