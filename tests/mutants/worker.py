"""A copy of the tree in which one bug after the other is tried."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bug import Bug, Tests
from filters import NO_TESTS, PYTHON, built, chosen, failures, out_of_time, program

__all__ = ["OUT_OF_TIME", "Outcome", "Worker"]

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["Cargo.toml", "Cargo.lock", "README.md", "src", "tests", "benches", "examples", "fuzz"]
COPIED += ["capi", "docs", "python", "pyproject.toml"]
# Beside other work, too.
BUILD_SECONDS_MAX = 1800
TEST_SECONDS_MAX = 120
# How the note of a bug begins whose tests took longer.
OUT_OF_TIME = "out of time"
# Without a bug a test runs to its end.
WITHOUT_SECONDS_MAX = 600
# Small numbers are enough to catch a bug that is there.
FEW = {
    "DEEDBOOK_TIER": "quick",
    "CARGO_TERM_COLOR": "never",
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_TEST_DEBUG": "0",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
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
        if built := installed_core():
            (self.tree / "python" / "deedbook" / built.name).symlink_to(built)

    def cargo(self, arguments: list[str], seconds: int) -> tuple[int, str]:
        """Run cargo-nextest in the copy; 124 if it took too long."""
        command = ["cargo", "nextest", "run", "--locked", *arguments]
        if "--no-run" not in arguments:
            command.append("--fail-fast")
        return self.command(command, {"CARGO_TARGET_DIR": str(self.target)}, seconds)

    def pytest(self, arguments: str, seconds: int) -> tuple[int, str]:
        """Run tests of Python with the copy's package around the core that is installed."""
        file, _, rest = arguments.partition(" ")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        command += [f"tests/python/{file}", *rest.split()]
        # A bytecode file is taken for current if a second and the size are the same.
        own = {"PYTHONPATH": str(self.tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        return self.command(command, own, seconds)

    def command(self, command: list[str], own: dict[str, str], seconds: int) -> tuple[int, str]:
        """Run a command in the copy; 124 if it took too long."""
        # What a test with a bug in it writes is no result.
        env = {**os.environ, **FEW, **own, "DEEDBOOK_TRUST_DIR": str(self.target / "trust")}
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
        code, output = 0, ""
        programs = dict.fromkeys(program(test) for test in tests if test != PYTHON)
        for name in programs:
            code, output = self.cargo([*built(name), "--no-run"], BUILD_SECONDS_MAX)
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
                names = [
                    name.rpartition("::")[2] for name in failures(output) + out_of_time(output)
                ]
                failed = " ".join(dict.fromkeys(names)) or f"{name} (by {code})".strip()
                return f"{target} {failed}", ""
        left = f"{OUT_OF_TIME}: {', '.join(undecided)}" if undecided else "survived"
        return None, f"{left}: {', '.join(f'{target} {name}'.strip() for target, name in tests)}"

    def run_tests(self, target: str, name: str, seconds: int) -> tuple[int, str]:
        """Run a target's tests with some arguments; none at all is a failure of its own."""
        begun = time.monotonic()
        if target == PYTHON:
            code, output = self.pytest(name, seconds)
        else:
            arguments = [*built(program(target)), "-E", chosen(target, name)]
            code, output = self.cargo(arguments, seconds)
        self.test_seconds += time.monotonic() - begun
        if code == NO_TESTS:
            return 1, f"{target} {name}: no such test"
        if code == 0 and target == PYTHON and " passed" not in output:
            return 1, f"{target} {name}: skipped"
        return code, output

    def try_without(self, tests: Tests) -> str | None:
        """Run all tests without any bug; what is wrong with the first one that fails."""
        for target, name in tests:
            code, output = self.run_tests(target, name, WITHOUT_SECONDS_MAX)
            if code != 0:
                return f"{target} {name} fails without any bug:\n{output[-3000:]}"
        return None


def installed_core() -> Path | None:
    """The compiled module of the wheel; None where none is installed."""
    if importlib.util.find_spec("deedbook") is None:
        return None
    core = importlib.util.find_spec("deedbook._core")
    return Path(core.origin) if core is not None and core.origin is not None else None
