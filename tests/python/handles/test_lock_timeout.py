"""The writer of another process: who it is, and waiting for its end as long as told."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook._formats.writer import Writer, writer_of, writer_text
from live import line, program
from shell import complaint
from shell import deedbook as command

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
    with program("-c", HOLDER, path, format) as child:
        assert line(child) == "held"
        yield child


def release(child: subprocess.Popen[str]) -> None:
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


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT goes to the whole console there")
def test_ctrl_c_ends_the_wait(tmp_path: Path) -> None:
    waiter = [sys.executable, "-c", WAITER, str(tmp_path / "log"), "wal"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        deedbook.Wal.create(tmp_path / "log"),
        subprocess.Popen(waiter, **pipes, text=True) as child,
    ):
        assert child.stdout is not None
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert errors.splitlines()[-1] == "KeyboardInterrupt"


def test_the_shell_waits_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append: list[Any] = ["append", path, "--lock-timeout"]
    given: dict[str, Any] = {"stdin": b'{"n": 1}\n', "env": {}}
    with held(path, "book") as child:
        assert "waited 100ms" in complaint(command(*append, "0.1", **given), 2)
        threading.Timer(0.5, release, [child]).start()
        done = command(*append, "60", **given)
        assert done.returncode == 0, done.stderr
    with deedbook.Book.open(path) as book:
        assert len(book) == 1


def test_a_wait_is_no_less_than_nothing(tmp_path: Path) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="lock_timeout must be 0 seconds"):
        deedbook.Book.open(tmp_path, "a", lock_timeout=-1)


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="needs /proc/locks")
def test_writer_in_another_pid_namespace_counts_as_unknown(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    lock, ours = tmp_path / "lock", os.getpid()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for number in (1, ours):
            lock.write_text(f"{number}\n")
            held = True if number == ours else None
            assert writer_of(str(tmp_path)) == Writer(held, number)
        assert writer_text(Writer(None, 1)) == "not known (signed by process 1)"
        fcntl.flock(file, fcntl.LOCK_UN)
        assert writer_of(str(tmp_path)) == Writer(False, ours)
