"""Switch each seeded bug on alone and see that the tests catch it.

A test that cannot fail proves nothing, so the tables (`*_bugs.py`) list deliberate bugs as
replacements in the sources, each with the tests that are to catch it. This command makes a copy of
the tree, runs those tests without any bug, puts in one bug after the other, and runs them again. A
test that fails without a bug, and a bug that survives, no longer applies, or does not compile, is a
failure.

    python tests/mutants/run.py [--table NAME] [--quick] [--jobs N] [--only NAME ...] [--out DIR]
    python tests/mutants/run.py --check    only whether every bug's text is in the sources once
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from book_bugs import BOOK_BUGS
from bug import Bug, Tests, stale
from capi_bugs import CAPI_BUGS
from event_store_bugs import EVENT_STORE_BUGS
from layout_bugs import LAYOUT_BUGS
from ledger_bugs import LEDGER_BUGS
from ledger_transaction_bugs import LEDGER_TRANSACTION_BUGS
from lmdb_bugs import LMDB_BUGS
from log_bugs import LOG_BUGS
from nostr_wal_bugs import NOSTR_WAL_BUGS
from part_bugs import PART_BUGS
from pier_bugs import PIER_BUGS
from read_bugs import READ_BUGS
from segment_bugs import SEGMENTED_BUGS
from storage_bugs import STORAGE_BUGS
from transaction_bugs import TRANSACTION_BUGS
from wal_bugs import WAL_BUGS

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    "log": LOG_BUGS,
    "read": READ_BUGS,
    "wal": WAL_BUGS,
    "nostr_wal": NOSTR_WAL_BUGS,
    "segments": SEGMENTED_BUGS,
    "book": BOOK_BUGS,
    "layouts": LAYOUT_BUGS,
    "parts": PART_BUGS,
    "pier": PIER_BUGS,
    "lmdb": LMDB_BUGS,
    "c": CAPI_BUGS,
    "storage": STORAGE_BUGS,
    "ledger": LEDGER_BUGS,
    "event-store": EVENT_STORE_BUGS,
    "transactions": TRANSACTION_BUGS,
    "ledger-transactions": LEDGER_TRANSACTION_BUGS,
}
COPIED = ["Cargo.toml", "Cargo.lock", "README.md", "src", "tests", "benches", "examples", "fuzz"]
COPIED += ["capi", "docs", "python"]
# Beside other work, too.
BUILD_SECONDS_MAX = 1800
TEST_SECONDS_MAX = 120
# How the note of a bug begins whose tests took longer.
OUT_OF_TIME = "out of time"
# Without a bug a test runs to its end.
WITHOUT_SECONDS_MAX = 600
# Small numbers are enough to catch a bug that is there.
FEW = {
    "DEEDBOOK_CRASH_STATES": "30000",
    "DEEDBOOK_CRASH_STEPS": "2",
    "DEEDBOOK_FAULT_STRIDE": "5",
    "DEEDBOOK_KILL_CYCLES": "20",
    "DEEDBOOK_LEDGER_STEPS": "2",
    "DEEDBOOK_LEDGER_KILLS": "20",
    "DEEDBOOK_NOSTR_STEPS": "1",
    "DEEDBOOK_NOSTR_HISTORIES": "10",
    "DEEDBOOK_NOSTR_KILLS": "6",
    "CARGO_TERM_COLOR": "never",
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
}


MANIFEST = (ROOT / "Cargo.toml").read_text()
# Of the targets some of whose tests need more than the manifest says.
MORE_FEATURES = {
    "lib": ["arrow", "lmdb", "nostr"],
    "crash": ["nostr"],
    "faults": ["nostr"],
    "nostr_store": ["arrow"],
    "transactions": ["nostr"],
}


@dataclass
class Outcome:
    """What became of one bug."""

    name: str
    row: str
    caught_by: str | None
    # With compiling, and of the tests alone.
    seconds: float
    test_seconds: float = 0.0
    note: str = ""


class Worker:
    """A copy of the tree with a build directory of its own."""

    def __init__(self, number: int, out: Path) -> None:
        self.tree = out / f"mutants-{number}"
        self.target = out / f"mutants-{number}-target"
        self.test_seconds = 0.0
        shutil.rmtree(self.tree, ignore_errors=True)
        # Copied without their times: else cargo takes what the last bug was built from for new.
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns(
                    "__pycache__", "*.so", "results", "target", "corpus"
                )
                shutil.copytree(source, self.tree / name, ignore=ignored, copy_function=shutil.copy)
            elif source.exists():
                self.tree.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, self.tree / name)

    def cargo(self, arguments: list[str], seconds: int) -> tuple[int, str]:
        """Run cargo in the copy; 124 if it took too long."""
        # What a test with a bug in it writes is no result.
        env = {**os.environ, **FEW, "DEEDBOOK_TRUST_DIR": str(self.target / "trust")}
        env["CARGO_TARGET_DIR"] = str(self.target)
        command = ["cargo", "test", "--quiet", "--locked", *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=self.tree,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                text=True,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return 124, "took too long"
        return done.returncode, done.stdout

    def build(self, tests: list[str]) -> tuple[int, str]:
        """Compile what the tests need."""
        for arguments in selected(tests):
            code, output = self.cargo([*arguments, "--no-run"], BUILD_SECONDS_MAX)
            if code != 0:
                break
        return code, output

    def try_bug(self, bug: Bug) -> Outcome:
        """Put the bug in, run its tests until one fails, take it out."""
        begun, self.test_seconds = time.monotonic(), 0.0
        file = self.tree / bug.file
        original = file.read_text()
        changed = bug.changed(original)
        if isinstance(changed, int):
            note = f"its text is {changed} times in {bug.file}, must be there once"
            return Outcome(bug.name, bug.row, None, 0.0, note=note)
        file.write_text(changed)
        caught_by: list[str] = []
        note = ""
        try:
            for tests in bug.by_format().values():
                caught, note = self.caught_by(tests, bug.hangs)
                if caught is None:
                    break
                caught_by.append(caught)
        finally:
            file.write_text(original)
        seconds = round(time.monotonic() - begun, 1)
        test_seconds = round(self.test_seconds, 1)
        by = None if note else ", ".join(dict.fromkeys(caught_by))
        return Outcome(bug.name, bug.row, by, seconds, test_seconds, note)

    def caught_by(self, tests: Tests, hangs: bool) -> tuple[str | None, str]:
        """The first of the tests that fails, or why none does."""
        undecided: list[str] = []
        for target, name in tests:
            code, output = self.build([target])
            if code != 0:
                return None, "does not compile: " + output[-1500:]
            code, output = self.run_tests(target, name, TEST_SECONDS_MAX)
            if code == 124 and not hangs:
                # No proof: on a busy machine the tests without any bug may take as long.
                undecided.append(target)
            elif code != 0:
                failed = " ".join(failures(output)) or f"{name} (by {code})".strip()
                return f"{target} {failed}", ""
        left = f"{OUT_OF_TIME}: {', '.join(undecided)}" if undecided else "survived"
        return None, f"{left}: {', '.join(f'{target} {name}'.strip() for target, name in tests)}"

    def run_tests(self, target: str, name: str, seconds: int) -> tuple[int, str]:
        """Run a target's tests with some arguments; none at all is a failure of its own."""
        begun = time.monotonic()
        (arguments,) = selected([target])
        code, output = self.cargo([*arguments, "--", *name.split()], seconds)
        self.test_seconds += time.monotonic() - begun
        if code == 0 and "running 0 tests" in output and " passed" in output:
            counts = [line for line in output.splitlines() if line.startswith("running ")]
            if all(line.startswith("running 0 ") for line in counts):
                return 1, f"{target} {name}: no such test"
        return code, output

    def try_without(self, tests: Tests) -> str | None:
        """Run all tests without any bug; what is wrong with the first one that fails."""
        for target, name in tests:
            code, output = self.run_tests(target, name, WITHOUT_SECONDS_MAX)
            if code != 0:
                return f"{target} {name} fails without any bug:\n{output[-3000:]}"
        return None


