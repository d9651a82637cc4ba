"""Ctrl-C while ``python -m deedbook`` loads its modules: one line, and no traceback."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

__all__ = ["done"]


def _start() -> None:
    """Have Ctrl-C end the process, unless Ctrl-C is ignored."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def done() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again: the command line takes over."""
    import signal

    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_command() -> bool:
    """Whether Python is about to run the package: it calls it ``-m`` until then."""
    given = sys.orig_argv
    return sys.argv[:1] == ["-m"] and ("-m", "deedbook") in pairwise(given)


def _interrupted(*_: object) -> None:
    os.write(2, b"deedbook: interrupted\n")
    os._exit(130)


if _is_command():
    _start()
