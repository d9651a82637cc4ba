"""`examples/spool.rs`: the life of an event in Rust, to the test endpoint."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from deedbook import Ledger
from endpoint import Endpoint, Faults
from http_kinds import events
from places import ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@pytest.fixture(scope="module")
def example() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    # As cargo test has built it.
    build = "cargo build --profile test --quiet --package deedbook --all-features --locked"
    build += " --example spool"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    return TARGET / "debug" / "examples" / "spool"


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_a_killed_sender_in_rust_loses_no_event(tmp_path: Path, example: Path) -> None:
    wanted = events(2000)
    faults = Faults(statuses={503: 0.2}, reset=0.1, drop=0.1)
    chance = random.Random(8)
    with Endpoint(faults=faults) as endpoint:
        lines = b"\n".join(wanted[:1000])
        command = [example, tmp_path / "spool", endpoint.url]
        # What it read it keeps, whatever the server says.
        subprocess.run(command, input=lines, capture_output=True, check=False)
        with Ledger.open(tmp_path / "spool", batch_records=20) as ledger:
            ledger.append_many(wanted[1000:])
        ends = set()
        for attempt in range(1000):
            sender = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                ends.add(sender.wait(chance.uniform(0, 0.03 + attempt / 1000)))
            except subprocess.TimeoutExpired:
                sender.kill()
                ends.add(sender.wait())
            sender.stderr.close()
            if sender.returncode == 0:
                break
        assert {0, -9, 1} <= ends, "sent all, killed, refused"
        assert set(endpoint.events) == set(wanted)
    with Ledger.open(tmp_path / "spool") as ledger:
        assert not ledger.has_data()
