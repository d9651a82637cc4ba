"""The programs of examples/rust behave as documented."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from deedbook import Ledger, Wal
from endpoint import Endpoint, Faults
from http_kinds import events
from places import ROOT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


@pytest.fixture(scope="module")
def programs() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    # The same build as cargo test.
    build = "cargo build --profile test --quiet --package deedbook --all-features --locked"
    for name in ("engine_wal", "format", "spool"):
        build += f" --example {name}"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    return TARGET / "debug" / "examples"


def run(*command: object, code: int = 0) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_engine_keeps_its_changes_over_checkpoints(tmp_path: Path, programs: Path) -> None:
    engine, path = programs / "engine_wal", tmp_path / "engine"
    run(engine, path, "set", "color", "blue")
    run(engine, path, "set", "size", "large")
    assert run(engine, path, "get", "color") == "blue\n"
    run(engine, path, "checkpoint")
    run(engine, path, "set", "color", "red")
    assert run(engine, path, "get", "color") == "red\n"
    assert run(engine, path, "get", "size") == "large\n"
    run(engine, path, "get", "weight", code=1)
    with Wal.open(path / "wal") as wal:
        assert list(wal.payloads()) == [b"color\tred"], "the checkpoint let the log drop the others"


def test_a_format_of_your_own_appends_and_verifies(tmp_path: Path, programs: Path) -> None:
    path = tmp_path / "toy"
    run(programs / "format", path, "one", "two")
    printed = run(programs / "format", path, "three")
    assert printed == "8 one\n19 two\n30 three\n3 records, Clean\n"


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_a_killed_sender_in_rust_loses_no_event(tmp_path: Path, programs: Path) -> None:
    wanted = events(2000)
    faults = Faults(statuses={503: 0.2}, reset=0.1, drop=0.1)
    chance = random.Random(8)
    with Endpoint(faults=faults) as endpoint:
        lines = b"\n".join(wanted[:1000])
        command = [programs / "spool", tmp_path / "spool", endpoint.url]
        # The program keeps all input, whatever the server answers.
        subprocess.run(command, input=lines, capture_output=True, check=False)
        with Ledger.open(tmp_path / "spool", "a", batch_records=20) as ledger:
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
    with Ledger.open(tmp_path / "spool", "a") as ledger:
        assert not ledger.has_data()
