"""Progress of long calls: the numbers rise to the end, and an exception ends the call."""

import os
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book
from logs import make_logs, snapshot
from rhymes import CLASSES

pytestmark = pytest.mark.promise("panic")

WORKS: dict[str, Any] = {
    "verify": lambda owner, log, new, tell: owner.verify(log, progress=tell),
    "salvage": lambda owner, log, new, tell: owner.salvage(log, new, progress=tell),
    "backup": lambda owner, log, new, tell: deedbook.backup(log, new, progress=tell),
}
NAMES = {"EventStore": "nostr"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of each format, most of them with 20 MB; the calls leave them unchanged."""
    return make_logs(tmp_path_factory.mktemp("logs"), [bytes(1 << 20)] * 20)


@pytest.mark.parametrize("owner", CLASSES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("work", WORKS)
def test_progress_rises_to_the_end_or_raises(
    home: Path, tmp_path: Path, work: str, owner: Any
) -> None:
    log, call = home / NAMES.get(owner.__name__, owner.__name__.lower()), WORKS[work]
    before = snapshot(log)
    with pytest.raises(TypeError, match="not callable"):
        call(owner, log, tmp_path / "wrong", 5)
    for raised in (LookupError("enough"), KeyboardInterrupt(), SystemExit(3)):

        def stop(*_: int, error: BaseException = raised) -> None:
            raise error

        with pytest.raises(type(raised)) as caught:
            call(owner, log, tmp_path / type(raised).__name__, stop)
        assert caught.value is raised
    seen: list[tuple[int, ...]] = []
    call(owner, log, tmp_path / "new", lambda *numbers: seen.append(numbers))
    assert seen and seen == sorted(seen)
    if work != "backup":
        ((_, total),) = {(0, total) for _, total in seen}
        assert seen[-1] == (total, total)
    if owner is Book:
        size = (log / "book.log").stat().st_size - 16  # the header is no work
        assert len(seen) > 3 and seen[-1][-1] >= size
    assert snapshot(log) == before


def test_progress_may_use_the_book_that_is_checked(path: Path) -> None:
    with Book.create(path, durability="none") as book:
        book.append_many([bytes(1 << 20)] * 20)
        Book.verify(path, progress=lambda *_: book.append(b"meanwhile"))
        assert book.last > 22


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_verify_without_a_progress_function(home: Path, run_child: Any) -> None:
    code = """
import collections, itertools, signal, sys, deedbook
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:  # without bytecode in the loop, nobody but the check itself looks for signals
    collections.deque(map(deedbook.Book.verify, itertools.repeat(sys.argv[1])), maxlen=0)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run_child(code, home / "book").stdout == "interrupted\n"
