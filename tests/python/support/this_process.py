"""The state of this process: its open files, and its threads during a call."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path


def held(below: Path) -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    maps = Path("/proc/self/maps").read_text().splitlines()
    found += [line.split(maxsplit=5)[5] for line in maps if len(line.split(maxsplit=5)) == 6]
    return [path for path in found if path.startswith(str(below))]


def counts_during(work: Callable[[], object]) -> tuple[int, float]:
    """Rounds of another thread while `work` runs, each of 10 us or more."""
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
