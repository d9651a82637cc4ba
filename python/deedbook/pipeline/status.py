"""What a pipeline has done so far, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from deedbook import EventStore, Log, MissingError
from deedbook import open as open_log
from deedbook._durable import load_json
from deedbook.pipeline.config import Config, Source
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.progress import Batch, Lag, batches_of, lines_of
from deedbook.pipeline.quarantine import reasons_of

__all__ = ["SourceStatus", "Status", "lag_text", "status"]

_STATES: Final = {"end": "ended", "stopped": "stopped", "failed": "failed"}
"""Of a run, by the line that it noted last."""


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
    lag: Lag | None
    """What it had beyond the last batch of which that was noted, at its end; None for none."""
    quarantined: dict[str, int] | None
    """Its lines that are no Nostr events, by reason; None where pyarrow is missing."""


@dataclass(frozen=True)
class Status:
    """A pipeline."""

    name: str
    directory: str
    state: str
    """``never run``, ``ended``, ``stopped``, ``failed``, or ``running or killed``."""
    runs: int
    killed: int
    """Runs that came to no end, but for the last."""
    sources: tuple[SourceStatus, ...]
    silver_batches: int
    silver_at: str | None
    """When the last batch came to gold, UTC."""
    silver_lag: Lag | None
    """What the bronze logs had beyond the last batch of which it was noted, at its end."""
    totals: dict[str, Any]
    """Of gold, as ``gold/top.json`` has them."""
    quarantined: dict[str, int] | None
    """Records of bronze that are no Nostr events, by reason; None where pyarrow is missing."""

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def status(config: Config) -> Status:
    """Look at a pipeline's directory; a run may be going on. Raises `deedbook.Error`."""
    layout = Layout(config)
    marks = lines_of(layout.progress("run"))
    runs = [one["run"] for one in marks if one["event"] == "begin"]
    ends = {one["run"]: one["event"] for one in marks if one["event"] != "begin"}
    state = "never run"
    if runs:
        # Of a run that has not ended it cannot be seen from here whether it was killed.
        state = _STATES.get(ends.get(runs[-1], ""), "running or killed")
    batches = batches_of(layout, SILVER)
    return Status(
        config.name,
        str(config.directory),
        state,
        len(runs),
        sum(run not in ends for run in runs[:-1]),
        tuple(_source(layout, source) for source in config.sources),
        len(batches),
        _at(batches),
        _lag(batches),
        _totals(layout),
        _quarantined(layout, SILVER),
    )


def lag_text(lag: Lag | None) -> str:
    """A lag in words; empty if it is not known."""
    if lag is None:
        return ""
    if lag.files is not None:
        return f"{lag.files:,} files, {lag.bytes:,} bytes"
    return f"{lag.records:,} records, {lag.bytes:,} bytes"


def _source(layout: Layout, source: Source) -> SourceStatus:
    batches = batches_of(layout, source.name)
    return SourceStatus(
        source.name,
        source.path.exists(),
        source.bronze,
        _records(layout, source.name),
        _at(batches),
        _lag(batches),
        _quarantined(layout, source.name),
    )


def _quarantined(layout: Layout, name: str) -> dict[str, int] | None:
    try:
        return reasons_of(layout, name)
    except ImportError:
        return None


def _at(batches: Sequence[Batch]) -> str | None:
    """When the last of them ended."""
    return batches[-1].at.isoformat(timespec="milliseconds") if batches else None


def _lag(batches: Sequence[Batch]) -> Lag | None:
    """The last one noted: not each batch has one, as a look at it may take long."""
    return next((one.lag for one in reversed(batches) if one.lag is not None), None)


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
    return load_json(layout.top) or {}
