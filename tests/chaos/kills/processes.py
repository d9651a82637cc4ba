"""Processes of this machine, from Linux: the processes of a session, and their kinds."""

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from deedbook._system.process import status

_EXECUTOR: Final = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"


def session(leader: int) -> list[int]:
    """The processes of the session that ``leader`` began, the youngest first.

    Not the process groups, because Spark gives Python workers another group. The list lacks
    zombies, and is empty without ``/proc``.
    """
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        with suppress(OSError, ValueError):
            one = status(int(name))
            if one.session == leader and one.state != "Z":
                found.append(int(name))
    return sorted(found, reverse=True)


def kill(pid: int, leader: int) -> bool:
    """SIGKILL a process of the session that ``leader`` began; returns whether the process was
    alive.

    ``pid`` may come from an earlier list. A descriptor holds the process before the check of the
    session, so a new process with the same number stays alive.
    """
    with suppress(OSError, ValueError):
        held = os.pidfd_open(pid)
        try:
            if status(pid).session == leader:
                signal.pidfd_send_signal(held, signal.SIGKILL)
                return True
        finally:
            os.close(held)
    return False


def kill_all(leader: int) -> None:
    while pids := session(leader):
        for pid in pids:
            kill(pid, leader)
        time.sleep(0.005)


def await_end(pids: Iterable[int], timeout_seconds: float) -> list[int]:
    until = time.monotonic() + timeout_seconds
    left = [pid for pid in pids if _lives(pid)]
    while left and time.monotonic() < until:
        time.sleep(0.02)
        left = [pid for pid in left if _lives(pid)]
    return left


def is_jvm(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    return False


def is_executor(pid: int) -> bool:
    return is_jvm(pid) and _EXECUTOR in _command(pid)


def is_python_worker(pid: int) -> bool:
    return b"pyspark.daemon" in _command(pid)


def _lives(pid: int) -> bool:
    with suppress(OSError, ValueError):
        return status(pid).state != "Z"
    return False


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
