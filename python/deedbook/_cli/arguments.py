"""Arguments of several commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from deedbook._show import amounts

Commands = Any  # argparse keeps the type of add_subparsers() private

# A thousand years, in seconds.
_AGE_MAX: Final = 1000 * 366 * 86400


def add_path(parser: argparse.ArgumentParser) -> None:
    """The log."""
    parser.add_argument("path", metavar="PATH", help="directory or file of the log")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """The logs, one at least."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="directory or file of a log; several are possible"
    )


def add_base(parser: argparse.ArgumentParser) -> None:
    """The ledger, if several share the directory."""
    parser.add_argument(
        "--base",
        metavar="BASE",
        help="base name of the ledger's files, if several ledgers share the directory",
    )


def add_which(parser: argparse.ArgumentParser) -> None:
    """The ledger in a directory, and the segment size of a WAL."""
    add_base(parser)
    parser.add_argument(
        "--segment-bytes",
        metavar="BYTES",
        type=size,
        help="segment size of the WAL, with k, m or g, if neither .deedbook nor a whole segment "
        "has the size",
    )


def add_json(
    parser: argparse.ArgumentParser, text: str = "print the result as one JSON object"
) -> None:
    """Whether the result is for programs."""
    parser.add_argument("--json", action="store_true", help=text)


def add_lock_timeout(parser: argparse.ArgumentParser) -> None:
    """How long opening for writing waits."""
    parser.add_argument(
        "--lock-timeout",
        metavar="TIME",
        type=seconds,
        default=0.0,
        help="wait up to TIME for another writer, for example 10s (default: 0, fail at once)",
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Whether a command only prints the changes."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print the changes without making them"
    )


def add_skip_corrupt(parser: argparse.ArgumentParser) -> None:
    """Whether a command goes on after damage."""
    parser.add_argument(
        "--skip-corrupt", action="store_true", help="continue after damage, and exit with 1"
    )


def add_bad_lines(parser: argparse.ArgumentParser) -> None:
    """How a command treats bad lines of an input."""
    parser.add_argument("--aside", metavar="FILE", help="append bad lines to FILE, unchanged")
    parser.add_argument(
        "--stop-at-bad", action="store_true", help="stop at the first bad line, and exit with 2"
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Whether only errors are shown."""
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only errors, no progress and no summary"
    )


def add_batches(parser: argparse.ArgumentParser, target: str) -> None:
    """How a job of Spark goes through its source."""
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help=f"keep the progress of the job in DIR (default: {target}.jobs)",
    )
    parser.add_argument(
        "--batch-size",
        metavar="BYTES",
        type=size,
        default=1 << 30,
        help="read about BYTES in a batch; a killed job repeats the last batch (default: 1g)",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How a job of Spark reads logs that others append to, and drop from."""
    parser.add_argument(
        "--consumer",
        metavar="NAME",
        help="register the consumer NAME in each WAL; the WAL keeps the records that NAME has not "
        "read",
    )
    parser.add_argument(
        "--go-on-after-loss",
        action="store_true",
        help="continue with a warning if a log dropped unread records",
    )


def _amount(text: str, parse: Callable[[str], float], units: str, what: str) -> int:
    """A whole number from 1 up, which may end in a unit."""
    try:
        amount = parse(text)
    except ValueError:
        amount = 0
    if amount != int(amount) or not 0 < amount < 2**63:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not {what}: a number, or a number with {units}, below 2**63"
        )
    return int(amount)


def size(text: str) -> int:
    """Bytes, with k, m or g."""
    return _amount(text, amounts.size, "k, m, g", "a size")


def seconds(text: str) -> float:
    """Seconds, which may have a fraction, or a unit: ``0.5``, ``500ms``, ``10s``, ``2m``."""
    try:
        found = amounts.duration(text)
    except ValueError:
        try:
            found = float(text)
        except ValueError:
            found = -1.0
    if not 0 <= found <= _AGE_MAX:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time from 0 to {_AGE_MAX} s")
    return found


def positive(text: str) -> int:
    """A number from 1 up."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1 up")
    return int(text)


def age(text: str) -> int:
    """Seconds, or with m, h or d."""
    seconds = _amount(text, amounts.duration, "s, m, h, d", "an age")
    if seconds > _AGE_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is {seconds} s, at most {_AGE_MAX}")
    return seconds
