"""Runs commands of ``deedbook`` in this process: a new process takes 0.2 s before it begins."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deedbook import Book, EventStore, Ledger, Pier, Wal
from deedbook.cli import main
from test_nostr import made


def words_of(args: tuple[object, ...]) -> list[str]:
    """The arguments of a command as text."""
    return [
        os.fsdecode(arg) if isinstance(arg, str | bytes | os.PathLike) else str(arg) for arg in args
    ]


def command(*args: object) -> list[str]:
    """The command for a process of its own."""
    return [sys.executable, "-m", "deedbook", *words_of(args)]


def run(*args: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with a standard input, output and error of its own."""
    words = words_of(args)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, piped(stdin) as given:
        with replaced(given, out.fileno(), err.fileno()):
            code = main(words)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


def outputs(*args: object, stdin: bytes | str = b"", code: int = 0) -> tuple[str, str]:
    """Run a command that ends with this code; its standard output and error."""
    done = run(*args, stdin=stdin.encode() if isinstance(stdin, str) else stdin)
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


def make_logs(home: Path, payloads: Sequence[bytes], events: int = 30, **of_wal: Any) -> Path:
    """Make a log of each format, by its name: with these payloads, and with events of Nostr."""
    third = len(payloads) // 3
    with Book.create(home / "book", durability="manual") as book:
        book.append_many(payloads)
    with Pier.create(home / "pier", durability="manual") as pier:
        pier.append_many(payloads[:third])
        pier.roll()
        pier.append_many(payloads[third:])
    with Wal.create(home / "wal", **of_wal) as wal:
        wal.append_many(payloads)
    with Ledger.open(home / "ledger") as ledger:
        ledger.append_many(payloads)
    with EventStore.create(home / "nostr") as store:
        store.append_many([made(f"event {number}") for number in range(events)])
    return home
