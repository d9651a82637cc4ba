"""Logs of every format: made with Deedbook, appended to, and read back."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import deedbook
from deedbook import Book, EventStore, Ledger, Pier, Wal
from nostr_events import event, made

KINDS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "packed": (Book, {}),
    "slots": (Book, {"layout": "slots"}),
    "segments": (Wal, {"segment_bytes": 4096}),
    "dropping": (Wal, {"segment_bytes": 4096, "retain_bytes": 40_000}),
    "single": (Wal, {"single_file": True}),
    "pier": (Pier, {}),
}


def make_logs(home: Path, payloads: Sequence[bytes], events: int = 30, **of_wal: Any) -> Path:
    """Make a log of each format under the format's name, with these payloads and Nostr events."""
    third = len(payloads) // 3
    with Book.create(home / "book", durability="manual") as book:
        book.append_many(payloads)
    with Pier.create(home / "pier", durability="manual") as pier:
        pier.append_many(payloads[:third])
        pier.roll()
        pier.append_many(payloads[third:])
    with Wal.create(home / "wal", **of_wal) as wal:
        wal.append_many(payloads)
    with Ledger.open(home / "ledger", "a") as ledger:
        ledger.append_many(payloads)
    with EventStore.create(home / "nostr") as store:
        store.append_many([made(f"event {number}") for number in range(events)])
    return home


def payload(number: int) -> bytes:
    return b"%d " % number * (1 + number % 50 % 40)


def write(name: str, path: Path, first: int = 0) -> None:
    if name == "store":
        with EventStore.open(path, "a", durability="manual") as store:
            store.append_many(event(number) for number in range(first, first + 10))
        return
    if name == "ledger":
        log = Ledger.open(path, "a")
    else:
        kind, options = KINDS[name]
        log = kind.open(path, "a", **options)
    with log:
        log.append_many(payload(number) for number in range(first, first + 300))
        if name == "segments" and first > 0:
            log.sync()
            log.truncate_before(next(iter(log)).next_lsn)


def append_to(format: str, log: Path, records: Iterable[Any], **options: Any) -> None:
    mugs = options.pop("mugs", None)
    with deedbook.open(log, "a", format=format, **options) as opened:  # type: ignore[call-overload]
        opened.append_many(records) if mugs is None else opened.append_many(records, mugs=mugs)


def make_epochs(pier: Path, jams: Mapping[int, Sequence[bytes]], **options: Any) -> Path:
    """Make epochs of a pier by number; returns their directory."""
    log = pier / ".urb" / "log"
    log.mkdir(parents=True, exist_ok=True)
    for number, payloads in jams.items():
        append_to("book", log / f"0i{number}", payloads, epoch=number, **options)
    return log


def payloads(log: Path) -> list[bytes]:
    with deedbook.open(log) as opened:
        assert isinstance(opened, deedbook.Log)
        return list(opened.payloads())


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and ".deedbook" not in file.parts
    }


def span(added: Any) -> tuple[Any, Any]:
    return added.first, added.end
