"""Which events came late, reckoned again from the files of silver, without the counts of gold."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deedbook.pipeline.gathered import times_of_files

__all__ = ["late_by_batch"]

_FILE: Final = re.compile(r"part-[0-9a-f]{8}-(\d{6,})-\d{4,}\.parquet")
"""A file of a table, by the batch that added it."""


def late_by_batch(
    silver: Path, kind: str, windows: Path, lateness: Sequence[tuple[int, float]]
) -> dict[int, range]:
    """How many events of each batch are older than the newest one before it, less the lateness.

    ``lateness`` has each lateness with the first batch that it counts for. A time after now does
    not count as the newest. A batch was counted between the writing of its files in ``silver`` and
    in ``windows``: where an event has a time between these, both counts are right, and a range has
    them. Raises `UnreadableError`, and `LookupError` for a file that is not named by its batch and
    for a batch without a lateness.
    """
    times: dict[int, list[int]] = defaultdict(list)
    begun: dict[int, float] = defaultdict(float)
    for file, found in times_of_files(silver, kind, "created_at"):
        batch = _batch(file)
        times[batch] += found
        begun[batch] = max(begun[batch], file.stat().st_mtime)
    ended = {_batch(file): file.stat().st_mtime for file in windows.glob("part-*.parquet")}
    late: dict[int, range] = {}
    newest = [float("-inf")] * 2
    for batch in sorted(times):
        least = [one - _lateness_of(batch, lateness) for one in newest]
        counts = [sum(at < border for at in times[batch]) for border in least]
        late[batch] = range(min(counts), max(counts) + 1)
        for place, now in enumerate((begun[batch], ended.get(batch, time.time()))):
            newest[place] = max([newest[place], *(at for at in times[batch] if at <= now)])
    return late


def _lateness_of(batch: int, lateness: Sequence[tuple[int, float]]) -> float:
    found = [seconds for first, seconds in lateness if first <= batch]
    if not found:
        raise LookupError(f"no lateness is noted for batch {batch}")
    return found[-1]


def _batch(file: Path) -> int:
    found = _FILE.fullmatch(file.name)
    if found is None:
        raise LookupError(f"{file} is not named by its batch")
    return int(found[1])
