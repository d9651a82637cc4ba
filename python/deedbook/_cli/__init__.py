"""The command line of Deedbook: ``deedbook COMMAND ...`` or ``python -m deedbook COMMAND ...``."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Sequence

from deedbook._cli import parser
from deedbook._cli.failure import (
    EXIT_INTERRUPTED,
    EXIT_PIPE_CLOSED,
    EXIT_TERMINATED,
    describe,
    details,
    exit_code,
    printable,
    trace,
)
from deedbook._cli.signals import Termination
from deedbook._cli.terminal.output import Output, complain

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; ``argv`` defaults to the process's arguments.

    An error becomes one line on standard error. ``DEEDBOOK_DEBUG=1`` in the environment adds the
    traceback. Raises nothing.
    """
    _keep_standard_descriptors()
    _allow_many_files()
    out = Output()
    wants_json = False
    logger = logging.getLogger("deedbook")
    logger.addFilter(_is_news)
    # Without a handler, Python's handler of last resort would print file names unescaped.
    handler = None if logger.hasHandlers() else _Lines(logging.WARNING)
    if handler is not None:
        logger.addHandler(handler)
    try:
        with Termination():
            argv = sys.argv[1:] if argv is None else list(argv)
            try:
                args = parser.parse(argv)
            except SystemExit as end:  # --help and --version
                out.finish()
                return int(end.code or 0)
            out.quiet = getattr(args, "quiet", False)
            printing = args.command in ("cat", "tail", "demo")  # no error among the printed lines
            wants_json = getattr(args, "json", False) and not printing
            code: int = args.run(args, out)
            out.finish()
            return code
    except BaseException as error:  # a panic of the core is not an Exception
        return _fail(error, out, wants_json)
    finally:
        logger.removeFilter(_is_news)
        if handler is not None:
            logger.removeHandler(handler)


class _Lines(logging.Handler):
    """Shows lines of the log on standard error, with everything unprintable escaped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line of the log, and the lines of an attached exception."""
        lines = [record.getMessage()]
        if record.exc_info:
            lines += logging.Formatter().formatException(record.exc_info).split("\n")
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
                sys.stderr.flush()


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of the log is news: the command reports damage by itself."""
    return not record.getMessage().startswith(("damage met: ", "damage passed over: "))


def _fail(error: BaseException, out: Output, wants_json: bool) -> int:
    """Report the error that ended a command; return the exit code."""
    trace(error)
    code = exit_code(error)
    if code == EXIT_PIPE_CLOSED:
        out.abandon(closed=True)
        return code
    if code in (EXIT_INTERRUPTED, EXIT_TERMINATED):
        out.abandon()
    else:
        try:
            if wants_json and not out.emitted:
                out.emit({"ok": False, "error": details(error)})
            out.finish()
        except Exception:  # the error that ended the command is the one to report
            out.abandon(closed=True)
    complain(describe(error))
    return code


def _keep_standard_descriptors() -> None:
    """Fill the descriptors 0 to 2 that the parent closed.

    Otherwise the log could get descriptor 1 or 2, and a message would go into the log.
    """
    while True:
        try:
            fd = os.open(os.devnull, os.O_RDWR)
        except OSError:
            return
        if fd > 2:
            os.close(fd)
            return


def _allow_many_files() -> None:
    """Raise the limit of open files as far as allowed: each epoch of a pier takes up to two."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
