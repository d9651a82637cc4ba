"""Switch each seeded bug of tests/stories.txt on alone and see that the tests catch it.

    python scripts/stories.py                    all of them: target/trust/stories.json
    python scripts/stories.py --only NAME ...    these, and no file

The command builds the test programs once, with ``--cfg seeded``. All tests pass while no story is
on. While a story is on, at least one test must fail for each word of the story's line, with the
word in the test's name. A test that runs out of time proves nothing. The Python tests use the
installed package.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filters import PYTHON, chosen, failures, out_of_time, program, selected

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "seeded"
TRUST = Path(os.environ.get("DEEDBOOK_TRUST_DIR", ROOT / "target" / "trust"))
STORIES = ROOT / "tests" / "stories.txt"
PYTHON_STORIES = ROOT / "tests" / "python" / "seeded"
ON = "DEEDBOOK_SEEDED"
# Small counts and a quick build are enough to catch a present bug.
ENV = {
    "DEEDBOOK_TIER": "quick",
    "CARGO_TERM_COLOR": "never",
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    # The results of a test with a bug in it are not published.
    "DEEDBOOK_TRUST_DIR": str(TARGET / "trust"),
}


@dataclass(frozen=True)
class Story:
    """One seeded bug, and the tests that must catch the bug."""

    name: str
    promise: str
    target: str
    words: tuple[str, ...]

    def tests(self) -> str:
        """The filter of the story's Rust tests, over all programs."""
        of = "kind(lib)" if self.target == "lib" else f"binary({program(self.target)})"
        return f"({of} & {chosen(self.target, ' '.join(self.words))})"


def stories() -> list[Story]:
    """The lines of tests/stories.txt."""
    found = []
    for line in STORIES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, promise, target, words = line.split(" | ")
            found.append(Story(name, promise, target, tuple(words.split())))
    return found


def run(command: list[str], story: str | None = None) -> tuple[int, str]:
    """Run tests, with a story on. Returns exit code and output."""
    flags = f"--cfg seeded {os.environ.get('RUSTFLAGS', '')}".strip()
    env = {**os.environ, **ENV, "RUSTFLAGS": flags}
    env["PYTHONPATH"] = os.pathsep.join(
        [str(PYTHON_STORIES), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    env.pop(ON, None)
    if story is not None:
        env[ON] = story
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    return done.returncode, done.stdout


def nextest(programs: list[str], *arguments: str) -> list[str]:
    """The command for tests of some programs."""
    command = ["scripts/nextest.sh", "--locked", "--profile", "stories"]
    command += ["--target-dir", str(TARGET), "--package", "deedbook", "--all-features"]
    return [*command, *(part for name in programs for part in selected(name)), *arguments]


def pytest(words: tuple[str, ...]) -> list[str]:
    """The command for tests of a Python file, the first word."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    (file,) = (ROOT / "tests" / "python").rglob(words[0])
    return [*command, str(file.relative_to(ROOT)), "-k", " or ".join(words[1:])]


def without(of: list[Story]) -> str | None:
    """Build the programs, and run all tests with no story on. Returns the failure, if any."""
    programs = sorted({program(story.target) for story in of} - {PYTHON})
    commands = [pytest(words) for words in {story.words for story in of if story.target == PYTHON}]
    if programs:
        tests = " | ".join(story.tests() for story in of if story.target != PYTHON)
        commands = [nextest(programs, "--no-run"), nextest(programs, "-E", tests), *commands]
    for command in commands:
        code, output = run(command)
        if code != 0 or ("pytest" in command and " passed" not in output):
            return f"with no story on, {' '.join(command)} ended with {code}:\n{output[-3000:]}"
    return None


def tried(story: Story) -> dict[str, Any]:
    """Run the tests of a story with the story on."""
    begun = time.monotonic()
    if story.target == PYTHON:
        _, output = run(pytest(story.words), story.name)
        wanted = story.words[1:]
    else:
        of = [program(story.target)]
        _, output = run(nextest(of, "--no-fail-fast", "-E", story.tests()), story.name)
        wanted = story.words
    failed = failures(output)
    left = [word for word in wanted if not any(word in name for name in failed)]
    late = [name for name in out_of_time(output) if any(word in name for word in left)]
    return {
        "name": story.name,
        "promise": story.promise,
        "caught_by": failed if not left else [],
        "survived": left,
        "out_of_time": late,
        "seconds": round(time.monotonic() - begun, 1),
    }


def main() -> int:
    """Try the stories; exit code 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these; writes no results")
    only = parser.parse_args().only
    of = [story for story in stories() if only is None or story.name in only]
    if unknown := set(only or []) - {story.name for story in of}:
        parser.error(f"no such story: {', '.join(sorted(unknown))}")
    begun = time.monotonic()
    if wrong := without(of):
        print(f"NO STORY WAS TRIED: {wrong}")
        return 1
    print(
        f"built, and all tests pass with no story on: {time.monotonic() - begun:.0f} s", flush=True
    )
    each = []
    for story in of:
        one = tried(story)
        each.append(one)
        how = f"caught by {len(one['caught_by'])}" if one["caught_by"] else "SURVIVED"
        late = f", out of time: {' '.join(one['out_of_time'])}" if one["out_of_time"] else ""
        left = f": {' '.join(one['survived'])}{late}" if one["survived"] else ""
        print(f"[{len(each)}/{len(of)}, {one['seconds']} s] {story.name}: {how}{left}", flush=True)
    caught = sum(bool(one["caught_by"]) for one in each)
    seconds = round(time.monotonic() - begun, 1)
    print(f"stories: {len(each)}, caught: {caught}, {seconds:.0f} s")
    if only is None:
        counts = {"stories": len(each), "caught": caught, "failures": len(each) - caught}
        TRUST.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**counts, "seconds": seconds, "each": each}, indent=1)
        (TRUST / "stories.json").write_text(f"{text}\n")
    return 0 if caught == len(each) else 1


if __name__ == "__main__":
    sys.exit(main())
