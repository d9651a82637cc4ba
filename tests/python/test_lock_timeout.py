"""Opening for writing waits for the writer of another process, as long as it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import deedbook

HOLDER = """
import sys, deedbook
with deedbook.open(sys.argv[1], "a", format=sys.argv[2]) as log:
    print("held", flush=True)
    sys.stdin.readline()
"""
WAITER = """
import sys, deedbook
print("waiting", flush=True)
deedbook.open(sys.argv[1], "a", format=sys.argv[2], lock_timeout=60)
"""
FORMATS = ("book", "pier", "wal", "nostr")


@contextmanager
def held(path: Path, format: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the log open for writing until it gets a line."""
    command = [sys.executable, "-c", HOLDER, str(path), format]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        try:
            yield child
        finally:
            child.kill()


def release(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.parametrize("format", FORMATS)
def test_a_writer_waits_for_the_one_before_it(tmp_path: Path, format: str) -> None:
    path = tmp_path / "log"
    with held(path, format) as child:
        begun = time.monotonic()
        with pytest.raises(deedbook.LockedError) as caught:
            deedbook.open(path, "a", lock_timeout=0.2)
        assert time.monotonic() - begun >= 0.2
        assert "waited 200ms" in str(caught.value)
        assert caught.value.holder == child.pid
        begun = time.monotonic()
        with pytest.raises(deedbook.LockedError) as caught:
            deedbook.open(path, "a")
        assert time.monotonic() - begun < 5
        assert "waited" not in str(caught.value)

        # This thread waits; another one must run meanwhile, or the log is never released.
        threading.Timer(0.3, release, [child]).start()
        begun = time.monotonic()
        deedbook.open(path, "a", lock_timeout=60).close()
        assert 0.2 < time.monotonic() - begun < 30


def test_a_pier_waits_for_the_writer_of_its_last_epoch(tmp_path: Path) -> None:
    path = tmp_path / "pier"
    with deedbook.Pier.create(path) as pier:
        epoch = pier.epochs[-1].path
    with held(Path(epoch), "book") as child:
        with pytest.raises(deedbook.LockedError):
            deedbook.Pier.open(path, "a", lock_timeout=0.1)
        threading.Timer(0.3, release, [child]).start()
        with deedbook.Pier.open(path, "a", lock_timeout=60) as pier:
            assert pier.append(b"deed") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT goes to the whole console there")
def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAITER, str(tmp_path / "log"), "wal"]
    with (
        deedbook.Wal.create(tmp_path / "log"),
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child,
    ):
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert errors.splitlines()[-1] == "KeyboardInterrupt"


def test_the_shell_waits_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    command = [sys.executable, "-m", "deedbook", "append", str(path), "--lock-timeout"]
    with held(path, "book") as child:
        done = subprocess.run(
            [*command, "0.1"], input='{"n": 1}\n', capture_output=True, text=True, timeout=60
        )
        assert done.returncode != 0
        assert "waited 100ms" in done.stderr and "Traceback" not in done.stderr
        threading.Timer(0.5, release, [child]).start()
        done = subprocess.run(
            [*command, "60"], input='{"n": 1}\n', capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    with deedbook.Book.open(path) as book:
        assert len(book) == 1


def test_a_wait_is_no_less_than_nothing(tmp_path: Path) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="lock_timeout must be 0 seconds"):
        deedbook.Book.open(tmp_path, "a", lock_timeout=-1)
