"""The output of a command: data on standard output, talk on standard error."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, PipeClosedError, printable
from deedbook._cli.terminal.colour import in_colour
from deedbook._show.text import escape_json

BUFFER_BYTES: Final = 1 << 18
"""Data is handed to the operating system in pieces of about this size."""


class Output:
    """Standard output as bytes, gathered into large writes, and standard error for talk.

    The class bypasses Python's buffer of ``sys.stdout``: a closed pipe is found here, never in the
    last flush of the interpreter.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.emitted = False
        """Whether a JSON object was written."""
        self._chunks: list[bytes] = []
        self._size_bytes = 0

    def data(self, chunk: bytes) -> None:
        """Write bytes, sooner or later. Raises as `flush`."""
        self._chunks.append(chunk)
        self._size_bytes += len(chunk)
        if self._size_bytes >= BUFFER_BYTES:
            self.flush()

    def line(self, text: str, colour: str | None = None) -> None:
        """Write a line of text in UTF-8, with everything unprintable escaped. Raises as `flush`.

        The colour is shown if standard output is a terminal with colours.
        """
        # The encoder restores the stray bytes of a path (surrogates). Bytes 0x80 to 0x9f are
        # escaped: a terminal with one byte for a character takes the bytes as control characters.
        shown = "".join(c if "\udca0" <= c <= "\udcff" else printable(c) for c in text)
        shown = shown if colour is None else in_colour(shown, colour)
        self.data(shown.encode("utf-8", "surrogateescape") + b"\n")

    def emit(self, value: dict[str, Any]) -> None:
        """Write a JSON object on a line of its own, at once. Raises as `flush`."""
        self.data(to_json(value))
        self.emitted = True
        self.flush()

    def result(
        self,
        as_json: bool,
        facts: dict[str, Any],
        lines: Iterable[str],
        ok: bool = True,
        colour: str | None = None,
    ) -> int:
        """Write the result of a command, as a JSON object or in lines; return the exit code."""
        if as_json:
            self.emit({"ok": ok, **facts})
        else:
            for line in lines:
                self.line(line, colour)
            self.flush()
        return EXIT_OK if ok else EXIT_DAMAGE

    def flush(self) -> None:
        """Hand everything to the operating system.

        Raises `PipeClosedError` when the reader is gone, `CliError` on other failures.
        """
        chunks, self._chunks, self._size_bytes = self._chunks, [], 0
        if not chunks:
            return
        if sys.stdout is None:
            raise CliError("standard output is closed")
        try:
            _write_all(b"".join(chunks))
        except BrokenPipeError as error:
            raise PipeClosedError from error
        except OSError as error:
            raise CliError(f"cannot write to standard output: {error.strerror}") from error

    def check_reader(self) -> None:
        """Raises `PipeClosedError` if the reader closed the pipe, without writing."""
        try:
            fd = sys.stdout.fileno()
            poll = select.poll()
        except (OSError, ValueError, AttributeError):
            return  # no descriptor, or no such call
        poll.register(fd, 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            raise PipeClosedError

    def talk(self, text: str) -> None:
        """Say a line on standard error, unless quiet."""
        if not self.quiet:
            complain(text)

    def finish(self) -> None:
        """As `flush`, and also flush the output of argparse and the demo in ``sys.stdout``."""
        self.flush()
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError as error:
            raise PipeClosedError from error
        except OSError as error:
            raise CliError(f"cannot write to standard output: {error.strerror}") from error

    def abandon(self, *, closed: bool = False) -> None:
        """Drop unwritten data: the reader does not read, or (``closed``) closed the pipe.

        A closed standard output is replaced: the last flush of the interpreter is then quiet.
        """
        self._chunks.clear()
        self._size_bytes = 0
        if not closed:
            return
        try:
            sink = os.open(os.devnull, os.O_WRONLY)
            os.dup2(sink, sys.stdout.fileno())
            os.close(sink)
        except (OSError, ValueError, AttributeError):
            pass  # standard output has no descriptor: nothing will be flushed to it


def complain(text: str) -> None:
    """Write ``deedbook: text`` as one line to standard error, if there is one."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"deedbook: {printable(text)}\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        pass  # no reader is left; the exit code still tells


def _write_all(data: bytes) -> None:
    """Write all of ``data``, also to a descriptor with short writes, or without blocking."""
    try:
        fd = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by an object, as in a test
        sys.stdout.write(data.decode("utf-8", "replace"))
        return
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            select.select([], [fd], [])


def to_json(value: dict[str, Any]) -> bytes:
    """A JSON object in UTF-8 with a newline after it."""
    try:
        return escape_json(_encode_text(value)).encode() + b"\n"
    except UnicodeEncodeError:  # a path that is not UTF-8: escapes keep it valid JSON
        return escape_json(_encode_ascii(value)).encode("ascii") + b"\n"


_encode_text: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode
_encode_ascii: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Rows of name and value as lines, aligned."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]
