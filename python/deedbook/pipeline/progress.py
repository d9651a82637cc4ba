"""What a run did and when: a line of JSON for each batch."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deedbook.pipeline.layout import Layout

__all__ = ["Journal", "lines_of"]


class Journal:
    """Appends to the files of progress. A run without its end was killed."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.run = uuid.uuid4().hex[:12]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note begin and end."""
        self._write("run", {"event": "begin"})
        ended = "failed"
        try:
            yield
            ended = "end"
        finally:
            self._write("run", {"event": ended})

    def batch(self, query: str, batch: int | None, rows: int, seconds: float) -> None:
        """Note a batch that is done."""
        self._write(query, {"batch": batch, "rows": rows, "seconds": round(seconds, 3)})

    def _write(self, query: str, facts: dict[str, Any]) -> None:
        file = self._layout.progress(query)
        file.parent.mkdir(parents=True, exist_ok=True)
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"query": query, "run": self.run, "at": at, **facts}) + "\n"
        # One write, so that a kill leaves a whole line or none.
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)


def lines_of(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of progress; none if there is none. A torn last line is left out."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
