"""The process that writes a log, according to the system's list of locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deedbook._formats.writer import Writer, writer_of, writer_text

fcntl = pytest.importorskip("fcntl")


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="needs /proc/locks")
def test_writer_in_another_pid_namespace_counts_as_unknown(tmp_path: Path) -> None:
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
