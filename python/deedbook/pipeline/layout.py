"""Where a pipeline keeps what it makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deedbook.pipeline.config import Config

__all__ = ["Layout"]

SILVER: Final = "silver"


class Layout:
    """The paths of what a pipeline makes."""

    def __init__(self, config: Config) -> None:
        directory = self.directory = config.directory
        self._checkpoints = config.checkpoints
        self.spark_log = directory / "spark.log"
        self.top = directory / "gold" / "top.json"
        self.windows = directory / "gold" / "windows"
        self.authors = directory / "gold" / "authors"
        self.state = directory / "gold" / "state.json"
        self.report = directory / "report"
        self.work = directory / "work"
        self.lock = self.work / "lock"

    def bronze(self, source: str) -> Path:
        """The log of a source."""
        return self.directory / "bronze" / source

    def quarantine(self, source: str) -> Path:
        """The table of the lines of a source that are no events; of ``silver``, of the records."""
        return self.directory / "quarantine" / source

    def silver(self, kind: str) -> Path:
        """The table of all events, ``parquet`` or ``delta``."""
        return self.directory / SILVER / kind

    def checkpoint(self, query: str) -> Path:
        """Spark's checkpoint of a source's query, or of ``silver``."""
        return self._checkpoints / query

    def progress(self, query: str) -> Path:
        """A line for each batch of a query."""
        return self.directory / "progress" / f"{query}.jsonl"

    def follower(self, source: str) -> Path:
        """What a follower saw of a bronze log."""
        return self.directory / "follower" / f"{source}.jsonl"