def failures(output: str) -> list[str]:
    """The tests that failed, as the test harness lists them at its end, without their modules."""
    listed = output.rpartition("\nfailures:\n")[2].partition("\n\n")[0]
    names = [line.rpartition("::")[2].strip() for line in listed.splitlines() if line[:4] == "    "]
    return list(dict.fromkeys(names))


def selected(tests: list[str]) -> list[list[str]]:
    """Cargo's arguments for test targets, a list for each package and choice of features.

    ``lib`` is the unit tests, ``capi`` the tests of the C interface.
    """
    chosen: dict[str, list[str]] = {}
    for target in dict.fromkeys(test for test in tests if test != "capi"):
        own = chosen.setdefault(features_of(target), [])
        own += ["--lib"] if target == "lib" else ["--test", target]
    packages = [
        ["--package", "deedbook", "--features", names, *own] for names, own in chosen.items()
    ]
    return packages + ([["--package", "deedbook-capi", "--test", "c"]] if "capi" in tests else [])


def features_of(target: str) -> str:
    """The features that a target's tests need: with fewer, the crate is built in half the time."""
    required = re.findall(
        rf'^name = "{target}"\nrequired-features = \[(.*)\]$', MANIFEST, re.MULTILINE
    )
    names = {name.strip('" ') for name in ",".join(required).split(",")} - {""}
    return ",".join(sorted({"sim", *names, *MORE_FEATURES.get(target, ())}))


