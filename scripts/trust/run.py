"""Prove the promises again and publish the result.

    python scripts/trust/run.py                  more than CI, half an hour on two cores
    python scripts/trust/run.py --minutes 30     a long run: seeds that were not tried before
    python scripts/trust/run.py --only crash,stories
    python scripts/trust/run.py --publish        all parts, then the pages from them

Each part writes a JSON file below target/trust; run.json has the commit and the skipped tests.
``--publish`` merges the files into docs/trust.json, and writes docs/trust.md and the table in
README.md from the result: only if every part ran at the commit of the sources, without a failure. A
part of an earlier commit stands if the part's inputs are the same.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import inputs
import page
import results

ROOT = Path(__file__).resolve().parents[2]
TRUST = Path(os.environ.get("DEEDBOOK_TRUST_DIR", ROOT / "target" / "trust"))
# The profile keeps the output of passed tests, for example "skipped".
NEXTEST = ["scripts/nextest.sh", "--profile", "trust", "--locked"]
JUNIT = ROOT / "target" / "nextest" / "trust" / "junit.xml"
# The test programs or modules of each part.
TARGETS = {
    "crash": ["engine::crash"],
    "faults": ["engine::faults", "process::allocation"],
    "damage": ["engine::answers", "engine::log", "book::recovery"],
    "wal": ["wal"],
    "ledger": ["ledger"],
    "layouts": ["book::slots", "book::convert", "book::in_parts", "book::pier", "book::lmdb"],
    "store": ["nostr"],
    "transactions": ["engine::transactions"],
    "kill": ["process::book"],
}


def parts() -> dict[str, list[str]]:
    """The command of each part, in the order of the run."""
    tests = {name: nextest(chosen(targets)) for name, targets in TARGETS.items()}
    return {
        # First: after a surviving bug is caught, all parts run again.
        "stories": [sys.executable, "scripts/stories.py"],
        **tests,
        "others": nextest(f"not ({chosen(all_targets())})"),
        # Events above 2 GiB and of 5 GiB, which take 16 GB of disk.
        "large": [
            "env",
            "DEEDBOOK_SLOW=1",
            *nextest(chosen(["process::parts_memory", "book::limits"])),
        ],
        "models": ["make", "models"],
        "relay": ["make", "relay"],
        "c": [*NEXTEST, "--package", "deedbook-capi"],
        "c-install": ["scripts/c_install.sh"],
        "python": pytest(of_spark=False),
        "spark": pytest(of_spark=True),
        "power": ["scripts/power.sh"],
        "fuzz": ["scripts/fuzz.sh"],
    }


def inputs_of_parts() -> dict[str, str]:
    """The present inputs of each part."""
    others = {name: inputs.inputs(ROOT, None) for name in parts()}
    of_cargo = {name: inputs.inputs(ROOT, found) for name, found in TARGETS.items()}
    return {**others, **of_cargo}


def all_targets() -> list[str]:
    """The test programs and modules with a part."""
    return [target for targets in TARGETS.values() for target in targets]


def chosen(targets: list[str]) -> str:
    """The filter for the tests of programs or modules."""
    halves = [target.partition("::") for target in targets]
    each = [
        f"binary({name}) & test(/^{module}::/)" if module else f"binary({name})"
        for name, _, module in halves
    ]
    return " | ".join(f"({one})" for one in each)


def nextest(tests: str) -> list[str]:
    """The command for the tests of a filter."""
    return [*NEXTEST, "--package", "deedbook", "--all-features", "-E", tests]


def pytest(of_spark: bool) -> list[str]:
    """The command for the Python test files with a promise: only Spark's tests, or all other
    tests."""
    return [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-m",
        "spark" if of_spark else "not spark",
        *page.python_files(ROOT),
    ]


def settings(minutes: float) -> dict[str, str]:
    """Environment of the parts. A long run multiplies the counts by the time given."""
    if minutes <= 0:
        return {"DEEDBOOK_TIER": "trust", "FUZZ_SECONDS": "25"}
    seed = random.SystemRandom().randrange(1 << 32)
    return {
        "DEEDBOOK_TIER": "trust",
        # Shares of the time, at the speed of two slow cores.
        "DEEDBOOK_CRASH_STATES": str(int(minutes * 500_000)),
        "DEEDBOOK_CRASH_SEED": str(seed),
        "DEEDBOOK_TEST_SECONDS": str(int(3600 + minutes * 240)),
        "DEEDBOOK_KILL_CYCLES": str(int(minutes * 60)),
        "DEEDBOOK_NOSTR_HISTORIES": str(int(100 + minutes * 20)),
        "DEEDBOOK_NOSTR_KILLS": str(int(60 + minutes * 10)),
        "DEEDBOOK_SEED": str(seed),
        "DEEDBOOK_CUTS": str(int(minutes * (64 << 10))),
        "DEEDBOOK_FLIPS": str(int(minutes * (128 << 10))),
        "DEEDBOOK_POWER_CYCLES": str(int(minutes * 12)),
        "DEEDBOOK_POWER_SEED": str(seed),
        "FUZZ_SECONDS": str(int(minutes * 3)),
        "FUZZ_SEED": str(seed),
    }


def facts(commit: str) -> dict[str, object]:
    """The machine and the versions of the run."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return {
        "commit": commit,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "rustc": rustc.stdout.strip(),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "cores": os.cpu_count(),
    }


