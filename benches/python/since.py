"""Book's benchmarks at two commits next to each other: benches/results/since.md.

    python benches/python/since.py [--rev REV] [--rounds N]

The same compiler builds both, and both take turns, so that other work on the machine hits both. REV
has its own benchmarks, with today's clock and data.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from facts import filesystem, load, occasion, processor, provisional
from run import RESULTS_HELP, completed, write

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ["append", "scan", "recover"]
CLOCKS: dict[str, dict[str, str]] = {"processor": {"DEEDBOOK_BENCH_CPU": "1"}, "wall": {}}
# The last commit before the engine (src/log).
BEFORE = "4c3476e"
TEXT = """# Book's benchmarks since an earlier commit

Made by `make bench-since` on {day}: `benches/append.rs`, `scan.rs` and `recover.rs` at {old} and \
at {new}, in turn, medians of {runs} runs each, things per second. A ratio above 1 is faster now. \
Processor time is that of all threads; a wait for the disk costs none. {cores} x {processor}, \
Linux {kernel}, {filesystem}; load {before} before and {after} after.

{busy}| what | by processor time, then | now | ratio | by the clock, then | now | ratio |
|---|---|---|---|---|---|---|
{rows}
"""
Runs = dict[str, list[float]]
"""Units of work per second in each run, by the name of the case."""


def main() -> None:
    """Build, measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rev", default=BEFORE, help=f"the earlier commit ({BEFORE})")
    parser.add_argument("--rounds", type=int, default=2, help="of five runs each (2)")
    parser.add_argument("--results", type=Path, help=RESULTS_HELP)
    given = completed(parser, {})
    day = occasion()["began"]
    with checkout(given.rev) as old:
        trees = {"then": old, "now": ROOT}
        programs = {side: built(tree) for side, tree in trees.items()}
        before = load()
        runs = measured(programs, given.rounds)
    cases = [name for name in runs["then", "wall"] if name in runs["now", "wall"]]
    text = TEXT.format(
        day=day,
        old=name_of(given.rev),
        new=name_of("HEAD"),
        runs=len(runs["now", "wall"][cases[0]]),
        cores=os.cpu_count(),
        processor=processor(),
        kernel=platform.release(),
        filesystem=filesystem(Path(tempfile.gettempdir())),
        before=before,
        after=load(),
        busy="".join(line + "\n" for line in provisional(before)),
        rows="\n".join(row(name, runs) for name in cases),
    )
    print(text, end="")
    write(given.results, {"since.md": text})


@contextmanager
def checkout(rev: str) -> Iterator[Path]:
    """A work tree of the commit, with the shared code of today's benchmarks."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "then")
        git("worktree", "add", "--quiet", "--detach", str(tree), rev)
        try:
            shutil.copytree(ROOT / "benches/common", tree / "benches/common", dirs_exist_ok=True)
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def built(tree: Path) -> list[Path]:
    """Build the benchmarks of a tree; returns the programs."""
    target = ROOT / "target" / "since" / tree.name
    command = ["cargo", "bench", "--locked", "--package", "deedbook", "--no-run"]
    command += ["--message-format", "json-render-diagnostics", "--target-dir", str(target)]
    command += [part for bench in BENCHES for part in ("--bench", bench)]
    done = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True)
    found = {}
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            found[message["target"]["name"]] = Path(message["executable"])
    return [found[bench] for bench in BENCHES]


def measured(programs: dict[str, list[Path]], rounds: int) -> dict[tuple[str, str], Runs]:
    """The runs of both sides by both clocks."""
    runs = {(side, clock): Runs() for side in programs for clock in CLOCKS}
    for index, name in enumerate(BENCHES):
        for number in range(rounds):
            for clock, environment in CLOCKS.items():
                for side in sorted(programs, reverse=number % 2 == 0):
                    print(f"{name}, {side}, {clock}, round {number + 1} of {rounds}", flush=True)
                    for case, rates in run(programs[side][index], environment).items():
                        runs[side, clock].setdefault(case, []).extend(rates)
    return runs


def run(program: Path, environment: dict[str, str]) -> Runs:
    """The results of one program."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        environment = {**os.environ, **environment, "DEEDBOOK_BENCH_RESULTS": str(results)}
        subprocess.run([program], check=True, env=environment, stdout=subprocess.DEVNULL)
        figures = json.loads(results.read_text())
    # One more entry describes the machine.
    return {case: found["runs_per_s"] for case, found in figures.items() if "runs_per_s" in found}


def row(name: str, runs: dict[tuple[str, str], Runs]) -> str:
    """One case by both clocks."""
    cells = [name]
    for clock in CLOCKS:
        then, now = (median(runs[side, clock][name]) for side in ("then", "now"))
        cells += [f"{then:,.0f}", f"{now:,.0f}", f"{now / then:.2f}"]
    return "| " + " | ".join(cells) + " |"


def name_of(rev: str) -> str:
    """A commit's short name and date, and whether the sources differ from the commit."""
    changed = rev == "HEAD" and git("status", "--porcelain", "Cargo.*", "src", "benches/*.rs")
    return git("log", "-1", "--format=%h (%cs)", rev).strip() + (" with changes" if changed else "")


def git(*arguments: str) -> str:
    """The output of a git command."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
