"""Processes in Linux's ``/proc``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["Status", "status"]


class Status(NamedTuple):
    """A process."""

    name: str
    state: str
    """``Z``: the process ended, and the parent has not waited."""
    parent: int
    session: int
    """The process that began the session."""
    start: str
    """The time of the start, in ticks since the machine's start."""


def status(pid: int) -> Status:
    """Look at a process. Raises OSError, and ValueError if the process ends meanwhile."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 20:
        raise ValueError(f"process {pid}: /proc shows {text!r:.80}")
    return Status(name, fields[0], int(fields[1]), int(fields[3]), fields[19])
