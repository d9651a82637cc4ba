"""Book: numbered deeds in a directory with ``book.log``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from deedbook._core import Book, Deed, Loss, Meta, Pier, _detect
from deedbook._formats.info import Entry, Figures, Skipping
from deedbook._formats.log import LogInfo, LogView
from deedbook._show.text import count, exact_size

__all__ = ["BOOK", "Deeds", "deed_entry", "meta_facts", "meta_text", "with_numbers"]

_LOG = "book.log"


class _BookInfo(LogInfo[Book]):
    """Urbit's Book."""

    name = "book"
    title = "book"
    noun = "deed"
    position = "event"
    columns = ("event", "mug")
    position_min = 1
    log = Book

    def view(self, log: Book) -> LogView:
        return Deeds(log)

    def entry(self, record: Deed) -> Entry:
        return deed_entry(record)

    def files(self, log: Book) -> Sequence[str]:
        return [os.path.join(log.path, _LOG)]

    def size_bytes(self, log: Book) -> int:
        return log.end

    def facts(self, log: Book) -> dict[str, Any]:
        meta, numbered = log.meta, _is_numbered(log)
        return {
            "epoch": log.epoch if numbered else None,
            "durable_event": log.durable_last if numbered else None,
            "meta": meta_facts(meta),
        }

    def rows(self, log: Book) -> list[tuple[str, str]]:
        return [
            ("layout", log.layout),
            ("events", _events_text(log)),
            ("size", f"{exact_size(log.end)}, file {exact_size(log.recovery.file_end)}"),
            ("durable", _durable_text(log)),
            ("metadata", meta_text(log.meta)),
        ]

    def figures(self, handle: Book) -> Figures:
        """The facts of the book."""
        figures = super().figures(handle)
        return with_numbers(figures, handle) if _is_numbered(handle) else figures

    def extent_text(self, bounds: tuple[int, int], end: int) -> str:
        return f"events {bounds[0]}..{bounds[1]}"

    def prefix_end_text(self, bounds: tuple[int, int] | None, end: int) -> str:
        return f"byte {end:,}" if bounds is None else f"event {bounds[1]}"

    def loss_at(self, loss: Loss) -> str:
        return f"event {loss.first}"


def with_numbers(figures: Figures, log: Book | Pier) -> Figures:
    """Figures with the last event, and the number of events after the last durable event."""
    durable, last = log.durable_last, log.last
    unsynced = None if durable is None else max(0, last - durable)
    return figures._replace(end=last, unsynced_records=unsynced)


class Deeds:
    """A book, or a pier, as ``cat`` reads it."""

    left_out = None

    def __init__(self, book: Book | Pier) -> None:
        self._book = book
        self.read = book.read
        self.payloads = book.payloads

    @property
    def first(self) -> int:
        return self._book.epoch + 1

    @property
    def end(self) -> int:
        return self._book.last + 1

    def records(self, start: int | None, stop: int | None) -> Iterable[Deed]:
        return self._book.iter(start, stop)

    def reversed(self, start: int | None, stop: int | None) -> Iterable[Deed]:
        return self._book.iter(start, stop, reverse=True)

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        return self._book.iter(start, stop, on_corrupt="skip")

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Deed]:
        return self._book.follow(start, timeout=timeout_seconds)


def deed_entry(record: Deed) -> Entry:
    """A deed in the terms of all formats."""
    event = record.event
    following = None if event is None else event + 1
    return Entry(event, following, record.jam, {"event": event, "mug": record.mug}, "jam")


def _is_numbered(book: Book) -> bool:
    """Whether the numbers of the deeds are known. A saved end has no numbers."""
    found = _detect(book.path) if os.path.isfile(book.path) else None
    return found is None or not found[1]


def _events_text(book: Book) -> str:
    if not _is_numbered(book):
        return f"{count(len(book), 'deed')} without numbers, before the first damage"
    if book.bounds is None:
        return f"none (epoch {book.epoch})"
    low, high = book.bounds
    return f"{low}..{high} ({count(len(book), 'deed')}, epoch {book.epoch})"


def _durable_text(book: Book) -> str:
    end = book.durable_end
    if end is None or book.durable_last is None:
        return "not known (no mark)"
    return f"through event {book.durable_last} (byte {end:,})"


def meta_facts(meta: Meta) -> dict[str, Any]:
    """The metadata for JSON."""
    return {
        # 128 bits: a JSON number would lose the lower ones in most readers.
        "who": None if meta.who is None else f"{meta.who:#x}",
        "version": meta.version,
        "life": meta.life,
        "fake": meta.fake,
    }


def meta_text(meta: Meta) -> str:
    """The metadata in words."""
    parts = []
    if meta.who is not None:
        parts.append(f"who {meta.who:#x}")
    if meta.version is not None:
        parts.append(f"version {meta.version}")
    if meta.life is not None:
        parts.append(f"life {meta.life}")
    if meta.fake is not None:
        parts.append(f"fake {'yes' if meta.fake else 'no'}")
    return ", ".join(parts) or "none"


BOOK = _BookInfo()
