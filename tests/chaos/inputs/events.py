"""Events for a pipeline's inputs: synthetic ones, or the lines of a file."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, Protocol

from chaos.inputs.signing import public_key, sign
from deedbook._show.json import why_not_json
from deedbook._system.compressed import read_all

Fault = Literal["json", "text", "object", "schema", "key", "time", "empty"]
"""The fault of a line: no JSON, no UTF-8, no object, a field of another type, no key or time, or an
empty line."""

REASONS: Final[dict[Fault, str]] = {
    "json": "not JSON",
    "text": "not UTF-8",
    "object": "not an object",
    "schema": "not of the schema: ",
    "key": "no id",
    "time": "no time",
    "empty": "not JSON",
}

_KINDS: Final = {
    1: 44, 7: 22, 0: 7, 6: 6, 9735: 6, 3: 4, 20001: 3, 5: 3, 10002: 2, 30023: 2, 1063: 1
}  # fmt: skip
"""Kinds by hundredths, roughly as on public relays."""
_CHOICES: Final = (tuple(_KINDS), tuple(accumulate(_KINDS.values())))
_DELETION: Final = 5
_WORDS: Final = (
    "note", "zap", "relay", "GM", "søvn", "冬", "café", "🌱", "key", "why", '"so"', "a\\b",
    "two\nlines",
)  # fmt: skip
_CONTENT_CHARS_MAX: Final = 4000
_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_EXPIRATIONS: Final = ("1000000000", "4102444800")


@dataclass(frozen=True)
class Line:
    data: bytes
    id: str | None
    fault: Fault | None = None


class Events(Protocol):
    def line(self, number: int, form: int) -> Line:
        """An event as JSON. Forms 0 and 1 are different bytes of one event."""


class Synthetic:
    """Made-up events. Ids are correct, signatures are random digits.

    Few authors write most events. Times rise from ``begin`` over ``seconds`` with the numbers up to
    ``count``. One in ten events is minutes late, one in a hundred is hours late, at most a day.
    Some events are profiles that replace each other, deletions, expirations and ephemeral events.
    """

    def __init__(self, seed: int, begin: int, seconds: float, count: int) -> None:
        self._seed = seed
        self._begin = begin
        self._step = seconds / max(1, count)
        # A key takes two milliseconds, once.
        self._authors = min(max(3, count // 40), 2000)
        self._secrets: dict[str, int] = {}
        random = Random(seed)
        self._text = " ".join(random.choices(_WORDS, k=4 * _CONTENT_CHARS_MAX))

    def line(self, number: int, form: int) -> Line:
        event = self.event(number)
        return Line(_dumped(event, form), event["id"])

    def event(self, number: int) -> dict[str, Any]:
        random, kind = self._begun(number)
        author = self._author(int(self._authors * random.random() ** 3))
        created = self._begin + int(number * self._step - _lateness(random))
        tags: list[list[str]] = []
        content = self._content(random)
        if kind == _DELETION:
            before = number - 1 - int(random.random() * min(number, 200))
            if before < 0 or self._begun(before)[1] == _DELETION:
                kind = 1  # nothing to delete
            else:
                deleted = self.event(before)
                author, tags = deleted["pubkey"], _deletes(deleted, random)
                created = max(created, deleted["created_at"])
                content = ""
        if kind == 0:
            content = json.dumps({"name": content[:20], "about": content[20:200]})
        elif kind in (3, 10002):
            content = ""
            tags = [["p", self._author(one)] for one in range(random.randrange(1, 40))]
        elif kind == 30023:
            tags = [["d", f"page-{random.randrange(4)}"], ["title", content[:30]]]
        elif kind in (6, 7, 9735) or (kind == 1 and random.random() < 0.4):
            reply = ["e", f"{random.getrandbits(256):064x}", "wss://relay.example"]
            tags = [reply, ["p", self._author(random.randrange(self._authors))]]
        if kind == 1 and random.random() < 0.02:
            tags = [*tags, ["expiration", random.choice(_EXPIRATIONS)]]
        if kind == 7:
            content = "+"
        event = _signed(author, created, kind, tags, content, random)
        if kind == _DELETION:
            event["sig"] = sign(event["id"], self._secrets[author])
        return event

    def _begun(self, number: int) -> tuple[Random, int]:
        random = Random(self._seed * 1_000_003 + number)
        return random, random.choices(_CHOICES[0], cum_weights=_CHOICES[1])[0]

    @lru_cache(maxsize=4096)  # noqa: B019 - as long as a producer lives
    def _author(self, number: int) -> str:
        secret = int(hashlib.sha256(f"{self._seed}/{number}".encode()).hexdigest()[:63], 16) | 1
        key = public_key(secret)
        self._secrets[key] = secret
        return key

    def _content(self, random: Random) -> str:
        length = min(int(random.lognormvariate(4.4, 1.0)), _CONTENT_CHARS_MAX)
        at = random.randrange(len(self._text) - _CONTENT_CHARS_MAX)
        return self._text[at : at + length]


class OfFile:
    """The lines of a file, without empty ones, in memory; gzip and zstd work."""

    def __init__(self, file: Path) -> None:
        self._lines = [line for line in read_all(file).split(b"\n") if line.strip()]

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, number: int, form: int) -> Line:
        """A line as in the file; with another form, an event is written differently."""
        data = self._lines[number]
        found, fault = judge(data)
        if form and fault is None:
            data = _dumped(json.loads(data), form)
        return Line(data, found, fault)


def judge(data: bytes) -> tuple[str | None, Fault | None]:
    """The key of a line that the pipeline must accept, or the fault of the line."""
    if not data:
        return None, "empty"
    try:
        data.decode()
    except UnicodeDecodeError:
        return None, "text"
    if why_not_json(data) is not None:
        return None, "json"
    event = json.loads(data)
    if not isinstance(event, dict):
        return None, "object"
    if not all(event.get(name) is None or fits(event[name]) for name, fits in _FITS.items()):
        return None, "schema"
    if event.get("id") is None:
        return None, "key"
    at = event.get("created_at")
    return (event["id"], None) if at is not None and 0 <= at < 1 << 32 else (None, "time")


def _is_int(value: Any, bits: int) -> bool:
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "created_at": lambda value: _is_int(value, 64),
    "kind": lambda value: _is_int(value, 32),
    "tags": lambda value: isinstance(value, list) and all(isinstance(one, list) for one in value),
}
"""The values that the pipeline's columns accept, for fields that are not strings."""


