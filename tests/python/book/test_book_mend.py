"""Looking and mending: recovery reports, verify, repair, salvage, progress."""

import os
from pathlib import Path

import pytest

from deedbook import AlreadyExistsError, Book, MissingError
from logs import snapshot

pytestmark = pytest.mark.promise("panic")


def test_verifying_a_missing_log_is_an_error(path: Path) -> None:
    for mend in (Book.verify, Book.repair, lambda path: Book.salvage(path, path / "new")):
        with pytest.raises(MissingError):
            mend(path)
        assert not path.exists()


@pytest.mark.parametrize("keep_numbers", [False, True])
def test_salvage_copies_what_is_intact(
    make_book, damaged, tmp_path: Path, keep_numbers: bool
) -> None:
    source, target = make_book(damaged), tmp_path / "new"
    report = Book.salvage(source, target, keep_numbers=keep_numbers)
    assert (report.records, report.renumbered) == (2, not keep_numbers)
    assert report.stubs == ([2] if keep_numbers else [])
    assert [damage.offset for damage in report.damages] == [43]
    if not keep_numbers:
        first, second = report.runs
        assert (first.source_ordinal, first.ordinal, first.records) == (1, 1, 1)
        assert (second.source_ordinal, second.ordinal, second.source_offset) == (3, 2, 70)
    stubs = [b"\x02"] if keep_numbers else []
    assert [deed.jam for deed in Book.open(target)] == [b"one", *stubs, b"three"]
    assert snapshot(source) == {"book.log": damaged}
    with pytest.raises(AlreadyExistsError):
        Book.salvage(source, target)


@pytest.fixture
def big(path: Path) -> Path:
    with Book.create(path, durability="none") as book:
        book.append_many([bytes(1 << 20)] * 20)
    return path


def test_progress_goes_up_to_the_end(big: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not callable"):
        Book.verify(big, progress=5)  # type: ignore[arg-type]
    for work in (Book.verify, lambda path, **more: Book.salvage(path, tmp_path / "new", **more)):
        seen: list[tuple[int, ...]] = []
        work(big, progress=lambda *numbers, seen=seen: seen.append(numbers))
        size = (big / "book.log").stat().st_size - 16  # the header is no work
        assert len(seen) > 3 and seen == sorted(seen)
        assert seen[-1] == (size, size) and {total for _, total in seen} == {size}


@pytest.mark.parametrize("raised", [LookupError("enough"), KeyboardInterrupt(), SystemExit(3)])
def test_what_progress_raises_ends_the_work(
    big: Path, tmp_path: Path, raised: BaseException
) -> None:
    def stop(done: int, total: int) -> None:
        raise raised

    before = snapshot(big)
    for work in (Book.verify, lambda path, **more: Book.salvage(path, tmp_path / "new", **more)):
        with pytest.raises(type(raised)) as caught:
            work(big, progress=stop)
        assert caught.value is raised
    assert snapshot(big) == before


def test_progress_may_use_the_book_that_is_checked(big: Path) -> None:
    with Book.open(big, "a") as book:
        Book.verify(big, progress=lambda *_: book.append(b"meanwhile"))
        assert book.last > 22


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_verify_without_a_progress_function(big: Path, run_child) -> None:
    code = """
import collections, itertools, signal, sys, deedbook
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:  # without bytecode in the loop, nobody but the check itself looks for signals
    collections.deque(map(deedbook.Book.verify, itertools.repeat(sys.argv[1])), maxlen=0)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run_child(code, big).stdout == "interrupted\n"
