"""Looking and mending: recovery reports, verify, repair, salvage, progress."""

import os
from pathlib import Path

import pytest

from deedbook import Book
from logs import snapshot

pytestmark = pytest.mark.promise("panic")


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
