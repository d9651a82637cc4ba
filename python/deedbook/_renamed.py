"""The replacements of removed and moved names."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NoReturn

from deedbook import _core

__all__ = ["GONE", "Gone", "add_gone", "missing"]

_ATOMIC: Final = "append_many(..., atomic=True)"
_UNSYNCED: Final = "append(..., sync=False)"

GONE: Final[dict[str, dict[str, str]]] = {
    "Book": {"append_batch": _ATOMIC, "append_unsynced": _UNSYNCED, "jams": "payloads()"},
    "Pier": {"append_batch": _ATOMIC, "jams": "payloads()"},
    "Wal": {
        "append_atomic": _ATOMIC,
        "append_batch": "append_many(...)",
        "append_unsynced": _UNSYNCED,
    },
    "Ledger": {"append_batch": _ATOMIC, "append_unsynced": _UNSYNCED},
    "DeedRange": {"jams": "payloads()"},
    "Transactions": {"commit": "publish(...)"},
    "EventStoreReport": {"first_faults": "damages"},
    "EventStoreSalvage": {"complete": "ok", "events": "records"},
}
"""Removed members of classes, with their replacements."""

_MOVED: Final = {
    "LedgerSnapshot": "deedbook.Ledger: Ledger.open(path) reads",
}


class Gone:
    """A removed member. Reading it raises an error with the replacement."""

    def __init__(self, name: str, now: str) -> None:
        self._name = name
        self._now = now

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__}.{self._name} is gone: use {self._now}")


def add_gone() -> None:
    """Let the classes of the core name the replacements of old members."""
    for owner, members in GONE.items():
        for name, now in members.items():
            setattr(getattr(_core, owner), name, Gone(name, now))


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have."""
    now = _MOVED.get(name)
    for place in ("deedbook.jobs", "deedbook.reports"):
        if name in import_module(place).__all__:
            now = f"{place}.{name}"
    reason = f"; it is {now}" if now and module == "deedbook" else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{reason}")
