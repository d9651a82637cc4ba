"""Commands of ``deedbook``, run to their end, and what they print.

They run in this process: a new process takes 0.2 s before it begins.
"""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deedbook._cli import main


def words_of(args: tuple[object, ...]) -> list[str]:
    """The arguments of a command as text."""
    return [
        os.fsdecode(arg) if isinstance(arg, str | bytes | os.PathLike) else str(arg) for arg in args
    ]


def command(*args: object) -> list[str]:
    """The command for a process of its own."""
    return [sys.executable, "-m", "deedbook", *words_of(args)]


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Ours, but with a buffered standard output, as users have it."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**ours, **(extra or {})}


def deedbook(
    *args: object, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with a standard input, output and error of its own.

    With variables of its own it runs in a process of its own.
    """
    if env is not None:
        return subprocess.run(
            command(*args), input=stdin, capture_output=True, timeout=30, env=environment(env)
        )
    words = words_of(args)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, piped(stdin) as given:
        with replaced(given, out.fileno(), err.fileno()):
            code = main(words)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def ok(*args: object, stdin: bytes = b"") -> bytes:
    """Run a command that must succeed; return its standard output."""
    done = deedbook(*args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def complaint(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    """The one line in which the command must have failed, with that exit code."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert text.startswith("deedbook: ") and text.endswith("\n") and text.count("\n") == 1, text
    return text.removeprefix("deedbook: ").rstrip("\n")


def outputs(*args: object, stdin: bytes | str = b"", code: int = 0) -> tuple[str, str]:
    """Run a command that ends with this code; its standard output and error."""
    done = deedbook(*args, stdin=stdin.encode() if isinstance(stdin, str) else stdin)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err and "internal error" not in err
    return out, err


def refused(*args: object, stdin: bytes | str = b"") -> str:
    """Run a command that refuses its arguments or the log; what it says."""
    return outputs(*args, stdin=stdin, code=2)[1]


@contextlib.contextmanager
def piped(data: bytes) -> Iterator[int]:
    """The end of a pipe that gives these bytes."""
    end, begin = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(begin, "wb", buffering=0) as pipe:
            rest = memoryview(data)
            while rest:
                rest = rest[pipe.write(rest) :]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield end
    finally:
        os.close(end)
        writer.join()


@contextlib.contextmanager
def replaced(*descriptors: int) -> Iterator[None]:
    """Put these in the places of the standard descriptors, and of their objects in ``sys``."""
    names = ("stdin", "stdout", "stderr")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept: list[tuple[Any, int]] = [
        (getattr(sys, name), os.dup(number)) for number, name in enumerate(names)
    ]
    for number, (name, given) in enumerate(zip(names, descriptors, strict=True)):
        os.dup2(given, number)
        errors = "surrogateescape" if name == "stdin" else "backslashreplace"
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(number, mode, encoding="utf-8", errors=errors, closefd=False))  # noqa: SIM115
    try:
        yield
    finally:
        for number, (name, (stream, copy)) in enumerate(zip(names, kept, strict=True)):
            with contextlib.suppress(OSError, ValueError):
                getattr(sys, name).close()
            setattr(sys, name, stream)
            os.dup2(copy, number)
            os.close(copy)


def json_lines(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def payloads(path: Path) -> list[bytes]:
    """All payloads; they must not contain NUL."""
    return ok("cat", path, "--null").split(b"\0")[:-1]


def obey_permissions() -> None:
    """In the child: also root may not write or read where the permissions forbid it (Linux)."""
    if os.geteuid() == 0:
        pr_capbset_drop, cap_dac_override, cap_dac_read_search = 24, 1, 2
        for capability in (cap_dac_override, cap_dac_read_search):
            ctypes.CDLL(None).prctl(pr_capbset_drop, capability, 0, 0, 0)


def unfit(data: bytes) -> list[str]:
    """What steers a terminal, whether it reads UTF-8 or a byte for a character."""
    text = data.decode("utf-8", "surrogateescape")
    bidi = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F}
    controls = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
    return [one for one in text if ord(one) in bidi | controls | {*range(0xDC80, 0xDCA0)}]
