"""Mutate code with cargo-mutants, and hold the survivors against their explanations.

    python scripts/cargo_mutants.py                        the lines that the last commit changed
    python scripts/cargo_mutants.py --since main           the lines that differ from a commit's
    python scripts/cargo_mutants.py src/sidecar/cut.rs ...  these of the deciding files
    python scripts/cargo_mutants.py --all                  all deciding files: hours
    python scripts/cargo_mutants.py --all --shard 0/8      an eighth of them
    python scripts/cargo_mutants.py --quick ...            with the nearest test program alone
    python scripts/cargo_mutants.py --compare              only compare what the last run left

The unit tests and the nearest test program try each mutation; the other programs try the survivors.
The results lie below target/mutants. A survivor without an entry in `tests/mutants/explained.txt`
is a failure: kill the mutation by a test, or explain there why no test can.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"
SURVIVED = OUT / "survived.txt"
DECIDING = ROOT / "tests" / "mutants" / "deciding.txt"
EXPLAINED = ROOT / "tests" / "mutants" / "explained.txt"
# The nearest test program of each folder.
NEAREST = {
    "src/book/": "book",
    "src/wal/": "wal",
    "src/ledger/": "ledger",
    "src/nostr/": "nostr",
    "src/": "engine",
}
OTHERS = ["book", "engine", "ledger", "nostr", "process", "texts", "wal"]
# Exit codes of cargo-mutants: all caught, some missed, some timed out.
RAN = {0, 2, 3}


def install() -> None:
    """Have cargo-mutants, of whatever version cargo finds, built from its lock file."""
    if shutil.which("cargo-mutants") is None:
        subprocess.run(["cargo", "install", "cargo-mutants", "--locked"], check=True)


def deciding() -> list[str]:
    """The deciding files: the code that decides about damage, cuts and durability."""
    lines = DECIDING.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def changed_since(commit: str) -> tuple[list[str], Path]:
    """The files of the crate that differ from a commit, and the file with the differences."""
    diff = OUT / "changes.diff"
    text = subprocess.run(
        ["git", "diff", commit, "--", "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    diff.write_bytes(text)
    return re.findall(r"^\+\+\+ b/(src/.+\.rs)$", text.decode(), re.MULTILINE), diff


def mutate(files: list[str], narrow: list[str], programs: list[str], names: list[str]) -> None:
    """Try the mutations of files, or only the named mutations, with the unit tests and programs."""
    command = ["cargo", "mutants", "--dir", str(ROOT), "--output", str(OUT), "--no-shuffle"]
    command += [part for file in files for part in ("--file", file)]
    command += ["--re", "^(" + "|".join(map(re.escape, names)) + ")$"] if names else narrow
    # One job at a time: all runs share the dependencies built by the first run.
    env = {**os.environ, "CARGO_TARGET_DIR": str(OUT.parent / "mutants-build")}
    # For the build, too: otherwise each mutation builds all tests.
    command += ["--cargo-arg=--lib", *(f"--cargo-arg=--test={name}" for name in programs)]
    command += ["--", "--fail-fast"]
    done = subprocess.run(command, cwd=ROOT, env=env)
    if done.returncode not in RAN:
        sys.exit(f"cargo-mutants failed with {done.returncode}; its logs: {OUT / 'mutants.out'}")


def missed() -> list[str]:
    """The names of the mutations that the tests of this stage did not catch."""
    return (OUT / "mutants.out" / "missed.txt").read_text().splitlines()


def survivors_of(files: list[str], narrow: list[str], quick: bool) -> list[str]:
    """Try the mutations of files, and return the names of the survivors."""
    left: list[str] = []
    for folder, nearest in NEAREST.items():
        near = [file for file in files if file.startswith(folder)]
        files = [file for file in files if file not in near]
        if near:
            mutate(near, narrow, [nearest], [])
            survived = missed()
            if survived and not quick:
                mutate(near, narrow, [name for name in OTHERS if name != nearest], survived)
                survived = missed()
            left += survived
    return left


def survivors() -> Counter[tuple[str, str]]:
    """File and mutation, without lines and columns, which move. Two survivors may be alike."""
    found: Counter[tuple[str, str]] = Counter()
    if not SURVIVED.exists():
        sys.exit(f"no results in {SURVIVED}")
    for line in SURVIVED.read_text().splitlines():
        place = re.fullmatch(r"([^:]+):\d+:\d+: (.+)", line)
        if place:
            found[place[1], place[2]] += 1
    return found


def explanations() -> Counter[tuple[str, str]]:
    """The explained mutations: `FILE: MUTATION`, and the reason in indented lines below."""
    found: Counter[tuple[str, str]] = Counter()
    last = None
    for number, line in enumerate(EXPLAINED.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith(" "):
            last = None
            continue
        file, _, mutation = line.partition(": ")
        if last or not mutation:
            sys.exit(f"{EXPLAINED}:{number}: no reason, or no `FILE: MUTATION`")
        last = line
        found[file, mutation] += 1
    if last:
        sys.exit(f"{EXPLAINED}: the last entry has no reason")
    return found


def compare() -> int:
    """Show the unexplained survivors, and return the number."""
    survived, explained = survivors(), explanations()
    unexplained = survived - explained
    for (file, mutation), count in sorted(unexplained.items()):
        print(f"not explained: {file}: {mutation}" + (f" ({count} of them)" if count > 1 else ""))
    known = sum((survived & explained).values())
    print(f"survivors: {sum(survived.values())}, explained: {known}")
    return sum(unexplained.values())


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", help="only these of the deciding files")
    parser.add_argument("--all", action="store_true", help="all deciding files")
    parser.add_argument("--since", default="HEAD~1", help="the lines that differ from this commit")
    parser.add_argument("--shard", help="K/N: only this part of the mutations, K from 0 on")
    parser.add_argument("--quick", action="store_true", help="with the nearest program alone")
    parser.add_argument("--compare", action="store_true", help="mutate nothing")
    options = parser.parse_args()
    if unknown := set(options.files) - set(deciding()):
        parser.error(f"not in {DECIDING.relative_to(ROOT)}: {', '.join(sorted(unknown))}")
    if not options.compare:
        install()
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        narrow = ["--shard", options.shard] if options.shard else []
        files = options.files or (deciding() if options.all else [])
        if not files:
            files, diff = changed_since(options.since)
            narrow += ["--in-diff", str(diff)]
        left = survivors_of(files, narrow, options.quick)
        SURVIVED.write_text("".join(f"{name}\n" for name in left))
    if compare():
        sys.exit("kill each by a test, or explain it in tests/mutants/explained.txt")


if __name__ == "__main__":
    main()
