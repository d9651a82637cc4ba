"""The common interface of all logs, and the few exceptions that a format needs."""

from __future__ import annotations

import ast
import inspect
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import deedbook
from deedbook import Book, EventStore, Ledger, Pier, Wal, _core
from deedbook.aio import AsyncBook, AsyncEventStore, AsyncLedger, AsyncPier, AsyncWal
from nostr_events import made

CLASSES: Final[tuple[type, ...]] = (Book, Wal, Ledger, EventStore, Pier)
TWINS: Final[dict[type, type]] = {
    AsyncBook: Book,
    AsyncWal: Wal,
    AsyncLedger: Ledger,
    AsyncEventStore: EventStore,
    AsyncPier: Pier,
}

SHARED: Final[dict[str, tuple[str, ...]]] = {
    "open": ("path", "mode", "durability", "slow_sync", "file_mode"),
    "create": ("path", "durability", "slow_sync", "file_mode"),
    "append": ("payload", "sync"),
    "append_many": ("payloads",),
    "commit": ("payload",),
    "sync": (),
    "iter": ("start", "stop", "reverse", "on_corrupt"),
    "payloads": ("start", "stop"),
    "follow": ("start", "timeout"),
    "batches": ("start", "stop", "columns", "batch_rows", "batch_bytes", "on_corrupt"),
    "splits": ("split_bytes", "start", "stop"),
    "verify": ("path", "progress"),
    "repair": ("path", "force", "dry_run", "accept_loss"),
    "salvage": ("path", "to", "progress"),
    "backup": ("target", "progress"),
    "close": (),
    "stats": (),
    "__getitem__": (),
    "__iter__": (),
    "__arrow_c_stream__": ("requested_schema",),
    "path": (),
    "mode": (),
    "closed": (),
    "durability": (),
    "transactions": (),
}
"""The members of each class, with the common parameters in this order."""

DEFAULTS: Final[dict[tuple[str, str], object]] = {
    ("open", "mode"): "r",
    ("append", "sync"): True,
    ("iter", "reverse"): False,
    ("iter", "on_corrupt"): "raise",
    ("follow", "timeout"): None,
    ("batches", "batch_rows"): 65536,
    ("batches", "batch_bytes"): 2097152,
    ("batches", "on_corrupt"): "raise",
    ("splits", "split_bytes"): 67108864,
    ("repair", "force"): False,
    ("repair", "dry_run"): False,
    ("repair", "accept_loss"): False,
    ("open", "slow_sync"): 1.0,
    ("open", "durability"): None,
    ("create", "durability"): None,
}

DURABILITY: Final[dict[type, object]] = {
    Book: "always",
    Pier: "always",
    Wal: "manual",
    Ledger: "none",
    EventStore: timedelta(milliseconds=100),
}
FILE_MODE: Final[dict[type, int]] = {
    Book: 0o644,
    Pier: 0o644,
    Wal: 0o600,
    Ledger: 0o600,
    EventStore: 0o600,
}
"""Defaults required by the specifications."""

REPORT_FIELDS: Final = ("ok", "verdict", "records", "damages", "loss")

DIFFERS: Final[dict[str, str]] = {
    "EventStore.append.payload": "an event is no bytes: the parameter is `event`",
    "EventStore.append_many.payloads": "events are no bytes: the parameter is `events`",
    "EventStore.commit.payload": "an event is no bytes: the parameter is `event`",
    "EventStore.append.sync": "threads that append share the syncs of the store",
    "EventStore.payloads.start": "a compaction moves events: `query` selects them",
    "EventStore.payloads.stop": "a compaction moves events: `query` selects them",
    "EventStore.follow": "a reader sees the store as it was when it was opened",
    "EventStore.__getitem__.slice": "a compaction moves events: `query` selects them",
    "EventStore.iter.start": "a compaction moves events: `query` selects them",
    "EventStore.iter.stop": "a compaction moves events: `query` selects them",
    "EventStore.batches.start": "a compaction moves events: `filter` selects them",
    "EventStore.batches.stop": "a compaction moves events: `filter` selects them",
    "EventStore.splits.start": "a compaction moves events: `filter` selects them",
    "EventStore.splits.stop": "a compaction moves events: `filter` selects them",
    "EventStore.append_many.range": "each event has an outcome: it may be a duplicate",
}
"""The exceptions, each with the reason: `Class.member`, or `Class.member.parameter`."""

STUB: Final = ast.parse(Path(deedbook.__file__).with_name("_core.pyi").read_text())


def members(owner: type) -> dict[str, list[ast.FunctionDef]]:
    nodes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    found: dict[str, list[ast.FunctionDef]] = {}
    for base in reversed(owner.__mro__):
        node = nodes.get(base.__name__) if base.__module__ != "builtins" else None
        of_class: dict[str, list[ast.FunctionDef]] = {}
        for member in node.body if node is not None else ():
            if isinstance(member, ast.FunctionDef):
                of_class.setdefault(member.name, []).append(member)
        found |= of_class
    return found


def parameters(owner: type, name: str) -> dict[str, inspect.Parameter]:
    value = inspect.getattr_static(owner, name)
    value = getattr(value, "__func__", value)
    if not callable(value) or (name.startswith("__") and name != "__arrow_c_stream__"):
        return {}
    found = dict(inspect.signature(value).parameters)
    return {name: one for name, one in found.items() if name not in ("self", "cls")}


def doc(owner: type, name: str) -> str:
    return inspect.getdoc(getattr(owner, name)) or ""


def returned(owner: type, name: str) -> str:
    return ast.unparse(members(owner)[name][-1].returns or ast.Constant(None))


def report_class(owner: type, name: str) -> type:
    found = getattr(_core, returned(owner, name).removeprefix("list[").removesuffix("]"))
    assert isinstance(found, type)
    return found


def record(owner: type, number: int) -> Any:
    return made(str(number)) if owner is EventStore else b'{"n": %d}' % number
