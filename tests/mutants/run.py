"""Switch each seeded bug on alone and see that the tests catch it.

The tables fit commit 40c14c5f; run this command in a checkout of that. They go once their last
run is published: `make stories` and the disk that leaves out a sync take their place.

A test that cannot fail proves nothing, so the tables (`*_bugs.py`) list deliberate bugs as
replacements in the sources, each with the tests that are to catch it. This command makes a copy of
the tree, runs those tests without any bug, puts in one bug after the other, and runs them again. A
test that fails without a bug, and a bug that survives, no longer applies, or does not compile, is a
failure.

    python tests/mutants/run.py [--table NAME] [--quick] [--jobs N] [--only NAME ...] [--out DIR]
    python tests/mutants/run.py --check    only whether every bug's text is in the sources once
    python tests/mutants/run.py --inputs   only a hash for each bug of what its result depends on

A bug that an earlier run caught is not tried again while all that its result depends on is the
same, unless ``--again`` says so.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "trust"))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parent))
from book_bugs import BOOK_BUGS
from bug import Bug, stale
from capi_bugs import CAPI_BUGS
from caught import Caught
from event_store_bugs import EVENT_STORE_BUGS
from inputs import inputs_of_bug
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
from spark_bugs import SPARK_BUGS
from storage_bugs import STORAGE_BUGS
from transaction_bugs import TRANSACTION_BUGS
from wal_bugs import WAL_BUGS
from worker import OUT_OF_TIME, Outcome, Worker

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
    "spark": SPARK_BUGS,
}


def run(bugs: list[Bug], jobs: int, out: Path, caught: Caught) -> list[Outcome]:
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
                caught.note(outcome)
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
            caught.note(outcomes[i])
            show(outcomes[i], "again")
    for what in wrong:
        print(f"NO BUG WAS TRIED: {what}", flush=True)
    order = {bug.name: i for i, bug in enumerate(bugs)}
    return sorted(outcomes, key=lambda outcome: order[outcome.name])


def inputs_of(bug: Bug) -> str:
    """What its result depends on."""
    targets = {target for tests in bug.by_format().values() for target, _ in tests}
    return inputs_of_bug(ROOT, targets, repr(bug))


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
    parser.add_argument("--inputs", action="store_true", help="compile nothing, print the hashes")
    parser.add_argument("--again", action="store_true", help="also those that were caught before")
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
    depends = {bug.name: inputs_of(bug) for bug in known}
    if arguments.inputs:
        print(json.dumps(depends, indent=1))
        return 0
    bugs = [bug for bug in known if not arguments.only or bug.name in arguments.only]
    bugs = [bug for bug in bugs if not (arguments.quick and bug.slow)]
    unknown = set(arguments.only) - {bug.name for bug in known}
    if unknown:
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    arguments.out = arguments.out.resolve()  # tests run in the copy of the tree
    arguments.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    caught = Caught(arguments.out / "mutants-caught.jsonl", depends)
    before = {} if arguments.again else caught.before()
    kept = {bug.name: before[bug.name] for bug in bugs if bug.name in before}
    if kept:
        print(f"caught before, with all the same: {len(kept)}", flush=True)
    to_try = [bug for bug in bugs if bug.name not in kept]
    tried = run(to_try, arguments.jobs, arguments.out, caught) if to_try else []
    found = {**kept, **{one.name: one for one in tried}}
    outcomes = [found[bug.name] for bug in bugs if bug.name in found]
    survived = [outcome for outcome in outcomes if outcome.caught_by is None]
    result = {
        "known": len(known),
        "seeded": len(bugs),
        "caught": len(outcomes) - len(survived),
        "seconds": round(time.monotonic() - begun, 1),
        "kept": len(kept),
        "bugs": [asdict(one) for one in outcomes],
    }
    (arguments.out / "mutants.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"seeded bugs: {result['seeded']}, caught: {result['caught']}")
    for outcome in survived:
        print(f"NOT CAUGHT {outcome.name}: {outcome.note}")
    return 0 if not survived and len(outcomes) == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
