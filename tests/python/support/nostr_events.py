"""Events of Nostr: the golden files, and new events with correct ids."""

import functools
import hashlib
import json
from typing import Any

from chaos.inputs.signing import public_key, sign
from places import DATA, ROOT

SMALL = DATA / "nostr" / "events.jsonl"
_LARGE = ROOT.parent / "shared" / "data" / "nostr-events.jsonl"
LINES = SMALL.read_bytes().splitlines()
EVENTS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
REAL = _LARGE.read_bytes().splitlines() if _LARGE.exists() else LINES

_SECRET = 7
AUTHOR = public_key(_SECRET)


def made(content: str = "hello", **fields: Any) -> dict[str, Any]:
    """An event with a correct id; only deletion requests of ``AUTHOR`` have a valid signature."""
    event = {"pubkey": AUTHOR, "created_at": 1_700_000_000, "kind": 1, "tags": [], **fields}
    event["content"] = content
    parts = [0, *(event[name] for name in ("pubkey", "created_at", "kind", "tags", "content"))]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    event["id"] = hashlib.sha256(text.encode()).hexdigest()
    is_request = event["kind"] == 5 and event["pubkey"] == AUTHOR
    event["sig"] = sign(event["id"], _SECRET) if is_request else "cd" * 64
    return event


@functools.cache
def event(number: int) -> dict[str, Any]:
    created_at = 1_700_000_000 + number
    if number % 10 == 3:
        return made(f"relays {number}", kind=10002, created_at=created_at)
    if number % 10 == 7:
        tags = [["e", event(number - 2)["id"]]]
        return made("", kind=5, tags=tags, created_at=created_at)
    return made(f"note {number} " * 2000, created_at=created_at)


def events(start: int, stop: int) -> list[dict[str, Any]]:
    """Events; every tenth is long and takes several pages."""
    return [
        made(f"{n}:" * (100_000 if n % 10 == 0 else 1), created_at=1_700_000_000 + n)
        for n in range(start, stop)
    ]
