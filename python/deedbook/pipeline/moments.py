"""The steps of the pipeline's commits, seen from outside by the files that they leave."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import SILVER, Layout

__all__ = ["AT_RANDOM", "MOMENTS", "Watch"]

AT_RANDOM: Final = "at random"

MOMENTS: Final = (
    AT_RANDOM,
    "staged",
    "intent",
    "recorded",
    "table staged",
    "table intent",
    "delta commit",
    "checkpoint offsets",
    "checkpoint commit",
)
"""When something is killed: after a random wait, or as soon as a step of a commit is seen."""

Stamp = tuple[int, int]


class Watch:
    """Looks for a step; it is seen once, as it happens after the watch began.

    A look takes some dozen microseconds, because most steps take less than a millisecond.
    """

    def __init__(self, config: Config, moment: str) -> None:
        self._folders, self._files = _traces(config, moment)
        self._names = [_names(folder) for folder in self._folders]
        self._stamps = [_stamp(file) for file in self._files]

    def sees(self) -> bool:
        """Whether a folder has got a new name, or a file (or folder) is new or was changed."""
        for at, folder in enumerate(self._folders):
            names = _names(folder)
            if not names <= self._names[at]:
                return True
        for file, before in zip(self._files, self._stamps, strict=True):
            now = _stamp(file)
            if now is not None and now != before:
                return True
        return False


def _traces(config: Config, moment: str) -> tuple[list[Path], list[Path]]:
    """The folders in which a step makes files, and the files that it makes or replaces."""
    layout = Layout(config)
    names = [source.name for source in config.sources]
    sidecars = [layout.bronze(name) / ".deedbook" for name in names]
    work = [layout.work / kind for kind in (*config.tables, "quarantine", "windows", "authors")]
    checkpoints = [layout.checkpoint(name) for name in (SILVER, *names)]
    found: dict[str, tuple[list[Path], list[Path]]] = {
        "staged": ([one / "staged" for one in sidecars], []),
        "intent": ([], [one / "transaction" for one in sidecars]),
        "recorded": ([], [one / "transactions" for one in sidecars]),
        "table staged": ([], [one / "staged" for one in work]),
        "table intent": ([], [one / "intent.json" for one in work]),
        "delta commit": ([layout.silver("delta") / "_delta_log"], []),
        "checkpoint offsets": ([one / "offsets" for one in checkpoints], []),
        "checkpoint commit": ([one / "commits" for one in checkpoints], []),
    }
    return found[moment]


def _names(folder: Path) -> set[str]:
    """Names in a folder, but for those that Spark and others give before a file is complete."""
    with suppress(OSError):
        return {name for name in os.listdir(folder) if name[0] not in "._"}
    return set()


def _stamp(file: Path) -> Stamp | None:
    with suppress(OSError):
        found = os.stat(file)
        return found.st_ino, found.st_mtime_ns
    return None
