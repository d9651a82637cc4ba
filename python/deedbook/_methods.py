"""Methods of the core's classes in Python, set at the import of the package."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from deedbook import _core, jobs, reports
from deedbook._renamed import add_gone

__all__ = ["add"]


def add() -> None:
    """Give the classes their methods."""
    for owner in (_core.Log, _core.Pier, _core.Ledger, _core.EventStore):
        owner.backup = _backup  # type: ignore[method-assign]
    # The class is iterable, but does not search payloads: `in` is a TypeError, as in other logs.
    _core.Ledger.__contains__ = None
    for module in (jobs, reports):
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == "deedbook":
                value.__module__ = module.__name__
    add_gone()


def _backup(
    self: _core.Log[Any] | _core.Pier | _core.Ledger | _core.EventStore,
    target: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    progress: Callable[[int], object] | None = None,
) -> _core.BackupReport:
    """Copy the log, or bring a copy up to date; see `deedbook.backup`.

    A writer syncs first, so the copy has all appended records.
    """
    if self.mode != "r":
        self.sync()
    return _core.backup(self.path, target, progress=progress)


_backup.__name__ = "backup"
