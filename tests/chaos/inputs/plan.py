"""The lines of each producer, in order: the same for the same settings."""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Final

from chaos.inputs.events import Events, Line, OfFile, Synthetic, broken
from deedbook._system.regular import read_json

INPUTS: Final = {"files": "files", "orders": "app.wal", "spool": "spool"}
"""The sources to fill, and the paths of their inputs in the directory."""
SETTINGS_FILE: Final = "generator.json"

_SHARES: Final = {"files": 0.5, "orders": 0.3, "spool": 0.2}
_AGAIN: Final = 0.04
"""The share of events that the same producer sends again, up to `_RECENT` events later."""
_ELSEWHERE: Final = 0.04
"""The share of events that another producer also sends."""
_BAD: Final = 0.02
_RECENT: Final = 1000


@dataclass(frozen=True)
class Settings:
    events: int
    """The number of different events, without repeated events and bad lines."""
    seed: int
    rate: float | None
    source: str | None
    begin: int
    seconds: float
    """The time from the first to the last event, without the lateness of both."""

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> "Settings":
        return cls(**read_json(file))

    def make_events(self) -> Events:
        if self.source is not None:
            return OfFile(Path(self.source))
        return Synthetic(self.seed, self.begin, self.seconds, self.events)


def plan(settings: Settings, name: str) -> Iterator[tuple[int, Line]]:
    """The lines of a producer, each with the number of an event, which decides when it is due."""
    random = Random(settings.seed)
    events = settings.make_events()
    names = tuple(INPUTS)
    own: deque[int] = deque(maxlen=_RECENT)
    for number in range(settings.events):
        # Each producer draws as often for each event, because all must agree.
        whose, again, which, bad, elsewhere = (random.random() for _ in range(5))
        first = _pick(whose)
        if first == name:
            own.append(number)
            good = events.line(number, 0)
            yield number, good
            if again < _AGAIN:
                yield number, events.line(own[int(which * len(own))], int(2 * again / _AGAIN))
            if bad < _BAD:
                # A record of a ledger has at least one byte.
                yield number, broken(good, Random(number), name != "spool")
        elif elsewhere < _ELSEWHERE:
            others = [one for one in names if one != first]
            if others[int(elsewhere / _ELSEWHERE * len(others))] == name:
                yield number, events.line(number, 1)


def _pick(draw: float) -> str:
    for name, share in _SHARES.items():
        draw -= share
        if draw < 0:
            return name
    return next(reversed(_SHARES))
