"""Large logs: the time of opening, and the memory of reading."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import repeat
from pathlib import Path

from clock import Figures, Watch, human, say
from peers import CHILD
from stores import OURS

FRAMING = 24
"""Bytes of a record in addition to its payload."""
MIB = 1 << 20


def clean(events: int) -> str:
    """Name of the measurement of opening with the sidecar."""
    return f"open {human(events)} events, clean"


def writer(events: int) -> str:
    """Name of the measurement of opening for appending with the sidecar."""
    return f"open {human(events)} events for appending, clean"


def bare(events: int) -> str:
    """Name of the measurement of opening without the sidecar."""
    return f"open {human(events)} events without the sidecar"


def bare_writer(events: int) -> str:
    """Name of the measurement of opening for appending without the sidecar."""
    return f"open {human(events)} events for appending without the sidecar"


def memory(what: str) -> str:
    """Name of a measurement of memory."""
    return f"memory to {what}"


def fill(path: Path, events: int, size: int) -> None:
    """A closed log of equal events."""
    from deedbook import Book

    say(f"  writing {human(events)} events, {human(events * (size + FRAMING))}B")
    with Book.create(path, durability="manual") as book:
        book.append_many(repeat(bytes(range(256))[:size], events))


def open_large(figures: Figures, place: Path, events: int, size: int, repetitions: int) -> None:
    """Open a log of many small events with its sidecar, then without."""
    from deedbook import Book

    path = place / "large"
    say(f"opening {human(events)} events of {size} bytes")
    fill(path, events, size)
    try:
        for _ in range(repetitions):
            watch = Watch()
            book = Book.open(path)
            last = book.last
            figures.span(clean(events), OURS, watch)
            assert last == events and book.recovery.source == "mark"
            book.close()
            watch = Watch()
            book = Book.open(path, "a")
            figures.span(writer(events), OURS, watch)
            book.close()
        for _ in range(repetitions):
            for measure, mode in ((bare(events), "r"), (bare_writer(events), "a")):
                shutil.rmtree(path / ".deedbook", ignore_errors=True)
                watch = Watch()
                book = Book.open(path, mode)  # type: ignore[arg-type]
                figures.rate(measure, OURS, book.last, watch)
                assert book.recovery.source == "scan" and book.last == events
                book.close()
    finally:
        shutil.rmtree(path)


def measure_memory(figures: Figures, place: Path, size: int, total: int) -> None:
    """Peak memory above the interpreter's while reading a large log."""
    path = place / "large"
    say(f"memory while reading {total // MIB} MiB")
    fill(path, total // (size + FRAMING), size)
    try:
        for what in ("iterate", "deeds", "arrow", "verify"):
            command = [sys.executable, str(CHILD), "memory", what, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                figures.fail(memory(what), OURS, RuntimeError(reason))
                continue
            figures.value(memory(what), OURS, int(done.stdout) / MIB, "MiB")
    finally:
        shutil.rmtree(path)


def measure_floors(figures: Figures, place: Path, frame: int, count: int, records: int) -> None:
    """The floor of the machine: a copy; a write and an fdatasync each, growing and preallocated."""
    blob = b"\xa5" * (frame * records)
    watch = Watch()
    copy = bytearray(blob)
    figures.rate(COPY, "bytearray(bytes)", len(copy) // frame, watch)
    del blob, copy
    data = b"\xa5" * frame
    for name, reserve in (("file growing", False), ("space reserved ahead", True)):
        path = place / "floor"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if reserve:
                os.posix_fallocate(fd, 0, frame * count)
                os.fsync(fd)
            watch = Watch()
            for i in range(count):
                os.pwrite(fd, data, i * frame)
                os.fdatasync(fd)
            figures.rate(FLOOR, name, count, watch)
        finally:
            os.close(fd)
            path.unlink()


COPY = "floor: records copied into new memory, as a table needs"
FLOOR = "floor: os.pwrite and os.fdatasync each"
