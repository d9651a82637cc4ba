"""Mutate the deciding files with cargo-mutants, and hold the survivors against their explanations.

    python scripts/cargo_mutants.py                        all files of .cargo/mutants.toml: hours
    python scripts/cargo_mutants.py src/wal/intent.rs ...  these files
    python scripts/cargo_mutants.py --shard 0/8            an eighth of them
    python scripts/cargo_mutants.py --quick ...            without the long tests
    python scripts/cargo_mutants.py --compare              only compare what the last run left

Each mutation is tried with the tests that take seconds; what survives these, with longer ones.
The results lie below target/mutants. A survivor that `tests/mutants/explained.txt` does not
explain is a failure: kill it by a test, or explain there why no test can.
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
CONFIG = ROOT / ".cargo" / "mutants.toml"
EXPLAINED = ROOT / "tests" / "mutants" / "explained.txt"
# What tries the mutations of a part, by stages: the features of the crate, and tests, which take
# seconds, half a minute, minutes. Each stage tries what the one before let through. Fewer features
# and tests build in a third of the time, and the nearest tests catch nearly all.
SECONDS = ["--lib", "--test=recovery", "--test=wal_own", "--test=commits", "--test=wal_truncation"]
BOOK = ["--lib", "--test=slots", "--test=convert", "--test=pier", "--test=lmdb"]
LONGER = [
    ["--test=error_texts", "--test=log", "--test=logged", "--test=reports"],
    ["--test=answers"],
    ["--test=crash"],
]
Stages = list[tuple[str, list[str]]]


def with_features(features: str, tests: list[list[str]]) -> Stages:
    """Stages with the same features."""
    return [(features, some) for some in tests]


OF_BOOKS = with_features("arrow,lmdb,nostr,sim", [BOOK, *LONGER])
PARTS: dict[str, Stages] = {
    "src/book/pier/": [("sim", ["--test=pier"]), *OF_BOOKS],
    "src/book/lmdb/": [("lmdb,sim", ["--test=lmdb"]), *OF_BOOKS],
    "src/book/aside.rs": [("sim", ["--test=convert"]), *OF_BOOKS],
    "src/book/convert.rs": [("sim", ["--test=convert"]), *OF_BOOKS],
    "src/book/": [("sim", ["--test=slots"]), *OF_BOOKS],
    "src/ledger/": with_features("sim", [["--lib", "--test=ledger"]]),
    "src/nostr/": with_features(
        "arrow,nostr,sim",
        [
            ["--lib", "--test=nostr", "--test=nostr_wal", "--test=nostr_index"],
            ["--test=nostr_store"],
        ],
    ),
    "src/": [
        ("arrow,sim", ["--test=reports"]),
        ("arrow,sim", [*SECONDS, "--test=log", "--test=logged"]),
        ("arrow,sim", ["--test=answers"]),
        ("arrow,lmdb,nostr,sim", ["--test=error_texts"]),
        ("nostr,sim", ["--test=crash", "--test=nostr_wal"]),
    ],
}
# What the exit codes of cargo-mutants say: all caught, some missed, some timed out.
RAN = {0, 2, 3}


def install() -> None:
    """Have cargo-mutants, of whatever version cargo finds, built from its lock file."""
    if shutil.which("cargo-mutants") is None:
        subprocess.run(["cargo", "install", "cargo-mutants", "--locked"], check=True)


def deciding() -> list[str]:
    """The files of the configuration."""
    return re.findall(r'^    "(src/[^"]+)",$', CONFIG.read_text(), re.MULTILINE)


def fail_fast() -> dict[str, str]:
    """Have a test binary end with its first failure: the environment in which it knows how."""
    host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    triple = re.search(r"^host: (.+)$", host, re.MULTILINE)
    name = triple[1].upper().replace("-", "_") if triple else ""
    # For the tests alone: cargo would build everything again.
    return {f"CARGO_TARGET_{name}_RUNNER": "env RUSTC_BOOTSTRAP=1"}


def mutate(
    files: list[str], shard: str | None, features: str, tests: list[str], names: list[str]
) -> None:
    """Try the mutations of a part with these tests, or with names, those."""
    command = ["cargo", "mutants", "--dir", str(ROOT), "--output", str(OUT), "--no-shuffle"]
    command += ["--features", features]
    # Naming a file would only add it to those of the configuration.
    # Deleted fields pass every --re: at least those of other files are not tried again.
    files = sorted({name.partition(":")[0] for name in names}) or files
    others = set(deciding()) - set(files)
    command += [part for file in sorted(others) for part in ("--exclude", file)]
    # Not with --iterate: the shards of fewer mutations are others.
    if names:
        command += ["--re", "^(" + "|".join(map(re.escape, names)) + ")$"]
    elif shard:
        command += ["--shard", shard]
    # One job at a time, so that all runs share the dependencies that the first one built.
    env = {**os.environ, **fail_fast(), "CARGO_TARGET_DIR": str(OUT.parent / "mutants-build")}
    # For the build, too: else each mutation builds all tests.
    command += [f"--cargo-arg={test}" for test in tests]
    command += ["--", "--", "-Z", "unstable-options", "--fail-fast"]
    done = subprocess.run(command, cwd=ROOT, env=env)
    if done.returncode not in RAN:
        sys.exit(f"cargo-mutants failed with {done.returncode}; its logs: {OUT / 'mutants.out'}")


def survivors_of(files: list[str], shard: str | None, stages: Stages) -> list[str]:
    """Try a part's mutations in all stages; returns the names of those that survive."""
    left: list[str] = []
    for number, (features, tests) in enumerate(stages):
        if number and not left:
            break
        mutate(files, shard, features, tests, left)
        now = missed()
        left = [name for name in left if name in now] if number else now
    return left


