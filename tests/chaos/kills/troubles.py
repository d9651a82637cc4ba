"""Trouble that is no kill: a checkpoint that is lost, a full disk, a log that was cut.

Each is made between two runs of the chaos; a run must then refuse to go on, and say why, and what
it is about must stay as it was. Then the trouble is undone, and the next run goes on. What a run
did instead is a check of the trial that failed.
"""

from __future__ import annotations

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

__all__ = ["TROUBLES", "Made", "Troubles", "judge"]

TROUBLES: Final = tuple(kind.name for kind in KINDS)
"""Their names, beside those of what is killed."""

_KILLS: Final = 50
"""Each trouble is made once for so many kills."""
_TRIES: Final = 4
"""So often one is tried again at the end, with a run between that brings something new."""


@dataclass(frozen=True)
class Made:
    """A trouble that was made."""

    name: str
    moment: str
    wrong: str | None
    """What was not as it must be."""
    said: str
    """The last line that the run said."""
    seconds: float


class Troubles:
    """Troubles among so many kills, each at a place among them that follows from the seed."""

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
        """Make what is due after so many kills, and can be made now."""
        self._look()
        for at, trouble in list(self._due):
            if at <= killed and (made := self._make(trouble)) is not None:
                self._due.remove((at, trouble))
                yield made

    def rest(self) -> Iterator[Made]:
        """Make what was not possible before, while inputs still grow."""
        for _ in range(_TRIES):
            if self._due:
                yield from self.due(1 << 62)
            if self._due:
                self._place.runs.once()  # it brings something new

    def checks(self) -> list[Check]:
        """A check for each kind that was made."""
        checks = []
        for kind, made in self._made.items():
            wrong = [one.wrong for one in made if one.wrong is not None]
            times = "once" if len(made) == 1 else f"{len(made)} times"
            found = f"not {len(wrong)} of {len(made)}: {wrong[0]}" if wrong else times
            said = "" if wrong else f", it said: {made[-1].said}"
            checks.append(Check(kind.check, not wrong, times, f"{found}{said}"))
        return checks

    def not_tried(self) -> list[str]:
        """The kinds that were never made, each with the reason."""
        return [
            f"{kind.name}: {self._why.get(kind, 'too few kills')}"
            for kind in KINDS
            if kind not in self._made
        ]

    def _look(self) -> None:
        """One of a kind, so that the next copies a log later."""
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
    """What is wrong with a run that had to refuse; None if nothing is."""
    if run.code == 0:
        return f"it went on: {dict(run.rows)}"
    if missing := [text for text in must_say if text not in run.said]:
        return f"it did not say {missing[0]!r}: {run.line}"
    return None if is_unchanged else f"it changed something: {run.line}"
