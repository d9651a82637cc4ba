"""Time and peak memory of each process: by size, by partitions, and by the number of logs.

The events are synthetic, in the proportions of public Nostr relays; a block of events repeats. Each
case has its own session, and therefore its own peaks, and runs once, after a read of its files.
Draws spark-sizes.svg.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from clock import say
from spark_measure import (
    Row,
    Sizes,
    Spent,
    deedbook,
    has_rows,
    is_verified,
    read_all,
    session,
    warm,
)

GB = 10**9
BLOCK_EVENTS = 100_000
SIZES = (0.1, 1.0, 10.0)
"""Sizes of a book, in GB."""
PARTITIONS = (8, 64, 512)
"""Partitions of a book of 1 GB."""
LOGS = (1, 100, 10_000)
"""Numbers of logs with 0.1 GB in total."""
DISK_TIMES = 2.5
"""Required free space as a multiple of a book's size, for the exported table."""


def case(work: str, path: str, events: int, split_bytes: int | None) -> None:
    """The body of a child process: do the work once, and print seconds and peaks in MB."""
    from deedbook.spark import jobs

    spark = session(spark_driver_memory="2g")
    read_all(spark.range(1000))
    options = {} if split_bytes is None else {"splitSize": split_bytes}
    frame = deedbook(spark, path, **options)
    works: dict[str, Callable[[], object]] = {
        "read": lambda: read_all(frame),
        "verify": lambda: jobs.verify(spark, path),
        "export": lambda: jobs.export(spark, path, f"{path}.table"),
    }
    checks = {"verify": is_verified, "export": has_rows(events)}
    warm(Path(path))
    begun = time.perf_counter()
    done = works[work]()
    seconds = time.perf_counter() - begun
    if work in checks:
        checks[work](done)
    peaks = dict(_peaks(os.getpid()))
    # Not getrusage, because a process inherits the peak of its parent there.
    peaks["driver's Python"] = _peak_mb(_status(Path("/proc/self")))
    tasks = frame.rdd.getNumPartitions() if work == "read" else None
    spark.stop()
    print(json.dumps({"seconds": round(seconds, 2), "peak MB": peaks, "tasks": tasks}))


def _peaks(root: int) -> Iterator[tuple[str, int]]:
    """The highest peak of resident memory of the JVM, and of the Python workers."""
    found = {"JVM": 0, "Python worker": 0}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == root:
            continue
        try:
            status = _status(entry)
            if os.getsid(int(entry.name)) != os.getsid(root):
                continue
        except OSError:
            continue
        program = status["Name"].strip()
        if "VmHWM" in status and program.startswith(("java", "python")):
            name = "JVM" if program == "java" else "Python worker"
            found[name] = max(found[name], _peak_mb(status))
    yield from found.items()


def _status(process: Path) -> dict[str, str]:
    """The status that Linux reports for a process."""
    lines = (process / "status").read_text().splitlines()
    return dict(one.split(":", 1) for one in lines if ":" in one)


def _peak_mb(status: Mapping[str, str]) -> int:
    return int(status["VmHWM"].split()[0]) // 1024


