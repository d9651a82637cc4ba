"""Measure the appends of a Book next to LMDB's at four sizes, in C, Rust and Python, in one run.

Without options: some minutes and 2 GB of disk. Writes sizes.json and sizes.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from clock import human, rounded, say
from facts import facts, load, occasion, on_machine, provisional, when
from run import RESULTS_HELP, command, completed, data_dir, write

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "benches/sizes"
SYSTEM = ["-lgcc_s", "-lpthread", "-lm", "-ldl"] if sys.platform == "linux" else ["-lm"]
LANGUAGES = ("C", "Rust", "Python")
STORES = ("book", "lmdb")
FLOOR = "plain file"
SIZES = {256: "256 B", 4 << 10: "4 KiB", 1 << 20: "1 MiB", 64 << 20: "64 MiB"}
COUNTS = {
    256: {1: 2000, 1000: 100_000},
    4 << 10: {1: 2000, 1000: 20_000},
    1 << 20: {1: 100, 16: 256},
    64 << 20: {1: 4},
}
"""Events of each size, by how many make a batch."""
SETTLE_BYTES = 128 << 20
RENDERED = "json-render-diagnostics"
LMDB = "lmdb-master-sys"
"""The crate with LMDB's sources."""


@dataclass
class Case:
    """The runs of one program with one size of events and batches."""

    size: int
    batch: int
    language: str
    store: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    disk: int = 0

    def median(self, clock: str) -> float:
        """Events per second."""
        return statistics.median(getattr(self, clock))

    def to_json(self) -> dict[str, Any]:
        names = ("size", "batch", "language", "store", "disk")
        runs = {"per_second": self.wall, "per_cpu_second": self.cpu}
        shown = {name: [rounded(rate) for rate in rates] for name, rates in runs.items()}
        return {**{name: getattr(self, name) for name in names}, **shown}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="a tenth of the events: to try the benchmark itself")
    add("--repetitions", type=int, help="of which the median is taken (5)")
    add("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    add("--results", type=Path, help=RESULTS_HELP)
    return completed(parser, {"repetitions": (1, 5)})


def built(place: Path) -> dict[str, list[str]]:
    """The command of the program in each language."""
    cargo = ["cargo", "build", "--release", "--locked", "--message-format", RENDERED]
    library = artifact([*cargo, "-p", "deedbook-capi"], ".a")
    bench = ["cargo", "bench", "--no-run", "--locked", "--message-format", RENDERED]
    rust = artifact([*bench, "--features", "lmdb", "--bench", "sizes"], "")
    # LMDB in C is the code that the program in Rust compiles, too.
    metadata = ["cargo", "metadata", "--locked", "--format-version", "1", "--features", "lmdb"]
    found = subprocess.run(metadata, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    packages = json.loads(found.stdout)["packages"]
    lmdb = next(Path(each["manifest_path"]) for each in packages if each["name"] == LMDB)
    sources = lmdb.parent / "lmdb/libraries/liblmdb"
    program = str(place / "append")
    cc = ["cc", "-std=gnu99", "-O2", "-pthread", "-I", str(ROOT / "capi/include"), "-I"]
    cc += [str(sources), str(PROGRAMS / "append.c"), str(sources / "mdb.c")]
    cc += [str(sources / "midl.c"), library, *SYSTEM, "-o", program]
    subprocess.run(cc, check=True)
    python = [sys.executable, str(PROGRAMS / "append.py")]
    return {"C": [program], "Rust": [rust], "Python": python}


def artifact(build: list[str], ending: str) -> str:
    """Build, and return the last file of the kind: a library by its ending, or the program."""
    done = subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    made = [each for each in messages if each["reason"] == "compiler-artifact"]
    if not ending:
        return str([each["executable"] for each in made if each["executable"]][-1])
    return str([name for each in made for name in each["filenames"] if name.endswith(ending)][-1])


def settle(place: Path) -> None:
    """Leave free memory alike to each program: write and remove a file, in pages and in pieces."""
    os.sync()
    path = place / "settle"
    for size in (4 << 10, 1 << 20):
        with open(path, "wb", buffering=0) as file:
            for _ in range(SETTLE_BYTES // size):
                file.write(bytes(size))
        path.unlink()


def run(case: Case, program: list[str], place: Path, events: int) -> None:
    """Append into a new directory, note the rates and the space on disk."""
    where = place / "log"
    where.mkdir()
    counts = map(str, (case.size, case.batch, events))
    given = [*program, case.store, str(where), *counts]
    if case.language == "Python":
        where.rmdir()
    done = subprocess.run(given, cwd=place, stdout=subprocess.PIPE, text=True, check=True)
    wall, cpu = map(float, done.stdout.split())
    case.wall.append(events / wall)
    case.cpu.append(events / cpu)
    if where.exists():
        blocks = [path.lstat().st_blocks for path in (where, *where.rglob("*"))]
        case.disk = round(sum(blocks) * 512 / events)
        shutil.rmtree(where)
    (place / "plain").unlink(missing_ok=True)
    shown = f"{SIZES[case.size]}, {case.batch} a batch"
    say(f"  {shown}, {case.store} in {case.language}: {human(case.wall[-1])}/s")


def table(cases: list[Case]) -> list[str]:
    """A line for each size, batch and language."""
    by = {(case.size, case.batch, case.language, case.store): case for case in cases}
    lines = [
        "| event | events a sync | language | Book, events/s | LMDB, events/s | ratio "
        "| ratio by processor time | plain file, events/s |",
        "|---" * 8 + "|",
    ]
    for size, batches in COUNTS.items():
        for batch in batches:
            floor = by[size, batch, "C", FLOOR].median("wall")
            for language in LANGUAGES:
                ours, lmdb = (by[size, batch, language, store] for store in STORES)
                ratios = [ours.median(clock) / lmdb.median(clock) for clock in ("wall", "cpu")]
                rates = [human(case.median("wall")) for case in (ours, lmdb)]
                cells = [SIZES[size], f"{batch:,}", language, *rates]
                cells += [f"{ratio:.2f}" for ratio in ratios]
                lines.append(f"| {' | '.join(cells)} | {human(floor)} |")
    return lines


def space(cases: list[Case]) -> list[str]:
    """Bytes on disk for each event, of the largest batches in C."""
    by = {(case.size, case.batch, case.language, case.store): case for case in cases}
    lines = ["| event | Book, bytes on disk | LMDB | ratio |", "|---" * 4 + "|"]
    for size, batches in COUNTS.items():
        ours, lmdb = (by[size, max(batches), "C", store].disk for store in STORES)
        lines.append(f"| {SIZES[size]} | {ours:,} | {lmdb:,} | {ours / lmdb:.2f} |")
    return lines


def markdown(cases: list[Case], given: argparse.Namespace, about: dict[str, Any]) -> str:
    run, machine = about["run"], about["machine"]
    warning = ["**A quick run: too small to judge by.**", ""] if given.quick else []
    return "\n".join(
        [
            "# A Book next to LMDB from 256 bytes to 64 MiB",
            "",
            f"Made by `{run['command']}`{when(run)}: medians of {given.repetitions} repetitions"
            " in which all programs take turns in changing order; each batch is on stable storage"
            " before the next."
            f" {on_machine(machine)}. All runs: [sizes.json](sizes.json).",
            "",
            *warning,
            *provisional(machine["load_before"]),
            *table(cases),
            "",
            "`benches/sizes` has the three programs. The program in C calls the functions of"
            " `book.h`, and LMDB with the options of Vere: one transaction a batch, integer keys,"
            " `MDB_NOOVERWRITE`. The program in Rust calls LMDB through heed, the program in"
            " Python through py-lmdb. The plain file gets the same bytes by `write` and"
            " `fdatasync`, and grows; a Book reserves space ahead.",
            "",
            "## Bytes on disk for each event",
            "",
            *space(cases),
            "",
            "Allocated blocks of the directory after closing, with everything the store keeps"
            " there. LMDB's map is sparse, so its file counts what it allocates.",
            "",
        ]
    )


def main() -> None:
    given = arguments()
    place = data_dir(given.dir)
    begun = time.monotonic()
    machine, day = facts(place), occasion()
    try:
        programs = built(place)
        cases = [
            Case(size, batch, language, store)
            for size, batches in COUNTS.items()
            for batch in batches
            for language in LANGUAGES
            for store in (*STORES, *([FLOOR] if language == "C" else []))
        ]
        for repetition in range(given.repetitions):
            say(f"repetition {repetition + 1}")
            for case in Random(repetition).sample(cases, len(cases)):
                events = COUNTS[case.size][case.batch]
                if given.quick:
                    events = max(case.batch, events // 10)
                settle(place)
                run(case, programs[case.language], place, events)
    finally:
        shutil.rmtree(place)
    machine["load_after"] = load()
    about: dict[str, Any] = {
        "run": {
            "command": command(sys.argv[1:], make="make bench-sizes"),
            **day,
            "seconds": round(time.monotonic() - begun),
            "repetitions": given.repetitions,
        },
        "machine": machine,
    }
    text = markdown(cases, given, about)
    print(text)
    shown = json.dumps({**about, "cases": [case.to_json() for case in cases]}, indent=1)
    write(given.results, {"sizes.json": shown + "\n", "sizes.md": text})


if __name__ == "__main__":
    main()
