"""The input: a generator of analytics events, and the hashes of the lines.

The generated week is the same for the same seed and number of events, byte for byte. The week
resembles real traffic: an evening peak, a calmer weekend, sessions, messages slightly out of order,
and an incident on Thursday with many errors.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from typing import Any

from deedbook._cli.first_minute import DemoError, Source, read_lines

DAYS = 7
START = datetime(2026, 3, 2, tzinfo=timezone.utc)  # a Monday
INCIDENT_MINUTES = range(3 * 1440 + 14 * 60, 3 * 1440 + 16 * 60 + 30)
LATE_SECONDS_MAX = 20.0

WEIGHTS = {
    "page_view": 50,
    "click": 24,
    "search": 9,
    "scroll": 6,
    "add_to_cart": 5,
    "purchase": 2,
    "error": 2,
    "sign_up": 1,
}
INCIDENT_WEIGHTS = WEIGHTS | {"error": 45, "purchase": 0}

SECTIONS = ("", "shoes", "jackets", "tents", "maps", "søvn", "stoves", "boats", "sale")
WORDS = ("red", "light", "warm", "small", "two", "person", "blå", "winter", "冬", "rain", "café")
ELEMENTS = ("menu", "photo", "size", "colour", "more", "review", "share", "help")
CURRENCIES = ("EUR", "EUR", "EUR", "DKK", "USD")
LOCALES = ("en-GB", "de-DE", "da-DK", "fr-FR", "ja-JP")
REFERRERS = (None, None, "https://search.example/", "https://news.example/outdoor/2026/gear")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:147.0) Gecko/20100101 Firefox/147.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_2 like Mac OS X) Mobile/15E148 Safari/604.1",
    "Shop/4.11.2 (Android 16)",
)
ERRORS = (
    ("TimeoutError", "no answer from cart within 3000 ms"),
    ("TypeError", "undefined is not an object (evaluating 'cart.items.length')"),
    ("HTTPError", "503 Service Unavailable from payments, request given up after 3 tries"),
)

Properties = Callable[[Random], dict[str, Any]]


def generate(path: Path, events: int, seed: int) -> None:
    """Write ``events`` JSON lines in order of arrival."""
    random = Random(seed)
    minutes = random.choices(range(DAYS * 1440), cum_weights=list(accumulate(_traffic())), k=events)
    arrivals = sorted(minute * 60 + random.random() * 60 for minute in minutes)
    users = [f"{random.getrandbits(48):012x}" for _ in range(max(1, events // 60))]
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for arrival in arrivals:
            file.write(dump(_event(random, arrival, users)) + "\n")


def _traffic() -> Iterator[float]:
    """Weight of each minute of the week."""
    for minute in range(DAYS * 1440):
        day, hour = divmod(minute / 60, 24)
        evening = math.exp(-(((hour - 20) / 2.8) ** 2))
        noon = 0.7 * math.exp(-(((hour - 12.5) / 3.5) ** 2))
        yield (0.08 + evening + noon) * (0.7 if day >= 5 else 1.0)


def _event(random: Random, arrival: float, users: list[str]) -> dict[str, Any]:
    """An event sent shortly before arriving ``arrival`` seconds after the start."""
    incident = int(arrival // 60) in INCIDENT_MINUTES
    weights = INCIDENT_WEIGHTS if incident else WEIGHTS
    kind = random.choices(tuple(weights), tuple(weights.values()))[0]
    # Squares prefer small numbers: few users make most of the traffic.
    user = users[int(len(users) * random.random() ** 2)]
    sent = max(0.0, arrival - LATE_SECONDS_MAX * random.random() ** 4)
    event: dict[str, Any] = {
        "messageId": f"{random.getrandbits(128):032x}",
        "type": kind,
        "ts": (START + timedelta(seconds=sent)).isoformat(timespec="milliseconds")[:-6] + "Z",
        "anonymousId": user,
        "sessionId": f"{user[:6]}-{int(arrival // 5400):04x}",
    }
    section = random.choice(SECTIONS)
    if kind in ("page_view", "error"):
        event["page"] = {
            "path": f"/{section}/{random.randrange(5000)}",
            "title": section or "home",
            "referrer": random.choice(REFERRERS),
        }
        event["context"] = {"userAgent": random.choice(AGENTS), "locale": random.choice(LOCALES)}
    else:
        event["page"] = {"path": f"/{section}"}
    if kind in PROPERTIES:
        event["properties"] = PROPERTIES[kind](random)
    return event


def _items(random: Random) -> list[dict[str, Any]]:
    return [
        {
            "sku": f"{random.choice(SECTIONS[1:])[:3].upper()}-{random.randrange(10**6):06d}",
            "price": random.randrange(500, 40000) / 100,
            "quantity": random.randrange(1, 4),
        }
        for _ in range(random.randrange(1, 6))
    ]


def _purchase(random: Random) -> dict[str, Any]:
    items = _items(random)
    total = round(sum(item["price"] * item["quantity"] for item in items), 2)
    return {"total": total, "currency": random.choice(CURRENCIES), "items": items}


def _error(random: Random) -> dict[str, Any]:
    name, message = random.choice(ERRORS)
    return {"name": name, "message": message, "fatal": random.random() < 0.2}


PROPERTIES: dict[str, Properties] = {
    "click": lambda random: {
        "element": random.choice(ELEMENTS),
        "x": random.randrange(1440),
        "y": random.randrange(4000),
    },
    "search": lambda random: {
        "query": " ".join(random.sample(WORDS, random.randrange(1, 5))),
        "results": random.randrange(400),
    },
    "scroll": lambda random: {"depth": random.randrange(1, 101)},
    "add_to_cart": lambda random: _items(random)[0],
    "purchase": _purchase,
    "error": _error,
    "sign_up": lambda random: {"plan": random.choice(("free", "club")), "newsletter": True},
}


def take_stock(path: Path, generated: bool, lines_max: int | None, hashes: Path) -> Source:
    """Count the lines of the input, and write number, length and SHA-256 of each as Parquet.

    Neither the core nor Spark computes these hashes, so the hashes can check both. Raises
    `DemoError` for an empty input.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = {"event": pa.int64(), "length": pa.int64(), "sha256": pa.string()}
    schema = pa.schema([pa.field(name, kind) for name, kind in fields.items()])
    count = total = 0
    stop = (lines_max or 2**62) + 1
    rest = read_lines(path, 1, stop)
    with pq.ParquetWriter(hashes, schema) as writer:
        while chunk := list(islice(rest, 65536)):
            numbers = range(count + 1, count + 1 + len(chunk))
            columns = {
                "event": numbers,
                "length": [len(line) for line in chunk],
                "sha256": [hashlib.sha256(line).hexdigest() for line in chunk],
            }
            writer.write_table(pa.table(columns, schema=schema))
            count += len(chunk)
            total += sum(map(len, chunk))
    if count == 0:
        raise DemoError(f"the input {path} is empty", 2)
    return Source(path, generated, count, total)
