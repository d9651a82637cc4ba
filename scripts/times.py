"""Print the time of each test program, and the slowest tests.

``make test`` writes the JUnit files that this command reads. The figures are wall times, and the
tests share the cores: compare runs of one machine only. No run fails because of a time.

    python scripts/times.py                  print the tables
    python scripts/times.py --write          and write tests/times.md
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
REPORTS = {
    # nextest does not ask where cargo builds.
    "Rust": ROOT / "target" / "nextest" / "default" / "junit.xml",
    "Python": TARGET / "junit-python.xml",
    "Spark": TARGET / "junit-spark.xml",
}
SLOWEST = 30


class Test(NamedTuple):
    """A test that ran."""

    suite: str
    program: str
    name: str
    seconds: float


def read(suite: str, path: Path) -> list[Test]:
    """Read the tests in a JUnit file."""
    tests = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        program = case.get("classname", "").removeprefix("tests.python.").partition("::")[2]
        program = program or case.get("classname", "").rpartition(".")[2]
        name = case.get("name", "")
        if suite == "Rust":
            module, _, name = name.partition("::")
            program += f"::{module}"
        tests.append(Test(suite, program, name, float(case.get("time", 0))))
    return tests


def tables(tests: list[Test]) -> str:
    """The tables as Markdown."""
    lines = ["| suite | tests | seconds of tests |", "|---|---:|---:|"]
    for suite in REPORTS:
        times = [test.seconds for test in tests if test.suite == suite]
        lines.append(f"| {suite} | {len(times):,} | {sum(times):,.0f} |")
    by_program: dict[tuple[str, str], list[float]] = defaultdict(list)
    for test in tests:
        by_program[test.suite, test.program].append(test.seconds)
    longest = sorted(by_program.items(), key=lambda item: -sum(item[1]))[:SLOWEST]
    lines += ["", "| program | suite | tests | seconds |", "|---|---|---:|---:|"]
    lines += [
        f"| {name} | {suite} | {len(times):,} | {sum(times):,.0f} |"
        for (suite, name), times in longest
    ]
    lines += ["", "| test | program | seconds |", "|---|---|---:|"]
    slowest = sorted(tests, key=lambda test: -test.seconds)[:SLOWEST]
    lines += [f"| `{test.name}` | {test.program} | {test.seconds:,.1f} |" for test in slowest]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write tests/times.md")
    args = parser.parse_args()
    tests = [test for suite, path in REPORTS.items() if path.exists() for test in read(suite, path)]
    if not tests:
        print(f"times: no report in {TARGET}; make test leaves them", file=sys.stderr)
        return 1
    text = tables(tests)
    print(text)
    if args.write:
        head = (
            "# How long the tests take\n\n"
            "`make times` writes this page from the last `make test`. Two cores, "
            f"{platform.machine()}, {platform.system()}; the suites ran next to each other.\n\n"
        )
        (ROOT / "tests" / "times.md").write_text(head + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
