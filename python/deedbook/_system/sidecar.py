"""Paths of the files that Deedbook keeps next to a log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["SIDECAR", "dead_letters_of", "sidecar_of"]

SIDECAR: Final = ".deedbook"
"""The directory below a log's directory."""


def sidecar_of(log: str, is_file: bool) -> str:
    """The `.deedbook` of a log; each log of a single file has its own."""
    if not is_file:
        return os.path.join(log, SIDECAR)
    directory, name = os.path.split(os.path.abspath(log))
    return os.path.join(directory, SIDECAR, name)


def dead_letters_of(directory: str | os.PathLike[str], base: str) -> Path:
    """The path of a ledger's dead letters. Several ledgers may share a directory."""
    name = "dead-letters" if base == "events" else f"dead-letters-{base}"
    return Path(directory) / SIDECAR / name
