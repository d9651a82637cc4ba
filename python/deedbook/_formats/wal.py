"""WAL: records at byte positions, in a directory of segments or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from deedbook._core import Loss, Record, Wal
from deedbook._formats.info import Entry, Figures, Part, Skipping, part_of
from deedbook._formats.log import LogInfo, LogView
from deedbook._show.text import count, exact_size, size
from deedbook._system.sidecar import sidecar_of

__all__ = ["WAL"]


class _WalInfo(LogInfo[Wal]):
    """The write-ahead log of wal-db."""

    name = "wal"
    title = "write-ahead log"
    noun = "record"
    position = "lsn"
    columns = ("lsn",)
    log = Wal
    packed = b"DBPK"
    read_options = ("segment_bytes",)

    def view(self, log: Wal) -> LogView:
        return _Records(log)

    def entry(self, record: Record) -> Entry:
        lsn = record.lsn
        return Entry(lsn, record.next_lsn, record.payload, {"lsn": lsn}, "payload")

    def files(self, log: Wal) -> Sequence[str]:
        return log.segment_paths

    def sidecar(self, log: Wal) -> str:
        if log.segment_bytes is not None:
            return super().sidecar(log)
        return sidecar_of(log.path, True)

    def size_bytes(self, log: Wal) -> int:
        return log.end - log.head

    def facts(self, log: Wal) -> dict[str, Any]:
        return {
            "head": log.head,
            "segment_bytes": log.segment_bytes,
            "segments": len(log.segment_paths),
            "record_bytes_max": log.record_bytes_max,
            "consumers": log.consumers(),
        }

    def rows(self, log: Wal) -> list[tuple[str, str]]:
        layout: str = log.layout
        if log.segment_bytes is not None:
            segments = count(len(log.segment_paths), "segment")
            layout += f", {segments} of {size(log.segment_bytes)}"
        durable = log.durable_end
        return [
            ("layout", layout),
            ("records", f"{len(log):,}, bytes {log.head:,} to {log.end:,}"),
            ("size", exact_size(self.size_bytes(log))),
            ("durable", "not known (no mark)" if durable is None else f"to byte {durable:,}"),
            *(("consumer", f"{name} needs lsn {lsn:,}") for name, lsn in log.consumers().items()),
        ]

    def figures(self, handle: Wal) -> Figures:
        """The facts of the log, with the consumers."""
        # Other processes append meanwhile, after the last known end.
        durable, consumers, end = handle.durable_end, handle.consumers(), handle.end
        return (
            super()
            .figures(handle)
            ._replace(
                end=end,
                unsynced_bytes=None if durable is None else max(0, end - durable),
                consumers={name: (lsn, max(0, end - lsn)) for name, lsn in consumers.items()},
            )
        )

    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """The log, from the head on."""
        bounds = checked["bounds"]
        begin = 0 if bounds is None else bounds[0]
        return [part_of(os.path.basename(os.path.abspath(path)), checked, begin)]

    def extent_text(self, bounds: tuple[int, int], end: int) -> str:
        return f"bytes {bounds[0]:,} to {end:,}"

    def prefix_end_text(self, bounds: tuple[int, int] | None, end: int) -> str:
        return f"byte {end:,}"

    def loss_at(self, loss: Loss) -> str:
        return f"lsn {loss.offset:,}"


class _Records:
    """A WAL for ``cat``. A range may reach beyond the end, as a book's range may."""

    left_out = None

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self.first, self.end = wal.head, wal.end
        # After damage the end is not known.
        self._is_whole = wal.recovery.verdict != "corrupt"

    def read(self, at: int) -> Record:
        return self._wal.read(at)

    def records(self, start: int | None, stop: int | None) -> Iterable[Record]:
        return self._wal.iter(*self._within(start, stop))

    def reversed(self, start: int | None, stop: int | None) -> Iterable[Record]:
        return self._wal.iter(*self._within(start, stop), reverse=True)

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        return self._wal.iter(*self._within(start, stop), on_corrupt="skip")

    def payloads(self, start: int | None, stop: int | None) -> Iterable[bytes]:
        return self._wal.payloads(*self._within(start, stop))

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Record]:
        return self._wal.follow(start, timeout=timeout_seconds)

    def _within(self, start: int | None, stop: int | None) -> tuple[int | None, int | None]:
        if self._is_whole and start is not None:
            start = min(start, self.end)
        return start, None if stop is not None and stop > self.end else stop


WAL = _WalInfo()
