"""The files of a trial: the folder of a pipeline, and the logs and tables of its streaming form."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

EXAMPLES: Final = Path(__file__).absolute().parents[2] / "examples" / "pipeline"
SILVER: Final = "silver"
DELAY_SECONDS: Final = 600
WINDOW_SECONDS: Final = 60
GOLD: Final = f"""
CREATE STREAMING TABLE windows AS
SELECT window.start AS start, kind, count(*) AS events
FROM STREAM silver WATERMARK time DELAY OF INTERVAL {DELAY_SECONDS} SECONDS
GROUP BY window(time, '{WINDOW_SECONDS} seconds'), kind;

CREATE MATERIALIZED VIEW authors AS
SELECT pubkey, count(*) AS events, sum(length(content)) AS characters, max(time) AS last
FROM silver GROUP BY pubkey;
"""
"""Windows that close while a trial runs, because some events must be late."""


@dataclass(frozen=True)
class Source:
    name: str
    path: Path
    kind: str
    bronze: str


SOURCES: Final = (
    {"name": "files", "path": "in/files", "kind": "lines", "bronze": "book"},
    {"name": "orders", "path": "in/app.wal", "kind": "wal", "bronze": "book"},
    {"name": "spool", "path": "in/spool", "kind": "ledger", "bronze": "wal"},
)


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.directory = folder / "streaming"
        self.sources = [Source(**{**one, "path": folder / one["path"]}) for one in SOURCES]  # type: ignore[arg-type]

    def begin(self) -> None:
        """Make the pipeline of the Nostr example, with three sources."""
        found: dict[str, Any] = json.loads((EXAMPLES / "nostr" / "pipeline.json").read_text())
        found["sources"] = SOURCES
        (self.folder / "in").mkdir(parents=True)
        (self.folder / "pipeline.json").write_text(json.dumps(found, indent=1))
        (self.folder / "gold.sql").write_text(GOLD)

    def bronze(self, source: str) -> Path:
        return self.directory / "bronze" / source

    def table(self, name: str) -> Path:
        return self.directory / name

    def checkpoint(self, query: str) -> Path:
        return self.directory / "checkpoints" / query

    @property
    def queries(self) -> list[str]:
        bronze = [f"bronze/{one.name}" for one in self.sources]
        return [*bronze, "quarantine", SILVER, "gold/windows"]

    def follower(self, source: str) -> Path:
        return self.folder / "follower" / f"{source}.jsonl"

    @property
    def log(self) -> Path:
        return self.folder / "chaos.log"
