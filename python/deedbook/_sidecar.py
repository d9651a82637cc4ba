"""Where the files lie that Deedbook keeps beside a log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["SIDECAR", "dead_letters_of", "sidecar_of"]

SIDECAR: Final = ".deedbook"
"""The directory in that of a log."""


def sidecar_of(log: str, is_file: bool) -> str:
    """The `.deedbook` of a log; several single files of a directory have one each."""
    if not is_file:
        return os.path.join(log, SIDECAR)
    directory, name = os.path.split(os.path.abspath(log))
    return os.path.join(directory, SIDECAR, name)


def dead_letters_of(directory: str | os.PathLike[str], base: str) -> Path:
    """Where the dead letters of a ledger lie: several ledgers may share a directory."""
    name = "dead-letters" if base == "events" else f"dead-letters-{base}"
    return Path(directory) / SIDECAR / name
