"""Faults other than kills: a lost checkpoint, a full disk, a truncated log.

The chaos makes each fault between two runs. The next run must refuse to continue, name the reason,
and leave the affected files unchanged. Then the fault is undone, and the following run continues. A
run that does anything else fails a check of the trial.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.check import Check
from chaos.kills.trouble import KINDS, NotNowError, Place, Trouble
from chaos.runs import Once, Runs

TROUBLES: Final = tuple(kind.name for kind in KINDS)

_KILLS: Final = 50
_TRIES: Final = 4
"""Attempts per fault at the end, with a run in between that brings new records."""


@dataclass(frozen=True)
class Made:
    name: str
    moment: str
    wrong: str | None
    said: str
    seconds: float


class Troubles:
    """Faults among ``kills`` kills, each at a position that follows from the seed."""

    def __init__(
        self,
        runs: Runs,
        seed: int,
        kills: int,
        aside: Path,
        paused: Callable[[], AbstractContextManager[object]],
    ) -> None:
        order = random.Random(f"{seed} troubles")
        aside.mkdir(parents=True, exist_ok=True)
        self._place = Place(runs.home, runs, aside, paused, order)
        rounds = max(1, kills // _KILLS)
        places = [
            (kills * (number + order.uniform(0.2, 0.8)) / rounds, kind)
            for number in range(rounds)
            for kind in KINDS
        ]
        places.sort(key=lambda place: place[0])
        self._due = [(at, kind(self._place)) for at, kind in places]
        self._made: dict[type[Trouble], list[Made]] = {}
        self._why: dict[type[Trouble], str] = {}

    def due(self, killed: int) -> Iterator[Made]:
        """Make the faults due after ``killed`` kills, if they are possible now."""
        self._look()
        for at, trouble in list(self._due):
            if at <= killed and (made := self._make(trouble)) is not None:
                self._due.remove((at, trouble))
                yield made

    def rest(self) -> Iterator[Made]:
        """Make the faults that were impossible before, while inputs still grow."""
        for _ in range(_TRIES):
            if self._due:
                yield from self.due(1 << 62)
            if self._due:
                self._place.runs.once()  # brings new records

    def checks(self) -> list[Check]:
        checks = []
        for kind, made in self._made.items():
            wrong = [one.wrong for one in made if one.wrong is not None]
            times = "once" if len(made) == 1 else f"{len(made)} times"
            found = f"not {len(wrong)} of {len(made)}: {wrong[0]}" if wrong else times
            said = "" if wrong else f", it said: {made[-1].said}"
            checks.append(Check(kind.check, not wrong, times, f"{found}{said}"))
        return checks

    def not_tried(self) -> list[str]:
        return [
            f"{kind.name}: {self._why.get(kind, 'too few kills')}"
            for kind in KINDS
            if kind not in self._made
        ]

    def _look(self) -> None:
        """Only one fault of a kind looks; the next fault copies a log later."""
        seen = set()
        for _, trouble in self._due:
            if type(trouble) not in seen:
                trouble.look()
                seen.add(type(trouble))

    def _make(self, trouble: Trouble) -> Made | None:
        begun = time.monotonic()
        try:
            run, must_say, is_unchanged = trouble.make()
        except NotNowError as error:
            self._why[type(trouble)] = str(error)
            return None
        seconds = time.monotonic() - begun
        wrong = judge(run, must_say, is_unchanged)
        made = Made(trouble.name, trouble.moment, wrong, run.line, seconds)
        self._made.setdefault(type(trouble), []).append(made)
        return made


def judge(run: Once, must_say: Sequence[str], is_unchanged: bool) -> str | None:
    """The error of a run that had to refuse; None if there is none."""
    if run.code == 0:
        return f"it went on: {dict(run.rows)}"
    if missing := [text for text in must_say if text not in run.said]:
        return f"it did not say {missing[0]!r}: {run.line}"
    return None if is_unchanged else f"it changed something: {run.line}"
