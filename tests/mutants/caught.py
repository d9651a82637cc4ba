"""The bugs that runs caught. A bug is not tried again while its inputs are unchanged."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from worker import Outcome

__all__ = ["Caught"]


class Caught:
    """A file with a line for each bug that was caught, written as soon as it was."""

    def __init__(self, file: Path, depends: dict[str, str]) -> None:
        """``depends`` has the hash of each bug's inputs, by name."""
        self._file = file
        self._depends = depends

    def before(self) -> dict[str, Outcome]:
        """The bugs whose inputs are unchanged, by name."""
        try:
            lines = self._file.read_text().splitlines()
        except FileNotFoundError:
            return {}
        found = {}
        for line in lines:
            try:
                noted = json.loads(line)
            except ValueError:
                continue  # what a run that was killed left of its last line
            outcome = Outcome(**noted["outcome"])
            if self._depends.get(outcome.name) == noted["inputs"]:
                found[outcome.name] = outcome
        return found

    def note(self, outcome: Outcome) -> None:
        """Note one that was caught."""
        if outcome.caught_by is None:
            return
        noted = {"inputs": self._depends[outcome.name], "outcome": asdict(outcome)}
        with self._file.open("a") as file:
            file.write(json.dumps(noted) + "\n")
