"""Finding the logs and the format at the paths of a read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deedbook import InvalidArgumentError
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.formats import formats
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look, find_logs, input_paths
from deedbook.spark._read.plan import Series

__all__ = ["detect_logs"]


def detect_logs(options: Mapping[str, str], parsed: ReadOptions) -> tuple[LogFormat, list[Series]]:
    """The format and the logs at the paths; `InvalidArgumentError` for several formats."""
    candidates = [log for log in formats() if parsed.log in (None, log.name)]

    def expand(path: Path) -> list[tuple[LogFormat, Series]]:
        look = Look(path)
        found = [(log, tuple(map(str, log.expand(look, parsed)))) for log in candidates]
        return [(log, Series(logs)) for log, logs in found if logs]

    found = find_logs(input_paths(options), expand)
    log, first = found[0]
    for other, series in found:
        if other is not log:
            raise InvalidArgumentError(
                f"option log: there are logs of several formats, {log.name} at {first.logs[0]} and"
                f" {other.name} at {series.logs[0]}; say which to read"
            )
    log.refuse(parsed)
    return log, [series for _, series in found]
