"""`close()` gives back all files at once."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, ClosedError, EventStore, Ledger, Pier, Wal
from rhymes import record
from this_process import held

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs Linux")

PAYLOAD = bytes(3000)


OPEN: dict[str, Callable[..., Any]] = {
    "book": Book.open,
    "wal": functools.partial(Wal.open, segment_bytes=65536),
    "single": functools.partial(Wal.open, single_file=True),
    "pier": Pier.open,
}


@pytest.mark.parametrize("mode", ["r", "a"])
@pytest.mark.parametrize("kind", OPEN)
def test_closed_log_releases_files_despite_live_iterators(
    kind: str, mode: str, tmp_path: Path
) -> None:
    with OPEN[kind](tmp_path / "log", "a") as log:
        for _ in range(2):
            log.append_many([PAYLOAD] * 250)
            if kind == "pier":
                log.roll()
    log = OPEN[kind](tmp_path / "log", mode)
    if mode == "a":
        log.append(PAYLOAD)
        log.sync()
    walks: list[Iterator[Any]] = [iter(log), reversed(log)]
    for walk in walks:
        next(walk)
    follower = iter(()) if kind == "pier" else log.follow()
    next(follower, None)
    assert held(tmp_path)
    log.close()
    assert held(tmp_path) == []
    for walk in walks:
        with pytest.raises(ClosedError):
            for _ in walk:
                pass
    # A follower ends with its log.
    assert list(follower) == []
    assert held(tmp_path) == []


@pytest.mark.parametrize("kind", ["book", "wal", "single"])
def test_iteration_keeps_its_unclosed_log_open(kind: str, tmp_path: Path) -> None:
    with OPEN[kind](tmp_path / "log", "a") as log:
        log.append_many([PAYLOAD] * 500)
    assert sum(1 for _ in iter(OPEN[kind](tmp_path / "log", "r"))) == 500


@pytest.mark.parametrize("mode", ["r", "a"])
@pytest.mark.parametrize("owner", [EventStore, Ledger])
def test_a_closed_store_or_ledger_holds_nothing(owner: Any, mode: str, tmp_path: Path) -> None:
    with owner.open(tmp_path / "log", "a") as log:
        log.append_many(record(owner, number) for number in range(20))
    log = owner.open(tmp_path / "log", mode)
    assert len(list(log)) == 20
    log.close()
    assert held(tmp_path) == []
