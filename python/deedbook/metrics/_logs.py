"""The metrics of a log."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from deedbook._core import (
    Book,
    EventStore,
    Ledger,
    LedgerStats,
    Pier,
    Stats,
    Wal,
)
from deedbook._errors import Error
from deedbook._formats import of_handle, require
from deedbook._formats.info import Figures, FormatInfo
from deedbook.metrics._families import Family, Sample

__all__ = ["Source", "families"]

Source: TypeAlias = "str | os.PathLike[str] | Book | Pier | Wal | Ledger | EventStore"

_Kind = Literal["gauge", "counter", "histogram"]

_FAMILIES: Final[tuple[tuple[str, _Kind, str], ...]] = (
    ("up", "gauge", "Whether the log could be opened and read."),
    ("bytes", "gauge", "Bytes of the log's records."),
    ("files", "gauge", "Files that hold the log's records."),
    ("records", "gauge", "Records of the log; of an event store, at its last checkpoint."),
    ("end", "gauge", "The last event of a book or pier, or the LSN after a WAL's last record."),
    ("unsynced_bytes", "gauge", "Bytes that are not known to be on stable storage."),
    ("unsynced_records", "gauge", "Deeds that are not known to be on stable storage."),
    ("lost_records", "gauge", "Acknowledged records that are known to be lost."),
    ("damaged", "gauge", "Whether opening met damage, or a loss that was noted."),
    ("quarantined_files", "gauge", "Damaged files of a ledger that were set aside."),
    ("consumer_position", "gauge", "LSN or event that a consumer needs next."),
    ("consumer_lag_bytes", "gauge", "Bytes from a consumer's position to a WAL's end."),
    ("consumer_lag_records", "gauge", "Deeds from a consumer's position to a pier's end."),
    ("appends_total", "counter", "Calls of this process that appended."),
    ("appended_records_total", "counter", "Records that this process appended."),
    ("appended_bytes_total", "counter", "Bytes that this process appended, headers included."),
    ("slow_syncs_total", "counter", "Syncs longer than the option slow_sync."),
    ("sync_seconds", "histogram", "Time of the syncs of this process."),
    ("dropped_files_total", "counter", "Segments, epochs, or files of a ledger that went."),
    ("dropped_records_total", "counter", "Records in them."),
    ("dropped_bytes_total", "counter", "Bytes in them."),
    ("rejected_records_total", "counter", "Events that a full ledger refused."),
    ("rejected_bytes_total", "counter", "Bytes of refused events."),
)
"""The families in the order of the output, without ``deedbook_``."""


class _Found:
    """Samples by family."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {name: [] for name, _, _ in _FAMILIES}

    def add(
        self, name: str, labels: Mapping[str, str], value: float | None, suffix: str = ""
    ) -> None:
        """Note a value; None is none."""
        if value is not None:
            self._samples[name].append(Sample(f"deedbook_{name}{suffix}", labels, value))

    def families(self) -> Iterator[Family]:
        """The families that have values."""
        for name, kind, text in _FAMILIES:
            if self._samples[name]:
                yield Family(f"deedbook_{name}", kind, text, self._samples[name])


def families(logs: Mapping[str, Source]) -> list[Family]:
    """The metrics of logs. An unreadable log has ``deedbook_up 0``; the logger gives the reason."""
    found = _Found()
    for name, source in logs.items():
        try:
            if isinstance(source, str | os.PathLike):
                _add_path(found, name, os.fspath(source))
            else:
                _add_handle(found, name, source)
        except (Error, OSError, ValueError, RecursionError) as error:
            logging.getLogger("deedbook").warning("no metrics of %s: %s", name, error)
            found.add("up", {"log": name}, 0)
    return list(found.families())


def _add_path(found: _Found, name: str, path: str) -> None:
    info = require(path).format
    for part, handle in info.readers(path).items():
        with handle:
            _add_figures(found, f"{name}/{part}" if part else name, info, handle)


def _add_handle(found: _Found, name: str, handle: Any) -> None:
    info = of_handle(handle)
    labels = _add_figures(found, name, info, handle)
    if isinstance(handle, Ledger) and handle.mode != "r":
        _add_rejected(found, labels, handle.stats())
    if (stats := info.stats_of(handle)) is not None:
        _add_stats(found, labels, stats)
        if isinstance(handle, Wal | Pier | Ledger):
            _add_dropped(found, labels, stats)


def _add_figures(found: _Found, name: str, info: FormatInfo, handle: Any) -> dict[str, str]:
    figures: Figures = info.figures(handle)
    labels = {"log": name, "format": info.name}
    found.add("up", labels, 1)
    for figure in ("bytes", "files", "records", "end", "unsynced_bytes", "unsynced_records"):
        found.add(figure, labels, getattr(figures, figure))
    found.add("lost_records", labels, figures.lost_records)
    if figures.is_damaged is not None:
        found.add("damaged", labels, int(figures.is_damaged))
    found.add("quarantined_files", labels, figures.quarantined_files)
    for consumer, (position, lag) in figures.consumers.items():
        of = {**labels, "consumer": consumer}
        found.add("consumer_position", of, position)
        found.add(f"consumer_lag_{figures.lag_unit}", of, lag)
    return labels


def _add_stats(found: _Found, labels: Mapping[str, str], stats: Stats) -> None:
    found.add("appends_total", labels, stats.appends)
    found.add("appended_records_total", labels, stats.records)
    found.add("appended_bytes_total", labels, stats.bytes)
    found.add("slow_syncs_total", labels, stats.slow_syncs)
    below = 0
    for bound, count in _buckets(stats):
        below += count
        le = {**labels, "le": "+Inf" if math.isinf(bound) else str(bound)}
        found.add("sync_seconds", le, below, "_bucket")
    found.add("sync_seconds", labels, below, "_count")
    found.add("sync_seconds", labels, stats.sync_seconds, "_sum")


def _buckets(stats: Stats) -> Iterable[tuple[float, int]]:
    """Upper bounds in seconds, and the number of syncs between each bound and the bound before."""
    for micros, count in stats.sync_latency:
        yield math.inf if micros == 2**64 - 1 else micros / 1e6, count


def _add_dropped(found: _Found, labels: Mapping[str, str], stats: Stats) -> None:
    found.add("dropped_files_total", labels, stats.dropped_files)
    found.add("dropped_records_total", labels, stats.dropped_records)
    found.add("dropped_bytes_total", labels, stats.dropped_bytes)


def _add_rejected(found: _Found, labels: Mapping[str, str], stats: LedgerStats) -> None:
    found.add("rejected_records_total", labels, stats.rejected_events)
    found.add("rejected_bytes_total", labels, stats.rejected_bytes)
