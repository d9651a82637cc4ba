"""What it costs `deedbook append` to check that each line is JSON.

    python benches/python/append_check.py [--lines N] [--runs N]

Prints a row of lines a second with the check and without it, the best of the runs, and their ratio.
Writes nothing but a directory that it removes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        with lines.open("w") as file:
            for number in range(given.lines):
                tags = '["t", "logs"]'
                file.write(f'{{"id": {number}, "kind": 1, "tags": [{tags}], "text": "hello"}}\n')
        # In turn, so that what else the machine does meets both.
        checked, unchecked = [], []
        for run in range(given.runs):
            checked.append(_seconds(lines, Path(folder) / f"checked{run}"))
            unchecked.append(_seconds(lines, Path(folder) / f"unchecked{run}", "--no-validate"))
    with_check, without = given.lines / min(checked), given.lines / min(unchecked)
    print("| lines/s, checked | lines/s, not checked | ratio |")
    print("|---|---|---|")
    print(f"| {with_check:,.0f} | {without:,.0f} | {with_check / without:.2f} |")


def _seconds(lines: Path, log: Path, *options: str) -> float:
    command = [sys.executable, "-m", "deedbook", "append", *options, str(log), str(lines)]
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
