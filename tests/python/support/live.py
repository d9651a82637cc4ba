"""Commands of ``deedbook`` that run beside a test: given input, read from, ended."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shell import command, environment

GIVE_UP_SECONDS = 20


@contextmanager
def running(
    *args: object, program: list[str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command beside the test; one that hangs is killed, so that reads from it end."""
    settings = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        program or command(*args),
        **{**settings, **options},
        env=environment(),
        bufsize=0,
    ) as process:
        watchdog = threading.Timer(GIVE_UP_SECONDS, process.kill)
        watchdog.start()
        try:
            yield process
        finally:
            watchdog.cancel()
            process.kill()


def ended(process: subprocess.Popen[bytes]) -> subprocess.CompletedProcess[bytes]:
    """The end of a running command, with what is left of its output."""
    out, err = process.communicate(timeout=GIVE_UP_SECONDS)
    return subprocess.CompletedProcess(process.args, process.returncode, out or b"", err or b"")


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    process.stdin.write(data)


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    return process.stdout.readline()


def ends_quietly(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe that a command writes to."""
    process.stdout.close()
    assert process.wait(GIVE_UP_SECONDS) == 141
    assert process.stderr.read() == b""