def run_part(name: str, command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """Run one part with the output on the terminal. Returns exit code and output."""
    print(f"== {name}: {' '.join(command)}", flush=True)
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        lines.append(line)
    return process.wait(), "".join(lines)


def prove(name: str, command: list[str], env: dict[str, str], commit: str) -> dict[str, Any]:
    """Run one part, and return the commit, the inputs, the results and the skipped tests."""
    for file in TRUST.glob("*.json"):
        if file.stem in written_by(name):
            file.unlink()
    before = time.time()
    code, output = run_part(name, command, env)
    fresh = [f for f in sorted(TRUST.glob("*.json")) if f.stat().st_mtime >= before]
    failures = [f.stem for f in fresh if results.failures_in(json.loads(f.read_text()))]
    for stem in failures:
        print(f"{name}: {stem}.json has failures")
    return {
        "commit": commit,
        "inputs": inputs_of_parts()[name],
        "code": code or len(failures),
        "seconds": round(time.time() - before, 1),
        "results": [f.stem for f in fresh],
        "skipped": {**results.skipped_in(output), **results.skipped_by(JUNIT, before)},
    }


def written_by(name: str) -> list[str]:
    """The results of a part's last run."""
    run = results.read(TRUST).get(results.RUN, {})
    return list(run.get("parts", {}).get(name, {}).get("results", []))


def main() -> int:
    """Run the parts; exit code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0, help="a long run of about this time")
    parser.add_argument("--only", default=",".join(parts()), help="parts, separated by commas")
    parser.add_argument("--publish", action="store_true", help="write docs/trust.json and pages")
    arguments = parser.parse_args()
    chosen = [name for name in arguments.only.split(",") if name]
    unknown = set(chosen) - set(parts())
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; known: {', '.join(parts())}")
    # Without Java these parts skip the tests of Spark, which would prove nothing.
    if {"python", "spark", "stories"} & set(chosen):
        subprocess.run([ROOT / "scripts" / "need.sh", "java"], check=True)
    TRUST.mkdir(parents=True, exist_ok=True)
    env = {**settings(arguments.minutes), "DEEDBOOK_TRUST_DIR": str(TRUST)}
    commit = results.commit_of(ROOT)
    run = results.read(TRUST).get(results.RUN, {})
    done = {name: part for name, part in run.get("parts", {}).items() if name in parts()}
    for name, command in parts().items():
        if name in chosen:
            done[name] = prove(name, command, env, commit)
            run = {"facts": facts(commit), "minutes": arguments.minutes, "parts": done}
            (TRUST / f"{results.RUN}.json").write_text(json.dumps(run, indent=1) + "\n")
    failed = [name for name in chosen if done[name]["code"] != 0]
    total = sum(done[name]["seconds"] for name in chosen)
    print(f"trust: {len(chosen)} parts in {total:.0f} s, failed: {', '.join(failed) or 'none'}")
    if failed:
        return 1
    if arguments.publish:
        try:
            page.publish(ROOT, results.merge(TRUST, commit, inputs_of_parts()))
        except results.Stale as why:
            print(f"not published: {why}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
