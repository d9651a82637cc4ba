"""Threads: one handle for all, shared iterators, one writer, and no GIL during calls."""

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from deedbook import Book, Durability
from logs import append_to, span
from this_process import counts_during

THREADS = 8


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], object]) -> list[object]:
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [done.result(60) for done in [pool.submit(run, work) for work in works]]


@pytest.mark.parametrize(
    "durability", ["always", "manual", timedelta(milliseconds=1), Durability.bytes(500)]
)
def test_threads_append_and_iterate_at_once(path: Path, durability: str) -> None:
    each = 60 if durability == "always" else 1500

    def write(name: int) -> list[int]:
        numbers = []
        for turn in range(each):
            jam = b"%d/%d" % (name, turn)
            if turn % 3 == 0:
                numbers.append(book.append(jam, name))
            elif turn % 3 == 1:
                numbers += range(*span(book.append_many([jam], [name], atomic=True)))
            else:
                numbers.append(book.commit(jam, name) if turn % 30 == 2 else book.append(jam, name))
        return numbers

    def read() -> None:
        while len(book) < each * THREADS:
            before = len(book)
            events = [deed.event for deed in book]
            assert events == list(range(1, len(events) + 1)) and len(events) >= before
            assert sum(1 for _ in reversed(book)) >= before
            if before:
                assert book[-1].event >= before and book.read(before).event == before

    with Book.create(path, durability=durability) as book:
        writers = [lambda name=name: write(name) for name in range(THREADS)]
        *numbers, _, _ = together(*writers, read, read)
        assert sorted(n for part in numbers for n in part) == list(range(1, each * THREADS + 1))
        for name, part in enumerate(numbers):
            assert [book[n].jam for n in part] == [b"%d/%d" % (name, t) for t in range(each)]
    assert Book.verify(path).ok and Book.verify(path).records == each * THREADS


@pytest.mark.parametrize("kind", ["iter", "reversed", "payloads", "batches", "follow"])
def test_a_shared_iterator_gives_every_item_once(path: Path, kind: str) -> None:
    count = 40_000
    with Book.create(path, durability="manual") as book:
        book.append_many(b"%d" % n for n in range(count))
        shared = {
            "iter": lambda: iter(book),
            "reversed": lambda: reversed(book),
            "payloads": book.payloads,
            "batches": lambda: book.batches(batch_rows=10),
            "follow": lambda: book.follow(timeout=0),
        }[kind]()
        parts = together(*[lambda: list(shared)] * THREADS)
    items = [item for part in parts for item in part]  # type: ignore[attr-defined]
    if kind == "batches":
        assert len(items) == count / 10
    else:
        jams = items if kind == "payloads" else [deed.jam for deed in items]
        assert sorted(map(int, jams)) == list(range(count))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gil") / "log"
    append_to("book", path, [bytes(1 << 20)] * 150, durability="none")
    return path


@pytest.mark.parametrize("what", ["verify", "salvage", "append", "append_many", "sync", "read"])
def test_other_threads_run_meanwhile(large: Path, path: Path, what: str) -> None:
    # Without a sync, the disk need not store the written bytes.
    with Book.create(path, durability="manual" if what == "sync" else "none") as book:
        huge = bytes(150 << 20)
        if what in ("sync", "read"):
            book.append(huge)
        works: dict[str, Callable[[], object]] = {
            "verify": lambda: Book.verify(large),
            "salvage": lambda: Book.salvage(large, path / "copy"),
            "append": lambda: book.append(huge),
            "append_many": lambda: book.append_many([huge]),
            "sync": book.sync,
            "read": lambda: book.read(1),
        }
        during, took = counts_during(works[what])
        if took < 0.01:
            pytest.skip(f"over in {took * 1e3:.1f} ms, too quick to tell")
        assert during > 5, f"{during} rounds in {took * 1e3:.1f} ms"


@pytest.mark.skipif(not hasattr(sys, "_is_gil_enabled"), reason="needs Python 3.13")
def test_import_keeps_a_free_threaded_build_free_threaded() -> None:
    built_without = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if os.environ.get("PYTHON_GIL") == "1" or not built_without:
        pytest.skip("not a free-threaded build")
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]
