"""Prove the promises again and publish the result.

    python scripts/trust/run.py                  the numbers of CI, twenty minutes on two cores
    python scripts/trust/run.py --minutes 30     a long run: seeds that were not tried before
    python scripts/trust/run.py --only crash,mutants --publish

Each part writes its JSON below target/trust. With ``--publish`` they are merged into
docs/trust.json, and docs/trust.md and the table in README.md are written from that.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path

import page

ROOT = Path(__file__).resolve().parents[2]
TRUST = Path(os.environ.get("DEEDBOOK_TRUST_DIR", ROOT / "target" / "trust"))
CARGO = ["cargo", "test", "--quiet", "--locked", "--package", "deedbook", "--all-features"]


def parts() -> dict[str, list[str]]:
    """The command of each part, in the order in which they run."""
    return {
        "crash": [*CARGO, "--test", "crash"],
        "faults": [*CARGO, "--test", "faults", "--test", "allocation"],
        "damage": [*CARGO, "--test", "answers", "--test", "log", "--test", "recovery"],
        "wal": [*CARGO, "--test", "wal_own", "--test", "wal_regressions"],
        "kill": [*CARGO, "--test", "processes"],
        "power": ["scripts/power.sh"],
        "fuzz": ["scripts/fuzz.sh"],
        "mutants": [sys.executable, "tests/mutants/run.py", "--format", "book"],
        "wal-mutants": [sys.executable, "tests/mutants/run.py", "--format", "wal"],
        "log-mutants": [sys.executable, "tests/mutants/run.py", "--format", "log"],
    }


def settings(minutes: float) -> dict[str, str]:
    """Environment of the parts. A long run multiplies the counts by the time given."""
    if minutes <= 0:
        return {"FUZZ_SECONDS": "30", "FUZZ_SEED": "1", "DEEDBOOK_KILL_CYCLES": "1000"}
    seed = random.SystemRandom().randrange(1 << 32)
    return {
        # Shares of the time, at the speed of two slow cores.
        "DEEDBOOK_CRASH_STATES": str(int(minutes * 500_000)),
        "DEEDBOOK_CRASH_SEED": str(seed),
        "DEEDBOOK_TEST_SECONDS": str(int(3600 + minutes * 240)),
        "DEEDBOOK_KILL_CYCLES": str(int(minutes * 60)),
        "DEEDBOOK_CUTS": str(int(minutes * (64 << 10))),
        "DEEDBOOK_FLIPS": str(int(minutes * (128 << 10))),
        "DEEDBOOK_POWER_CYCLES": str(int(minutes * 12)),
        "DEEDBOOK_POWER_SEED": str(seed),
        "FUZZ_SECONDS": str(int(minutes * 3)),
        "FUZZ_SEED": str(seed),
    }


def facts() -> dict[str, object]:
    """What the parts ran on and with."""
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "commit": commit.stdout.strip(),
        "rustc": rustc.stdout.strip(),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "cores": os.cpu_count(),
    }


def run_part(name: str, command: list[str], env: dict[str, str]) -> tuple[int, float]:
    """Run one part with its output on the terminal; exit code and seconds."""
    print(f"== {name}: {' '.join(command)}", flush=True)
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, check=False)
    return done.returncode, round(time.monotonic() - begun, 1)


def main() -> int:
    """Run the parts; exit code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0, help="a long run of about this time")
    parser.add_argument("--only", default=",".join(parts()), help="parts, separated by commas")
    parser.add_argument("--publish", action="store_true", help="write docs/trust.json and pages")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    unknown = set(chosen) - set(parts())
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; known: {', '.join(parts())}")
    TRUST.mkdir(parents=True, exist_ok=True)
    env = {**settings(arguments.minutes), "DEEDBOOK_TRUST_DIR": str(TRUST)}
    failed, seconds = [], {}
    for name, command in parts().items():
        if name in chosen:
            code, seconds[name] = run_part(name, command, env)
            if code != 0:
                failed.append(name)
    (TRUST / "run.json").write_text(
        json.dumps({"facts": facts(), "minutes": arguments.minutes, "seconds": seconds}, indent=1)
    )
    total = sum(seconds.values())
    print(f"trust: {len(seconds)} parts in {total:.0f} s, failed: {', '.join(failed) or 'none'}")
    if failed:
        return 1
    if arguments.publish:
        page.publish(ROOT, page.merge(TRUST))
    return 0


if __name__ == "__main__":
    sys.exit(main())
