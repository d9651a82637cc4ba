"""The columns of an event store: their schema, odd tags, and the rows that a walk gives."""

from datetime import datetime, timezone
from typing import Any

import pytest

from deedbook import EventStore

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TAGS: list[list[list[str]]] = [
    [],
    [[]],
    [[""], ["", ""], ["title", "é\0\U0001f600"]],
    [["t", "é" * 70_000, "after"], ["t", "next"]],
    [["many", *map(str, range(600))], ["x"]],
    [["+"], ["\x01", "one"], ["\x80", "two"]],
]
_KEY = pa.binary(32)
SCHEMA = pa.schema(
    [
        pa.field("id", _KEY, nullable=False),
        pa.field("pubkey", _KEY, nullable=False),
        pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("kind", pa.int32(), nullable=False),
        pa.field(
            "tags",
            pa.list_(
                pa.field("item", pa.list_(pa.field("item", pa.string(), nullable=False)), False)
            ),
            nullable=False,
        ),
        pa.field("content", pa.string(), nullable=False),
        pa.field("sig", pa.binary(64), nullable=False),
        pa.field("flags", pa.int32(), nullable=False),
    ]
)


def walked(store: EventStore, **options: Any) -> list[dict[str, Any]]:
    """The rows that the walk over the events says there are."""
    return [
        {
            "id": bytes.fromhex(event.id),
            "pubkey": bytes.fromhex(event.pubkey),
            "created_at": datetime.fromtimestamp(event.created_at, timezone.utc),
            "kind": event.kind,
            "tags": event.tags,
            "content": event.content,
            "sig": bytes.fromhex(event.sig),
            "flags": int(event.deleted) + 2 * int(event.replaced),
        }
        for event in store.iter(**options)
    ]
