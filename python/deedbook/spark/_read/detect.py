"""Finding the logs and the format at the paths of a read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deedbook import InvalidArgumentError
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.formats import formats
from deedbook.spark._options.options import ReadOptions
from deedbook.spark._options.paths import Look, archive_url, find_logs, input_paths
from deedbook.spark._read.plan import Series

__all__ = ["detect_logs"]


def detect_logs(options: Mapping[str, str], parsed: ReadOptions) -> tuple[LogFormat, list[Series]]:
    """The format and the logs at the paths; `InvalidArgumentError` for several formats."""
    candidates = [log for log in formats() if parsed.log in (None, log.name)]

    def expand(path: Path) -> list[tuple[LogFormat, Series]]:
        look = Look(path)
        found = [(log, tuple(map(str, log.expand(look, parsed)))) for log in candidates]
        return [(log, Series(logs)) for log, logs in found if logs]

    found: list[tuple[LogFormat, Series]] = []
    urls: list[str] = []
    for given in input_paths(options):
        url = archive_url(given)
        if url is None:
            found += find_logs([given], expand)
            continue
        from deedbook.spark._read.archives import format_at  # needs the extra s3

        urls.append(url)
        found.append((format_at(url, parsed), Series((url,), is_archive=True)))
    log, first = found[0]
    for other, series in found:
        if other is not log:
            raise InvalidArgumentError(
                f"option log: there are logs of several formats, {log.name} at {first.logs[0]} and"
                f" {other.name} at {series.logs[0]}; say which to read"
            )
    log.refuse(parsed)
    _refuse_by_place(log, parsed, urls)
    return log, [series for _, series in found]


def _refuse_by_place(log: LogFormat, options: ReadOptions, urls: list[str]) -> None:
    """Refuse the options that make no sense for an archive, or only for one."""
    if not urls:
        if options.live_log is not None:
            raise InvalidArgumentError(f"option liveLog: is for archives, there is a {log.name}")
        return
    given = {
        "base": options.base is not None and options.live_log is None,
        "ignoreMissingFiles": options.ignore_missing_files,
        "failOnDataLoss": not options.fail_on_data_loss,
        "readUntil": options.read_until != "durable",
        "consumer": options.consumer is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise InvalidArgumentError(
                f"option {name}: is for logs, there is an archive, {urls[0]}"
            )
