"""Commands of ``deedbook``, run to the end, and their output.

The commands run in this process, because a new process takes 0.2 s to start.
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
    return [
        os.fsdecode(arg) if isinstance(arg, str | bytes | os.PathLike) else str(arg) for arg in args
    ]


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "deedbook", *words_of(args)]


def environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Our environment, but with a buffered standard output, as users have."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**ours, **(extra or {})}


def deedbook(
    *args: object, stdin: bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to the end, with new standard input, output and error.

    With ``env`` the command runs in a new process.
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
    done = deedbook(*args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def complaint(done: subprocess.CompletedProcess[bytes], code: int) -> str:
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert text.startswith("deedbook: ") and text.endswith("\n") and text.count("\n") == 1, text
    return text.removeprefix("deedbook: ").rstrip("\n")


def outputs(*args: object, stdin: bytes | str = b"", code: int = 0) -> tuple[str, str]:
    done = deedbook(*args, stdin=stdin.encode() if isinstance(stdin, str) else stdin)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, (done.returncode, out, err)
    assert "Traceback" not in err and "internal error" not in err
    return out, err


def refused(*args: object, stdin: bytes | str = b"") -> str:
    return outputs(*args, stdin=stdin, code=2)[1]


@contextlib.contextmanager
def piped(data: bytes) -> Iterator[int]:
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
    return ok("cat", path, "--null").split(b"\0")[:-1]


def obey_permissions() -> None:
    """In the child: make even root obey the permissions of files (Linux)."""
    if os.geteuid() == 0:
        pr_capbset_drop, cap_dac_override, cap_dac_read_search = 24, 1, 2
        for capability in (cap_dac_override, cap_dac_read_search):
            ctypes.CDLL(None).prctl(pr_capbset_drop, capability, 0, 0, 0)


def unfit(data: bytes) -> list[str]:
    """Characters that control a terminal, in UTF-8 or in a single-byte encoding."""
    text = data.decode("utf-8", "surrogateescape")
    bidi = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F}
    controls = {*range(0x20), *range(0x7F, 0xA0)} - {ord("\n"), ord("\t")}
    return [one for one in text if ord(one) in bidi | controls | {*range(0xDC80, 0xDCA0)}]
