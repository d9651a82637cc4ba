"""Bad lines of an input: the places that are named, and the file that keeps the lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from deedbook._cli.failure import CliError
from deedbook._cli.terminal.output import Output
from deedbook._show.text import count
from deedbook._system.compressed import is_same

__all__ = ["Bad", "refuse_an_input", "tell_bad"]

SHOWN_MAX: Final = 20
"""At most this many bad lines are named, without ``--json``."""


class Bad(NamedTuple):
    """One bad line."""

    line: int
    reason: str


def tell_bad(out: Output, named: Sequence[tuple[str, Bad]], total: int) -> None:
    """Name the first bad lines, each with its input, and say how many more there are."""
    for file, bad in named[:SHOWN_MAX]:
        place = "" if file == "-" else f"{file}: "
        out.talk(f"{place}line {bad.line}: {bad.reason}")
    if total > SHOWN_MAX:
        out.talk(f"and {count(total - SHOWN_MAX, 'more bad line')}")


def refuse_an_input(command: str, aside: str, files: Sequence[str]) -> None:
    """`CliError` if bad lines would go to the end of an input, to be read again forever."""
    for file in files:
        if is_same(0 if file == "-" else file, aside):
            raise CliError(f"{command}: --aside {aside} is one of the inputs", path=aside)
