"""The GIL is free while the package works, and a build without one stays without."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deedbook import Book
from test_threads import quick_switches

__all__ = ["quick_switches"]  # the fixture, which every test here takes


def counts_during(work: Callable[[], object]) -> tuple[int, float]:
    """How far another thread counts while `work` runs, in rounds of 10 us and more."""
    rounds, stop = 0, threading.Event()

    def count() -> None:
        nonlocal rounds
        while not stop.is_set():
            rounds += 1
            time.sleep(1e-5)

    thread = threading.Thread(target=count)
    thread.start()
    while not rounds:
        pass
    before, begun = rounds, time.perf_counter()
    work()
    took, during = time.perf_counter() - begun, rounds - before
    stop.set()
    thread.join()
    return during, took


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gil") / "log"
    with Book.create(path, durability="none") as book:
        book.append_many([bytes(1 << 20)] * 150)
    return path


@pytest.mark.parametrize("what", ["verify", "salvage", "append", "append_many", "sync", "read"])
def test_other_threads_run_meanwhile(large: Path, path: Path, what: str) -> None:
    # Where nothing is to be synced, the disk need not take what was written.
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
def test_the_import_leaves_a_free_threaded_build_free_threaded() -> None:
    built_without = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    if os.environ.get("PYTHON_GIL") == "1" or not built_without:
        pytest.skip("not a free-threaded build")
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined]