def run_case(work: str, path: Path, events: int, split_bytes: int | None = None) -> dict[str, Any]:
    """Run a case in a process; returns the printed result."""
    code = "import json, sys, spark_sizes; spark_sizes.case(*json.loads(sys.argv[1]))"
    command = [sys.executable, "-c", code, json.dumps([work, str(path), events, split_bytes])]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,  # identifies the processes of the case
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def fill(path: Path, block: list[bytes], size: float) -> int:
    """Make a book of about ``size`` bytes of events; returns the number of events."""
    from deedbook import Book

    per_block = sum(map(len, block))
    events = 0
    with Book.create(path, durability="manual") as made:  # synced on close, else exports wait
        while size > 0:
            part = block if size >= per_block else block[: int(len(block) * size / per_block) + 1]
            made.append_many(part)
            events += len(part)
            size -= per_block
    return events


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """Rows of the table without a peer: each compares with the smallest case of its kind."""
    from chaos.inputs.events import Synthetic

    scale = sizes.events / 1_000_000
    source = Synthetic(7, int(time.time()) - 86400, 86400.0, BLOCK_EVENTS)
    block = [source.line(number, 0).data for number in range(int(BLOCK_EVENTS * min(1, scale)))]
    cases = _Cases()
    by_size: dict[str, dict[float, dict[str, Any]]] = {}
    for size in SIZES:
        path, need = place / "book", DISK_TIMES * size * GB * scale
        if shutil.disk_usage(place).free < need:
            say(f"skipped: {size:g} GB need {need / GB:.1f} GB of disk")
            continue
        events = fill(path, block, size * GB * scale)
        for work in ("read", "verify", "export"):
            found = run_case(work, path, events)
            by_size.setdefault(work, {})[size * scale] = found
            cases.add(work, f"{work}, {size:g} GB", events, found)
            for made in ("table", "table.jobs"):  # also the checkpoint of the export
                shutil.rmtree(f"{path}.{made}", ignore_errors=True)
        if size == 1.0:
            bytes_ = (path / "book.log").stat().st_size
            for tasks in PARTITIONS:
                found = run_case("read", path, events, bytes_ // tasks + 1)
                cases.add("partitions", f"read, 1 GB in {tasks} partitions", events, found)
        shutil.rmtree(path)
    for logs in LOGS:
        folder = place / "logs"
        folder.mkdir()
        each = 0.1 * GB * scale / logs
        events = sum(fill(folder / f"{number:05}", block, each) for number in range(logs))
        found = run_case("read", folder, events)
        cases.add("logs", f"read, 0.1 GB in {logs:,} logs", events, found)
        shutil.rmtree(folder)
    if sizes.results is not None:
        draw(by_size, sizes.results / "spark-sizes.svg")
    return cases.rows


def draw(by_size: Mapping[str, Mapping[float, dict[str, Any]]], path: Path) -> None:
    """Seconds of each kind of work, and peaks of memory for all work, against size, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from deedbook._show.style import COLOURS, INK, STYLE

    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": "deedbook"}
    with plt.rc_context(style):
        figure, (times, peaks) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
        most: dict[str, dict[float, int]] = {}
        for (work, found), colour in zip(by_size.items(), COLOURS, strict=False):
            seconds = [one["seconds"] for one in found.values()]
            times.plot(list(found), seconds, color=colour, marker="o", label=work)
            for size, one in found.items():
                for process, peak in one["peak MB"].items():
                    known = most.setdefault(process, {})
                    known[size] = max(known.get(size, 0), peak)
        for (process, found_peaks), colour in zip(most.items(), COLOURS, strict=False):
            sizes, values = list(found_peaks), list(found_peaks.values())
            peaks.plot(sizes, values, color=colour, marker="o", label=process)
        times.set_yscale("log")
        peaks.set_ylim(bottom=0)
        for axes, title, unit in (
            (times, "Time", "seconds"),
            (peaks, "Peak memory, whatever is done", "MB"),
        ):
            axes.set_xscale("log")
            axes.set_xlabel("size of the book, GB")
            axes.set_ylabel(unit)
            axes.set_title(title, color=INK, fontweight="bold")
            axes.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


class _Cases:
    """Rows; each compares with the first row of its kind."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._firsts: dict[str, tuple[str, Spent, float]] = {}

    def add(self, kind: str, name: str, events: int, found: dict[str, Any]) -> None:
        """Add a row for a case."""
        spent = Spent(found["seconds"])
        rate = events / spent.wall
        first, first_spent, first_rate = self._firsts.setdefault(kind, (name, spent, rate))
        facts = {
            "rounds": "one, of a new session, its files read before",
            "events": f"{events:,}",
            "tasks": found["tasks"],
            **{f"peak MB of {process}": peak for process, peak in found["peak MB"].items()},
        }
        sides = {name: spent, first: first_spent}
        self.rows.append(Row(name, sides, "rows a second", rate / first_rate, facts=facts))