def run(bugs: list[Bug], jobs: int, out: Path) -> list[Outcome]:
    """All bugs, over several workers; what was out of time again, when nothing else runs."""
    waiting: queue.Queue[Bug] = queue.Queue()
    for bug in bugs:
        waiting.put(bug)
    outcomes: list[Outcome] = []
    told = threading.Lock()
    each = [tests for bug in bugs for tests in bug.by_format().values()]
    without = list(dict.fromkeys(test for tests in each for test in tests))
    begin = threading.Barrier(jobs)
    wrong: list[str] = []
    workers = [Worker(number, out) for number in range(jobs)]

    def work(number: int) -> None:
        worker = workers[number]
        code, output = worker.build([target for target, _ in without])
        if code != 0:
            wrong.append(f"the tree does not build without any bug:\n{output[-3000:]}")
        else:
            found = worker.try_without(without[number::jobs])
            wrong.extend([found] if found else [])
        # A test that fails anyway catches every bug.
        begin.wait()
        while not wrong:
            try:
                bug = waiting.get_nowait()
            except queue.Empty:
                return
            outcome = worker.try_bug(bug)
            with told:
                outcomes.append(outcome)
                show(outcome, f"{len(outcomes)}/{len(bugs)}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_name = {bug.name: bug for bug in bugs}
    for i, outcome in enumerate(outcomes):
        if outcome.note.startswith(OUT_OF_TIME):
            outcomes[i] = workers[0].try_bug(by_name[outcome.name])
            show(outcomes[i], "again")
    for what in wrong:
        print(f"NO BUG WAS TRIED: {what}", flush=True)
    order = {bug.name: i for i, bug in enumerate(bugs)}
    return sorted(outcomes, key=lambda outcome: order[outcome.name])


def show(outcome: Outcome, count: str) -> None:
    """Print a line for a bug."""
    word = f"caught by {outcome.caught_by}" if outcome.caught_by else outcome.note
    took = f"{outcome.seconds} s, tests {outcome.test_seconds} s"
    print(f"[{count}, {took}] {outcome.name}: {word}", flush=True)


def main() -> int:
    """Run the table; exit code 1 if any bug survives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--only", nargs="*", default=[], help="names of bugs")
    parser.add_argument("--table", choices=list(TABLES), help="bugs of one table only")
    parser.add_argument("--quick", action="store_true", help="without those of slow tests")
    parser.add_argument("--check", action="store_true", help="compile nothing, look at the texts")
    default = os.environ.get("DEEDBOOK_TRUST_DIR", str(ROOT / "target" / "trust"))
    parser.add_argument("--out", type=Path, default=Path(default))
    arguments = parser.parse_args()
    tables = [arguments.table] if arguments.table else list(TABLES)
    known = [bug for table in tables for bug in TABLES[table]]
    if wrong := stale(known, ROOT):
        print("\n".join(wrong))
        return 1
    if arguments.check:
        print(f"seeded bugs: {len(known)}, all apply")
        return 0
    bugs = [bug for bug in known if not arguments.only or bug.name in arguments.only]
    bugs = [bug for bug in bugs if not (arguments.quick and bug.slow)]
    unknown = set(arguments.only) - {bug.name for bug in known}
    if unknown:
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    outcomes = run(bugs, arguments.jobs, arguments.out)
    survived = [outcome for outcome in outcomes if outcome.caught_by is None]
    result = {
        "known": len(known),
        "seeded": len(bugs),
        "caught": len(outcomes) - len(survived),
        "seconds": round(time.monotonic() - begun, 1),
        "bugs": [outcome.__dict__ for outcome in outcomes],
    }
    (arguments.out / "mutants.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"seeded bugs: {result['seeded']}, caught: {result['caught']}")
    for outcome in survived:
        print(f"NOT CAUGHT {outcome.name}: {outcome.note}")
    return 0 if not survived and len(outcomes) == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
