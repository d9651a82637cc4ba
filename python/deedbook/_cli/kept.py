"""What the commands that drop from a log's beginning, or keep it from that, have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Literal

from deedbook import Pier, Wal
from deedbook._cli.failure import CliError
from deedbook._formats import require
from deedbook._formats.log import LogInfo

__all__ = ["open_kept", "position_or_end"]


def open_kept(
    args: argparse.Namespace, mode: Literal["r", "a"], formats: Sequence[LogInfo[Any]]
) -> Wal | Pier:
    """The log, which must be there and of one of the formats: dropping from it creates nothing."""
    found = require(args.path)
    if found.format not in formats or found.saved:
        saved = "the saved end of " if found.saved else ""
        titles = " and ".join(f"{info.title}s" for info in formats)
        raise CliError(
            f"{args.command}: {args.path} holds {saved}a {found.format.title}, this is for {titles}"
        )
    timeout = args.lock_timeout if mode == "a" else 0.0
    opened: Wal | Pier = found.format.log.open(args.path, mode, lock_timeout=timeout)
    return opened


def position_or_end(text: str, what: str) -> int | str:
    """Parse a position, or ``end``. Raises `argparse.ArgumentTypeError`."""
    if text == "end":
        return text
    if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is neither {what} nor 'end'")
