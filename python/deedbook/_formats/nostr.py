"""The event store: a directory with segments of Nostr events, a write-ahead log and a manifest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from deedbook._core import Event, EventStore, EventStoreReport
from deedbook._errors import CorruptError, Error
from deedbook._formats.info import (
    Description,
    Entry,
    Figures,
    FormatInfo,
    Found,
    Outcome,
    Part,
    Progress,
    Stretch,
    size_of,
)
from deedbook._show.text import count, exact_size, size
from deedbook._system.regular import read_json
from deedbook._system.sidecar import SIDECAR

__all__ = ["NOSTR"]

FAULTS_SHOWN_MAX: Final = 20
"""At most this many faults are named in words."""
LOSS: Final = "acknowledged events are lost"
_SEGMENTS: Final = os.path.join("data", "segments")
_SEGMENT: Final = re.compile(r"data\.(0|[1-9][0-9]*)(\.seg)?")


class _NostrInfo(FormatInfo):
    """Nostr events in pages."""

    name = "nostr"
    title = "Nostr event store"
    noun = "event"
    position = "segment"
    columns = ("segment", "offset")
    is_position_of_one = False
    log = EventStore

    def open(self, path: str, mode: str, **options: Any) -> EventStore:
        """The store."""
        return EventStore.open(path, mode, **options)  # type: ignore[arg-type]

    @contextmanager
    def read(self, path: str, **options: Any) -> Iterator[_Events]:
        """The visible events, in the order of their storing."""
        with EventStore.open(path) as store:
            yield _Events(store)

    def entry(self, record: Event) -> Entry:
        assert record.location is not None  # it was read from a store
        segment, offset = record.location
        facts = {"segment": segment, "offset": offset}
        payload = record.to_json().encode()
        return Entry(segment, None, payload, facts, "event", f"{segment}:{offset}")

    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """The facts of the manifest and the sizes of files, without a read of events."""
        with EventStore.open(path) as store:
            path, is_loss, history = store.path, store.opening.is_loss, store.history
        manifest = _manifest(path)
        facts: dict[str, Any] = {
            "path": path,
            "format": self.name,
            "segments": len(manifest.get("active_segments", [])),
            "records": manifest.get("total_records"),
            "page_bytes": manifest.get("page_size"),
            "history": history,
            "segment_bytes": _bytes_below(os.path.join(path, "data")),
            "wal_bytes": _bytes_below(os.path.join(path, "wal")),
            "index_bytes": _allocated_below(os.path.join(path, SIDECAR)),
            "compactions": manifest.get("compactions"),
            "created": _time(manifest.get("created_at")),
            "last_compaction": _time(manifest.get("last_compaction_time")),
            "is_loss": is_loss,
        }
        shown = {name: value for name, value in facts.items() if name != "is_loss"}
        rows = [(name.replace("_", " "), _shown(name, value)) for name, value in shown.items()]
        if is_loss:
            rows.append(("loss", LOSS))
        return Description(facts, rows, False)

    def figures(self, handle: EventStore) -> Figures:
        """The facts of the sizes of files, and of the last checkpoint's manifest."""
        manifest = _manifest(handle.path)
        data = _bytes_below(os.path.join(handle.path, "data"))
        return Figures(
            bytes=data + _bytes_below(os.path.join(handle.path, "wal")),
            files=len(manifest.get("active_segments", [])),
            records=manifest.get("total_records"),
            unsynced_bytes=None if handle.mode == "r" else handle.unsynced_bytes,
            is_damaged=handle.opening.is_loss,
        )

    def verify(
        self,
        path: str,
        progress: Progress,
        *,
        check: Literal["none", "id", "signature"] = "id",
        **options: Any,
    ) -> Outcome:
        """Check every page, record and id, and with ``check="signature"`` every signature."""
        report = EventStore.verify(path, check=check, progress=progress)
        return self.outcome(os.path.abspath(path), report)

    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """A part for each segment's file, with the first faults of the report.

        And a part for each damaged file of the write-ahead log.
        """
        found: dict[str, list[Stretch]] = {file: [] for file in self.data_files(path)}
        numbers = {int(os.path.basename(file).split(".")[1]): file for file in found}
        for one in checked["damages"]:
            segment, offset = one["location"]
            if segment in numbers:  # else a compaction dropped it meanwhile
                stretch = Stretch(offset, one["end"], one["reason"])
                found[numbers[segment]].append(stretch)
        for one in checked["log_damages"]:
            stretch = Stretch(one["offset"], one["end"], one["reason"])
            found.setdefault(one["path"], []).append(stretch)
        return [
            Part(os.path.basename(file), 0, end, tuple(damages))
            for file, damages in found.items()
            if (end := max([size_of(file), *(one.end for one in damages)]))
        ]

    def data_files(self, path: str, **options: Any) -> list[str]:
        """The segments' files."""
        folder = os.path.join(path, _SEGMENTS)
        names = filter(_SEGMENT.fullmatch, os.listdir(folder))
        ordered = sorted(names, key=lambda name: int(name.split(".")[1]))
        return [os.path.join(folder, name) for name in ordered]

    def outcome(self, path: str, report: EventStoreReport) -> Outcome:
        """The outcome of a store's report."""
        verdict = "ok" if report.ok else count(report.faults, "fault")
        lines = [
            f"{path}: {verdict}, {count(report.live, 'event')}, {report.deleted:,} deleted,"
            f" {report.replaced:,} replaced, {count(report.segments, 'segment')},"
            f" {size(report.bytes)}"
        ]
        for fault in report.damages[:FAULTS_SHOWN_MAX]:
            segment, offset = fault.location
            lines.append(f"  segment {segment}, bytes {offset:,}..{fault.end:,}: {fault.reason}")
        unshown = report.faults - len(report.log_damages) - FAULTS_SHOWN_MAX
        if unshown > 0:
            lines.append(f"  and {count(unshown, 'more fault')}")
        for part in report.log_damages[:FAULTS_SHOWN_MAX]:
            lines.append(f"  {part.path}, bytes {part.offset:,}..{part.end:,}: {part.reason}")
        if report.is_loss:
            lines.append(f"  {LOSS}")
        return Outcome(report.ok, report.to_dict(), lines)


