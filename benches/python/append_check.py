"""The cost of the check of `deedbook append` that each line is JSON: benches/results/append.md.

    python benches/python/append_check.py [--lines N] [--runs N] [--quick]

Runs with the check and without it take turns, each with a new log. With any option except
`--results` the program only prints.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from facts import filesystem, load, occasion, processor, provisional, when
from run import RESULTS_HELP, completed, write

DURABILITIES = ("always", "none")
TEXT = """# What the check of `deedbook append` costs

Made by `benches/python/append_check.py`{when}: {lines:,} JSON lines of {bytes:.0f} bytes to a new \
book, with the check that each line is JSON and without it (`--no-validate`) in turn, the best of \
{runs} runs each. Processor time is that of all threads, with starting Python. {cores} x \
{processor}, {filesystem}, CPython {python}; load {before} before and {after} after.

{busy}| durability | checked, lines/s | not checked | ratio \
| checked, by processor time | not checked | ratio |
|---|---|---|---|---|---|---|
{rows}
"""
Spent = tuple[float, float]
"""Seconds of wall-clock time, and of processor time."""


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, help="lines in each run (1000000)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer lines, and no page")
    parser.add_argument("--results", type=Path, help=RESULTS_HELP)
    given = completed(parser, {"lines": (20_000, 1_000_000)})
    count = given.lines
    before, now = load(), occasion()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        lines = place / "lines.jsonl"
        _write(lines, count)
        rows = [_row(place, lines, count, given.runs, durability) for durability in DURABILITIES]
        kind, size = filesystem(place), lines.stat().st_size / count
    text = TEXT.format(
        when=when(now),
        lines=count,
        bytes=size,
        runs=given.runs,
        cores=os.cpu_count(),
        processor=processor(),
        filesystem=kind,
        python=platform.python_version(),
        before=before,
        after=load(),
        busy="".join(line + "\n" for line in provisional(before)),
        rows="\n".join(rows),
    )
    print(text, end="")
    write(given.results, {"append.md": text})


def _write(path: Path, lines: int) -> None:
    with path.open("w") as file:
        for number in range(lines):
            tags = '["t", "logs"]'
            file.write(f'{{"id": {number}, "kind": 1, "tags": [{tags}], "text": "hello"}}\n')


def _row(place: Path, lines: Path, count: int, runs: int, durability: str) -> str:
    checked, unchecked = list[Spent](), list[Spent]()
    # The runs take turns, so that other work on the machine hits both.
    for run in range(runs):
        for name, option, spent in (
            ("checked", [], checked),
            ("unchecked", ["--no-validate"], unchecked),
        ):
            log = place / f"{durability}-{name}-{run}"
            spent.append(_spent(lines, log, *option, "--durability", durability))
    cells = [f"`{durability}`"]
    for clock in range(2):
        with_check, without = (
            count / min(each[clock] for each in spent) for spent in (checked, unchecked)
        )
        cells += [f"{with_check / 1e3:,.0f} k/s", f"{without / 1e3:,.0f} k/s"]
        cells += [f"{with_check / without:.2f}"]
    return "| " + " | ".join(cells) + " |"


def _spent(lines: Path, log: Path, *options: str) -> Spent:
    command = [sys.executable, "-m", "deedbook", "append", "-q", *options, str(log), str(lines)]
    begun, used = time.perf_counter(), _processors()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun, _processors() - used


def _processors() -> float:
    """Processor seconds of the ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
