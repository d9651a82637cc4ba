"""How long events took to gold.

From their append, where it is known: the producers of a trial note it. Of other sources it is not:
a write-ahead log keeps no times, and a file's time is that of its last change, wherever it was
made. So there it is from the end of the batch that brought a record into bronze.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, Literal

from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.notes import expected_file, notes_of
from deedbook.pipeline.progress import batches_of

__all__ = ["Latency", "Spread", "Taken", "latency_of"]

_BATCH: Final = re.compile(r"part-[^-]+-([0-9]+)-")
"""The batch in the name of a table's file."""


@dataclass(frozen=True)
class Taken:
    """Events of one source that came to gold with one batch, and took as long."""

    source: str
    """Where they came first."""
    at: datetime
    """When they were in gold."""
    seconds: float
    events: int


@dataclass(frozen=True)
class Spread:
    """How long some events took."""

    events: int
    median: float
    most: float
    """95 of 100 took no longer."""
    worst: float

    @classmethod
    def of(cls, taken: Sequence[Taken]) -> Spread:
        """Of one event at least."""
        ordered = sorted(taken, key=lambda one: one.seconds)
        events = sum(one.events for one in ordered)

        def at(share: float) -> float:
            left = math.ceil(share * events)
            for one in ordered:
                left -= one.events
                if left <= 0:
                    return one.seconds
            return ordered[-1].seconds

        return cls(events, at(0.5), at(0.95), at(1.0))


@dataclass(frozen=True)
class Latency:
    """How long events took to gold."""

    begins: Literal["append", "bronze"]
    taken: tuple[Taken, ...]
    """By when they were in gold."""
    unknown: int
    """Events in gold of which it is not known when they were appended."""

    def by_source(self) -> dict[str, Spread]:
        """Of each source that has any."""
        names = sorted({one.source for one in self.taken})
        return {
            name: Spread.of([one for one in self.taken if one.source == name]) for name in names
        }

    def by_time(self) -> list[tuple[datetime, Spread]]:
        """Of the events that came to gold at the same time."""
        found: dict[datetime, list[Taken]] = {}
        for one in self.taken:
            found.setdefault(one.at, []).append(one)
        return [(at, Spread.of(taken)) for at, taken in sorted(found.items())]


def latency_of(config: Config) -> Latency:
    """From append to gold where the inputs have notes with times, else from bronze. Raises OSError.

    From bronze, an event is each record, and it is in gold with the first batch after which silver
    had read all of bronze.
    """
    layout = Layout(config)
    appended = _appended(config)
    if appended:
        taken = Counter(_since_append(config, layout, appended))
        unknown = taken.pop(None, 0)
        known = (Taken(*key, events) for key, events in taken.items() if key is not None)
        return Latency("append", _ordered(known), unknown)
    return Latency("bronze", _ordered(_since_bronze(config, layout)), 0)


def _ordered(taken: Iterator[Taken]) -> tuple[Taken, ...]:
    return tuple(sorted(taken, key=lambda one: (one.at, one.source, one.seconds)))


def _appended(config: Config) -> dict[bytes, tuple[float, str]]:
    """When and where an event was acknowledged first, by its id."""
    found: dict[bytes, tuple[float, str]] = {}
    for source in config.sources:
        file = expected_file(source.path.parent, source.name)
        for note in notes_of(file) if file.exists() else ():
            if note.id is not None and note.at is not None:
                key, appended = bytes.fromhex(note.id), (note.at, source.name)
                found[key] = min(found.get(key, appended), appended)
    return found


def _since_append(
    config: Config, layout: Layout, appended: dict[bytes, tuple[float, str]]
) -> Iterator[tuple[str, datetime, float] | None]:
    """For each event of gold; None if it is not known when it was appended."""
    import pyarrow.parquet as pq

    reached: dict[int, datetime] = {}
    for batch in batches_of(layout, SILVER):
        reached.setdefault(batch.number, batch.at)
    for file in layout.silver(config.tables[0]).rglob("part-*.parquet"):
        number = _BATCH.match(file.name)
        at = reached.get(int(number[1])) if number is not None else None
        if at is None:
            continue  # it is on its way to gold
        ids: list[Any] = pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
        for id_ in ids:
            known = appended.get(id_)
            if known is None:
                yield None
            else:
                begin = datetime.fromtimestamp(known[0], timezone.utc)
                yield known[1], at, round((at - begin).total_seconds(), 3)


def _since_bronze(config: Config, layout: Layout) -> Iterator[Taken]:
    complete = [
        batch.at
        for batch in batches_of(layout, SILVER)
        if batch.lag is None or batch.lag.records == 0
    ]
    for source in config.sources:
        for batch in batches_of(layout, source.name):
            at = next((one for one in complete if one >= batch.at), None)
            if at is not None and batch.rows:
                seconds = round((at - batch.at).total_seconds(), 3)
                yield Taken(source.name, at, seconds, batch.rows)
