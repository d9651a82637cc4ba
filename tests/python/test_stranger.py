"""What a stranger tries with the wheel alone, in a clean environment: scripts/stranger.sh."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "stranger.sh"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
WHEELS = sorted((TARGET / "wheels" / "make").glob("deedbook-*.whl"))

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="the pages are for POSIX shells"),
    pytest.mark.skipif(not WHEELS, reason="make test builds the wheel"),
]


def tried(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_stranger_gets_through_every_step() -> None:
    done = tried(WHEELS[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    names = re.findall(r"^def (\w+)\(\) -> str:$", SCRIPT.with_suffix(".py").read_text(), re.M)
    assert [re.split(r"  +", line)[0] for line in lines] == [
        name.replace("_", " ") for name in names
    ]
    assert len(lines) == 7 and all(re.search(r" ok +\d+\.\d s  \S", line) for line in lines)


def test_without_a_wheel_it_says_which() -> None:
    done = tried(ROOT / "nothing.whl")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no wheel {ROOT / 'nothing.whl'}" in done.stderr
