"""Errors of the command line: exit codes, and one line of text for each error."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from deedbook import CorruptError, Error
from deedbook._cli.signals import Terminated

EXIT_OK: Final = 0
"""Everything is fine."""
EXIT_DAMAGE: Final = 1
"""A log is damaged, or has lost records."""
EXIT_USAGE: Final = 2
"""Wrong usage, unusable input, or a file that cannot be opened, read or written."""
EXIT_INTERRUPTED: Final = 130
"""Stopped by Ctrl-C (128 + SIGINT)."""
EXIT_TERMINATED: Final = 143
"""Stopped by SIGTERM (128 + SIGTERM)."""
EXIT_PIPE_CLOSED: Final = 141
"""The reader of standard output closed the pipe (128 + SIGPIPE, as in shells)."""


class CliError(Exception):
    """A failure to report to the user in one line, with its exit code.

    ``details`` (plain values) go into the error object of ``--json``.
    """

    def __init__(self, text: str, code: int = EXIT_USAGE, **details: Any) -> None:
        super().__init__(text)
        self.code = code
        self.details = details


class PipeClosedError(Exception):
    """The reader of standard output closed the pipe. Only the exit code reports the error."""


def exit_code(error: BaseException) -> int:
    """The exit code for an error that ended a command."""
    if isinstance(error, CliError):
        return error.code
    if isinstance(error, CorruptError):
        return EXIT_DAMAGE
    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    if isinstance(error, Terminated):
        return EXIT_TERMINATED
    if isinstance(error, PipeClosedError | BrokenPipeError):
        return EXIT_PIPE_CLOSED
    return EXIT_USAGE


def describe(error: BaseException) -> str:
    """The error as one line, without the program's name."""
    if isinstance(error, KeyboardInterrupt):
        text = "interrupted"
    elif isinstance(error, Terminated):
        text = "terminated"
    elif isinstance(error, CliError | Error):
        text = str(error)
    elif isinstance(error, OSError) and error.strerror:
        name = error.filename
        known = isinstance(name, str | bytes)
        text = f"{os.fsdecode(name)}: {error.strerror}" if known else error.strerror
    elif isinstance(error, UnicodeEncodeError):  # an argument for the core, which takes texts
        text = f"{error.object[:80]} is not UTF-8"
    elif isinstance(error, MemoryError):
        text = "out of memory"
    else:
        text = f"internal error: {type(error).__name__}: {error}"
    return printable(text)


def details(error: BaseException) -> dict[str, Any]:
    """The error as plain values for JSON: ``kind``, ``message``, and the place where known."""
    found: dict[str, Any] = {"kind": _kind(error), "message": describe(error)}
    for name in ("path", "offset", "durable", "reason", "next_intact", "holder"):
        value = getattr(error, name, None)
        if value is not None:
            found[name] = value
    if isinstance(error, CliError):
        found.update(error.details)
    return found


def printable(text: str) -> str:
    """``text`` on one line, with all control characters escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    """A character as an escape of Python; a surrogate as the stray byte of the path."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def _kind(error: BaseException) -> str:
    if isinstance(error, Error):
        return error.kind
    if isinstance(error, CliError | UnicodeEncodeError):
        return "input"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, Terminated):
        return "terminated"
    return "io" if isinstance(error, OSError) else "internal"


def trace(error: BaseException) -> None:
    """Show the traceback of an error, if ``DEEDBOOK_DEBUG`` is set in the environment."""
    if os.environ.get("DEEDBOOK_DEBUG"):
        import traceback  # as slow to load as the rest of the command line

        for part in traceback.format_exception(error):
            for line in part.rstrip("\n").split("\n"):
                print(printable(line), file=sys.stderr)
