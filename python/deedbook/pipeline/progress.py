"""What a run did and when: a line of JSON for each batch of a source and of silver."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

from deedbook.pipeline.layout import Layout
from deedbook.pipeline.notes import JsonLines, json_lines

__all__ = ["Batch", "Journal", "Lag", "batches_of", "kills_of", "lines_of"]


@dataclass(frozen=True)
class Lag:
    """How far a source is ahead of what was read of it."""

    records: int | None
    """None of files of lines, whose lines are not counted before they are read."""
    bytes: int
    """Of logs with framing, of files as they lie there."""
    files: int | None = None
    """Of files of lines, those that were not read; None of logs."""


@dataclass(frozen=True)
class Batch:
    """A batch as it was noted."""

    query: str
    """A source, or ``silver``."""
    number: int
    at: datetime
    """When it had ended."""
    rows: int
    seconds: float
    lag: Lag | None
    """At its end; None if it was not known."""


class Journal:
    """Appends to the files of progress. A run without its end was killed.

    ``looks`` say of each query what it has not read yet; None where that is not known.
    """

    def __init__(
        self, layout: Layout, looks: Mapping[str, Callable[[], Lag | None]] = MappingProxyType({})
    ) -> None:
        self._layout = layout
        self._looks = looks
        self.run = uuid.uuid4().hex[:12]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note begin and end: that it came to its end, was stopped, or failed."""
        self._write("run", {"event": "begin"})
        try:
            yield
        except BaseException as error:
            # Ctrl-C and SIGTERM are no `Exception`; without ``once`` a run has no other end.
            event = "failed" if isinstance(error, Exception) else "stopped"
            with suppress(OSError):  # the error of the run is the one to report
                self._write("run", {"event": event})
            raise
        self._write("run", {"event": "end"})

    def batch(self, query: str, batch: int, rows: int, seconds: float) -> None:
        """Note a batch that is done, with the lag at its end."""
        look = self._looks.get(query)
        lag = None if look is None else look()
        facts = {"batch": batch, "rows": rows, "seconds": round(seconds, 3)}
        self._write(query, {**facts, "lag": None if lag is None else asdict(lag)})

    def _write(self, query: str, facts: dict[str, Any]) -> None:
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        with JsonLines(self._layout.progress(query)) as lines:
            lines.add([{"query": query, "run": self.run, "at": at, **facts}], sync=False)


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of progress; none if there is none. A torn last line is left out."""
    try:
        return list(json_lines(file))
    except FileNotFoundError:
        return []


def batches_of(layout: Layout, query: str) -> list[Batch]:
    """The batches of a query in the order of their ends; one that was repeated comes twice."""
    found = []
    for line in lines_of(layout.progress(query)):
        lag = line.get("lag")
        at = datetime.fromisoformat(line["at"])
        found.append(
            Batch(
                query,
                line["batch"],
                at,
                line["rows"],
                line["seconds"],
                None if lag is None else Lag(**lag),
            )
        )
    return found


def kills_of(layout: Layout) -> list[datetime]:
    """About when runs broke off that came to no end, or failed: at their last line."""
    marks = lines_of(layout.progress("run"))
    well = {one["run"] for one in marks if one["event"] in ("end", "stopped")}
    killed = {one["run"]: one["at"] for one in marks if one["run"] not in well}
    if marks and marks[-1]["event"] == "begin":
        del killed[marks[-1]["run"]]  # it may be running
    for file in layout.progress("run").parent.glob("*.jsonl"):
        for line in lines_of(file):
            if line["run"] in killed:
                killed[line["run"]] = max(killed[line["run"]], line["at"])
    return sorted(datetime.fromisoformat(at) for at in killed.values())
