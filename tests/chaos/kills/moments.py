"""The steps of the pipeline's commits, seen from outside through their files."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.home import SILVER, Home

AT_RANDOM: Final = "at random"

MOMENTS: Final = (
    AT_RANDOM,
    "staged",
    "intent",
    "recorded",
    "quarantined",
    "silver",
    "gold",
    "state",
    "checkpoint offsets",
    "checkpoint commit",
)

Stamp = tuple[int, int]


class Watch:
    """Looks for a step, and sees it once, if it happens after the begin of the watch."""

    def __init__(self, home: Home, moment: str) -> None:
        self._folders, self._files = _traces(home, moment)
        self._names = [_names(folder) for folder in self._folders]
        self._stamps = [_stamp(file) for file in self._files]

    def sees(self) -> bool:
        """Whether a folder has a new name, or a file (or folder) is new or changed."""
        for at, folder in enumerate(self._folders):
            names = _names(folder)
            if not names <= self._names[at]:
                return True
        for file, before in zip(self._files, self._stamps, strict=True):
            now = _stamp(file)
            if now is not None and now != before:
                return True
        return False


def _traces(home: Home, moment: str) -> tuple[list[Path], list[Path]]:
    """The folders with the new files of a step, and the files that a step makes or replaces."""
    sidecars = [home.bronze(one.name) / ".deedbook" for one in home.sources]
    checkpoints = [home.checkpoint(name) for name in home.queries]
    found: dict[str, tuple[list[Path], list[Path]]] = {
        "staged": ([one / "staged" for one in sidecars], []),
        "intent": ([], [one / "transaction" for one in sidecars]),
        "recorded": ([], [one / "transactions" for one in sidecars]),
        "quarantined": ([home.table("quarantine") / "_spark_metadata"], []),
        "silver": ([home.table(SILVER) / "_spark_metadata"], []),
        "gold": ([home.table("gold/windows") / "_spark_metadata"], []),
        "state": ([home.checkpoint(SILVER) / "state" / "0" / part for part in "0123"], []),
        "checkpoint offsets": ([one / "offsets" for one in checkpoints], []),
        "checkpoint commit": ([one / "commits" for one in checkpoints], []),
    }
    return found[moment]


def _names(folder: Path) -> set[str]:
    """Names in a folder, without the temporary names of incomplete files."""
    with suppress(OSError):
        return {name for name in os.listdir(folder) if name[0] not in "._"}
    return set()


def _stamp(file: Path) -> Stamp | None:
    with suppress(OSError):
        found = os.stat(file)
        return found.st_ino, found.st_mtime_ns
    return None
