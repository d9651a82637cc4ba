"""Counts of the events: what each batch adds, and the totals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deedbook import InvalidArgumentError
from deedbook._durable import load_json, store_json
from deedbook._formats import missing
from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import Layout
from deedbook.spark._paths import file_url
from deedbook.spark.jobs._tables import Table, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Gold"]

_TOP: Final = 20


class Gold:
    """The tables of counts. Each batch adds rows; the sum over the batches is the total.

    An event is late if it is older than the newest one before its batch, less the lateness; a time
    after now does not count as the newest. Raises `InvalidArgumentError` where the tables have
    another window, and `MissingError` where ``state.json`` is gone, which has the newest event.
    """

    def __init__(self, config: Config, layout: Layout, work: Path) -> None:
        self._lateness = config.lateness_seconds
        self._window = config.window_seconds
        self._layout = layout
        self._windows = table("parquet", layout.windows, "gold", work / "windows")
        self._authors = table("parquet", layout.authors, "gold", work / "authors")
        state = load_json(layout.state)
        if state is not None and state.get("window") != self._window:
            raise InvalidArgumentError(
                f"{layout.windows} counts by windows of {state.get('window')} s, {config.file} says"
                f" {self._window} s: another window needs another directory"
            )
        counted = self._windows.committed()
        if state is None and counted is not None:
            raise missing(
                f"{layout.windows} has batches 0 to {counted}, and the newest event of them, which"
                " was noted here, is not known any more: put the file back, or begin in another"
                " directory",
                layout.state,
            )

    @property
    def tables(self) -> tuple[Table, Table]:
        """The tables of counts, which have the batches of silver."""
        return self._windows, self._authors

    def add(self, events: DataFrame, query: str, batch: int) -> int:
        """Count a batch, unless it is counted already; returns its events."""
        from pyspark.sql import functions as F

        created = F.col("created_at")
        past = F.when(created <= F.lit(datetime.now(timezone.utc)), created)
        total = events.agg(F.max(past).alias("newest"), F.count("*").alias("events"))
        ((newest, count),) = [(row.newest, row.events) for row in total.collect()]
        border = self._border(batch, newest)
        late = created < F.lit(border) if border is not None else F.lit(False)
        number = F.lit(batch).cast("bigint").alias("batch")
        seconds = F.unix_seconds(created)
        begin = F.timestamp_seconds(seconds - seconds % self._window)
        windows = events.groupBy(begin.alias("window"), "kind").agg(
            F.count("*").alias("events"),
            F.sum(F.octet_length("content").cast("bigint")).alias("bytes"),
            F.sum(F.when(late, 1).otherwise(0).cast("bigint")).alias("late"),
        )
        self._windows.add(windows.select(number, "*").coalesce(1), query, batch)
        authors = events.groupBy("pubkey").agg(F.count("*").alias("events"))
        self._authors.add(authors.select(number, "*").coalesce(1), query, batch)
        return int(count)

    def _border(self, batch: int, newest: datetime | None) -> datetime | None:
        """The time before which events of a batch are late; None while there is none.

        What the batch adds is noted at once, so that a repeat of the batch finds the same. Each
        lateness is noted with the first batch that it counts for.
        """
        state = load_json(self._layout.state)
        if state is None or state["batch"] != batch:
            state = self._noted(state, batch, newest)
        before = _time(state["before"])
        return before and before - timedelta(seconds=state["lateness"][-1][1])

    def _noted(
        self, state: dict[str, Any] | None, batch: int, newest: datetime | None
    ) -> dict[str, Any]:
        before = None if state is None else _time(state["newest"])
        found = [one for one in (before, None if newest is None else _utc(newest)) if one]
        after = max(found, default=None)
        lateness = [] if state is None else state["lateness"]
        if not lateness or lateness[-1][1] != self._lateness:
            lateness = [*lateness, [batch, self._lateness]]
        noted = {
            "batch": batch,
            "window": self._window,
            "lateness": lateness,
            "before": before.isoformat() if before else None,
            "newest": after.isoformat() if after else None,
        }
        store_json(self._layout.state, noted)
        return noted

    def write_totals(self, spark: SparkSession) -> dict[str, Any]:
        """Sum up, and replace ``top.json``, unless it has all batches; returns what is in it."""
        from pyspark.sql import functions as F

        counted = self._windows.committed()
        state = load_json(self._layout.state)
        newest = None if state is None else _time(state["newest"])
        watermark = newest and (newest - timedelta(seconds=self._lateness)).isoformat()
        there = load_json(self._layout.top)
        if there is not None and (there["batch"], there["watermark"]) == (counted, watermark):
            return dict(there)
        totals: dict[str, Any] = {"events": 0, "bytes": 0, "late": 0, "kinds": {}, "authors": {}}
        if counted is not None:
            windows = spark.read.parquet(file_url(self._layout.windows))
            sums = windows.agg(*(F.sum(name).alias(name) for name in ("events", "bytes", "late")))
            for row in sums.collect():
                totals.update({name: row[name] or 0 for name in ("events", "bytes", "late")})
            totals["kinds"] = _top(windows, "kind")
            authors = spark.read.parquet(file_url(self._layout.authors))
            totals["authors"] = _top(
                authors.select(F.hex("pubkey").alias("author"), "events"), "author"
            )
        totals.update(watermark=watermark, batch=counted)
        store_json(self._layout.top, totals)
        return totals


def _top(rows: DataFrame, name: str) -> dict[str, int]:
    """The most frequent ones."""
    from pyspark.sql import functions as F

    sums = rows.groupBy(name).agg(F.sum("events").alias("events"))
    best = sums.orderBy(F.desc("events"), name).limit(_TOP).collect()
    return {str(row[name]).lower(): row.events for row in best}


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _utc(at: datetime) -> datetime:
    """Spark gives times of the zone of this process."""
    return at.astimezone(timezone.utc)