def broken(good: Line, random: Random, empty: bool) -> Line:
    """A bad line made of a good one; also an empty line if ``empty`` is set."""
    if good.id is None:
        return good
    kinds: list[Callable[[], Line]] = [
        lambda: _half(good),
        lambda: Line(b"\xff\xfe" + good.data, None, "text"),
        lambda: Line(f"[{random.randrange(1000)}]".encode(), None, "object"),
        lambda: _changed(good, {"kind": "many"}, "schema"),
        lambda: _changed(good, {"created_at": "yesterday"}, "schema"),
        lambda: _changed(good, {"tags": random.randrange(1000)}, "schema"),
        lambda: _changed(good, {"id": None, "content": str(random.random())}, "key"),
        lambda: _changed(good, {"created_at": None}, "time"),
    ]
    if empty:
        kinds.append(lambda: Line(b"", None, "empty"))
    return random.choice(kinds)()


def _half(good: Line) -> Line:
    data = good.data[: len(good.data) // 2]  # may end within a character
    return Line(data, None, judge(data)[1])


def _changed(good: Line, fields: dict[str, Any], fault: Fault) -> Line:
    return Line(_dumped({**json.loads(good.data), **fields}, 0), None, fault)


def _dumped(event: dict[str, Any], form: int) -> bytes:
    if form:
        return json.dumps(dict(reversed(event.items()))).encode()
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()


def _lateness(random: Random) -> float:
    draw = random.random()
    if draw < 0.89:
        return min(random.expovariate(0.05), 300.0)
    return random.random() * (_HOUR if draw < 0.99 else _DAY)


def _deletes(event: dict[str, Any], random: Random) -> list[list[str]]:
    kind, pubkey = event["kind"], event["pubkey"]
    if kind in (0, 3, 10002, 30023) and random.random() < 0.5:
        d = next((tag[1] for tag in event["tags"] if tag[0] == "d"), "")
        return [["a", f"{kind}:{pubkey}:{d}"]]
    return [["e", event["id"]], ["k", str(kind)]]


def _signed(
    pubkey: str, created: int, kind: int, tags: list[list[str]], content: str, random: Random
) -> dict[str, Any]:
    parts = [0, pubkey, created, kind, tags, content]
    canonical = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return {
        "id": hashlib.sha256(canonical.encode()).hexdigest(),
        "pubkey": pubkey,
        "created_at": created,
        "kind": kind,
        "tags": tags,
        "content": content,
        "sig": f"{random.getrandbits(512):0128x}",
    }
