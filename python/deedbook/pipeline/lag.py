"""How far sources are ahead of what was read of them: by the checkpoints, and as they are now.

Spark's own progress has the end of a source as it was before a batch; this is for the end of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from deedbook import Error
from deedbook._regular import parse_json, read_small
from deedbook.pipeline.config import Config, Source
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.progress import Lag
from deedbook.spark._checkpoint import files_seen
from deedbook.spark._detect import detect_logs
from deedbook.spark._format import Limits, Place
from deedbook.spark._options import parse

__all__ = ["Looks", "lag_of_silver", "lag_of_source", "looks_of"]

_ALL: Final = 2**62
"""A limit that is none, for which a log counts the records nevertheless."""


class Looks:
    """Looks at a lag for at most a tenth of the time: a look may walk a large log."""

    def __init__(self, look: Callable[[], Lag | None]) -> None:
        self._look = look
        self._not_before = 0.0

    def __call__(self) -> Lag | None:
        """The lag; None if it is not known, or it is too early to look again."""
        begun = time.monotonic()
        if begun < self._not_before:
            return None
        lag = self._look()
        ended = time.monotonic()
        self._not_before = ended + 9 * (ended - begun)
        return lag


def looks_of(config: Config, layout: Layout) -> dict[str, Callable[[], Lag | None]]:
    """The looks of a run: at the lag of each source, and of silver.

    At that of silver after each batch: the latency is reckoned by those that left nothing.
    """
    looks = {one.name: Looks(partial(lag_of_source, one, layout)) for one in config.sources}
    return {**looks, SILVER: partial(lag_of_silver, config, layout)}


def lag_of_source(source: Source, layout: Layout) -> Lag | None:
    """What a source has beyond the last batch of its query.

    Of a log what a stream may read: up to the last sync, of a ledger the finished files. None where
    that cannot be said, as of a log that was replaced; the next batch says what that means.
    """
    checkpoint = layout.checkpoint(source.name)
    try:
        if source.kind == "lines":
            return _lag_of_files(source.path, checkpoint)
        return _lag_of_logs([(source.path, None)], _places(checkpoint / "offsets"))
    except (Error, OSError, ValueError):
        return None


def lag_of_silver(config: Config, layout: Layout) -> Lag | None:
    """What the bronze logs have beyond the last batch of silver; None as in `lag_of_source`."""
    bronze = [(layout.bronze(source.name), source.bronze) for source in config.sources]
    try:
        return _lag_of_logs(bronze, _places(layout.checkpoint(SILVER) / "offsets"))
    except (Error, OSError, ValueError):
        return None


def _places(offsets: Path) -> dict[str, Place]:
    """Where the last batch of a query ends, in each log."""
    last = max((file for file in offsets.iterdir() if file.name.isdecimal()), key=_number)
    places: dict[str, Place] = {}
    # A line for the version, one for settings, then one for each source.
    for line in read_small(last).decode().splitlines()[2:]:
        found = parse_json(line) if line.startswith("{") else {}
        places.update(found.get("logs", {}))
    return places


def _number(file: Path) -> int:
    return int(file.name)


def _lag_of_logs(logs: Sequence[tuple[Path, str | None]], places: Mapping[str, Place]) -> Lag:
    """Of logs at paths, whose format may be given."""
    records = size = 0
    for path, format in logs:
        options = parse({} if format is None else {"log": format}, scope="stream")
        log, series = detect_logs({"path": str(path)}, options)
        for one in (name for found in series for name in found.logs):
            place = places[one] if one in places else log.begin(Path(one), "earliest", options)
            while True:  # a step ends at damage
                step = log.advance(Path(one), place, Limits(rows=_ALL), options)
                if step.place == place:
                    break
                records, size, place = records + step.rows, size + step.bytes, step.place
    return Lag(records, size)


def _lag_of_files(path: Path, checkpoint: Path) -> Lag:
    seen = {os.path.basename(file) for file, _ in files_seen(checkpoint)}
    files = path.iterdir() if path.is_dir() else [path]
    sizes = [
        file.stat().st_size
        for file in files
        if file.name[0] not in "._" and file.name not in seen and file.is_file()
    ]
    return Lag(None, sum(sizes), len(sizes))