def missed() -> list[str]:
    """The mutations that the tests of this stage did not catch, by their names."""
    return (OUT / "mutants.out" / "missed.txt").read_text().splitlines()


def survivors() -> Counter[tuple[str, str]]:
    """File and mutation, without lines and columns, which move. Two may be alike."""
    found: Counter[tuple[str, str]] = Counter()
    if not SURVIVED.exists():
        sys.exit(f"no results in {SURVIVED}")
    for line in SURVIVED.read_text().splitlines():
        place = re.fullmatch(r"([^:]+):\d+:\d+: (.+)", line)
        if place:
            found[place[1], place[2]] += 1
    return found


def explanations() -> Counter[tuple[str, str]]:
    """What is explained: `FILE: MUTATION`, and the reason in indented lines below."""
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
    """Show the survivors that nothing explains; returns how many there are."""
    survived, explained = survivors(), explanations()
    unexplained = survived - explained
    for (file, mutation), count in sorted(unexplained.items()):
        print(f"not explained: {file}: {mutation}" + (f" ({count} of them)" if count > 1 else ""))
    known = sum((survived & explained).values())
    print(f"survivors: {sum(survived.values())}, explained: {known}")
    return sum(unexplained.values())


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", help="only these of the deciding files")
    parser.add_argument("--shard", help="K/N: only this part of the mutations, K from 0 on")
    parser.add_argument("--quick", action="store_true", help="without the long tests")
    parser.add_argument("--compare", action="store_true", help="mutate nothing")
    options = parser.parse_args()
    if unknown := set(options.files) - set(deciding()):
        parser.error(f"not in {CONFIG.relative_to(ROOT)}: {', '.join(sorted(unknown))}")
    if not options.compare:
        install()
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        left: list[str] = []
        todo = options.files or deciding()
        for folder, stages in PARTS.items():
            files = [file for file in todo if file.startswith(folder)]
            todo = [file for file in todo if file not in files]
            if files:
                stages = stages[:-1] if options.quick and len(stages) > 1 else stages
                left += survivors_of(files, options.shard, stages)
                SURVIVED.write_text("".join(f"{name}\n" for name in left))
    if compare():
        sys.exit("kill each by a test, or explain it in tests/mutants/explained.txt")


if __name__ == "__main__":
    main()