class _Passed(NamedTuple):
    """Damage, with its segment in the reason."""

    offset: int
    end: int
    reason: str


class _Events:
    """A store for ``cat``."""

    left_out = None

    def __init__(self, store: EventStore) -> None:
        self._store = store

    def records(self, start: int | None, stop: int | None) -> Iterable[Event]:
        return _within(self._store.iter(), start, stop)

    def reversed(self, start: int | None, stop: int | None) -> Iterable[Event]:
        return _within(self._store.iter(reverse=True), start, stop)

    def last(self, records: int) -> tuple[list[Event], CorruptError | None]:
        """The last events, and the damage before the events."""
        newest: list[Event] = []
        try:
            for event in islice(self._store.iter(reverse=True), records):
                newest.append(event)
        except CorruptError as error:
            return newest[::-1], error
        return newest[::-1], None

    def skipping(self, start: int | None, stop: int | None) -> _Around:
        return _Around(self._store, start, stop)

    def payloads(self, start: int | None, stop: int | None) -> Iterable[bytes]:
        return (event.to_json().encode() for event in self.records(start, stop))


class _Around:
    """The intact events of some segments."""

    def __init__(self, store: EventStore, start: int | None, stop: int | None) -> None:
        self._events = store.iter(on_corrupt="skip")
        self._range = start, stop

    @property
    def damages(self) -> list[_Passed]:
        return [
            _Passed(offset, fault.end, f"{fault.reason} (segment {segment})")
            for fault in self._events.damages
            for segment, offset in [fault.location]
            if _is_within(segment, *self._range)
        ]

    def __iter__(self) -> Iterator[Event]:
        return _within(self._events, *self._range)


def _within(events: Iterable[Event], start: int | None, stop: int | None) -> Iterator[Event]:
    for event in events:
        if event.location is not None and _is_within(event.location[0], start, stop):
            yield event


def _is_within(segment: int, start: int | None, stop: int | None) -> bool:
    return segment >= (start or 0) and (stop is None or segment < stop)


def _manifest(path: str) -> dict[str, Any]:
    """The facts of the manifest; empty without one: the next writer makes the manifest.

    Fields of the wrong type are left out.
    """
    try:
        found = read_json(os.path.join(path, "manifest.json"))
    except (Error, OSError):
        return {}
    segments = found.pop("active_segments", [])
    numbers = {name: value for name, value in found.items() if type(value) is int}
    return {**numbers, "active_segments": segments if isinstance(segments, list) else []}


def _bytes_below(directory: str) -> int:
    return sum(found.st_size for found in _files(directory))


def _allocated_below(directory: str) -> int:
    """Bytes without the holes of files."""
    return sum(
        min(found.st_size, getattr(found, "st_blocks", found.st_size) * 512)
        for found in _files(directory)
    )


def _files(directory: str) -> Iterable[os.stat_result]:
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                yield os.lstat(os.path.join(folder, name))
            except FileNotFoundError:  # a writer replaced it
                continue


def _time(seconds: Any) -> str | None:
    """The time in UTC; None for an impossible time."""
    if not isinstance(seconds, int) or not 0 < seconds < 2**37:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("_bytes"):
        return exact_size(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


NOSTR = _NostrInfo()
