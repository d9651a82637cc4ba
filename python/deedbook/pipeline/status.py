"""What a pipeline has done so far, without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from deedbook import EventStore, Log, MissingError
from deedbook import open as open_log
from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.progress import lines_of

__all__ = ["SourceStatus", "Status", "status"]


@dataclass(frozen=True)
class SourceStatus:
    """One source."""

    name: str
    has_come: bool
    bronze: str
    """Format of its log."""
    records: int | None
    """Records in its log; of an event store, events that count. None before the first run."""
    last_read: str | None
    """When the last batch was read from it, UTC."""


@dataclass(frozen=True)
class Status:
    """A pipeline."""

    name: str
    directory: str
    state: str
    """``never run``, ``ended``, ``failed``, or ``running or killed``."""
    runs: int
    killed: int
    """Runs that came to no end, but for the last."""
    sources: tuple[SourceStatus, ...]
    silver_batches: int
    silver_at: str | None
    """When the last batch came to gold, UTC."""
    totals: dict[str, Any]
    """Of gold, as ``gold/top.json`` has them."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def status(config: Config) -> Status:
    """Look at a pipeline's directory; a run may be going on. Raises `deedbook.Error`."""
    layout = Layout(config.directory)
    marks = lines_of(layout.progress("run"))
    runs = [one["run"] for one in marks if one["event"] == "begin"]
    ends = {one["run"]: one["event"] for one in marks if one["event"] != "begin"}
    state = "never run"
    if runs:
        # Of a run that has not ended it cannot be seen from here whether it was killed.
        state = {"end": "ended", "failed": "failed"}.get(
            ends.get(runs[-1], ""), "running or killed"
        )
    batches = lines_of(layout.progress(SILVER))
    return Status(
        config.name,
        str(config.directory),
        state,
        len(runs),
        sum(run not in ends for run in runs[:-1]),
        tuple(
            SourceStatus(
                source.name,
                source.path.exists(),
                source.bronze,
                _records(layout, source.name),
                next((one["at"] for one in reversed(lines_of(layout.progress(source.name)))), None),
            )
            for source in config.sources
        ),
        len(batches),
        batches[-1]["at"] if batches else None,
        _totals(layout),
    )


def _records(layout: Layout, source: str) -> int | None:
    try:
        opened = open_log(layout.bronze(source))
    except (MissingError, FileNotFoundError):
        return None
    with opened:
        if isinstance(opened, EventStore):
            return opened.census().events
        assert isinstance(opened, Log)
        return len(opened)


def _totals(layout: Layout) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(layout.top.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found
