"""Pier: the epochs of an Urbit ship's event log, each a book, as a single log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from deedbook._core import Deed, Epoch, Loss, Pier, PierReport
from deedbook._errors import CorruptError, NotALogError, UnsupportedError
from deedbook._formats.book import (
    Deeds,
    deed_entry,
    meta_facts,
    meta_text,
    with_numbers,
)
from deedbook._formats.info import (
    Description,
    Entry,
    Figures,
    Found,
    Outcome,
    Part,
    part_of,
)
from deedbook._formats.log import LogInfo, LogView
from deedbook._formats.writer import writer_of, writer_text
from deedbook._show.text import count, damage_text, size

__all__ = ["PIER"]


class _PierInfo(LogInfo[Pier]):
    """Urbit's pier."""

    name = "pier"
    title = "pier"
    noun = "deed"
    position = "event"
    columns = ("event", "mug")
    position_min = 1
    log = Pier

    def view(self, log: Pier) -> LogView:
        return Deeds(log)

    def entry(self, record: Deed) -> Entry:
        return deed_entry(record)

    def files(self, log: Pier) -> Sequence[str]:
        return [os.path.join(epoch.path, "book.log") for epoch in log.epochs]

    def size_bytes(self, log: Pier) -> int:
        return sum(epoch.bytes for epoch in log.epochs)

    def facts(self, log: Pier) -> dict[str, Any]:
        return {
            "log_path": log.log_path,
            "epoch": log.epoch,
            "durable_event": log.durable_last,
            **_meta(log)[0],
            "epochs": [epoch.to_dict() for epoch in log.epochs],
            "consumers": log.consumers(),
        }

    def rows(self, log: Pier) -> list[tuple[str, str]]:
        epochs = log.epochs
        durable = log.durable_last
        events = "none" if log.bounds is None else f"{log.bounds[0]}..{log.bounds[1]}"
        return [
            ("events", f"{events} ({count(len(log), 'deed')}, {count(len(epochs), 'epoch')})"),
            *_table(epochs),
            ("size", size(self.size_bytes(log))),
            ("durable", "not known (no mark)" if durable is None else f"through event {durable}"),
            ("metadata", _meta(log)[1]),
            *(("consumer", f"{name} needs event {at}") for name, at in log.consumers().items()),
        ]

    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """The facts of opening the pier for reading."""
        with Pier.open(path) as pier:
            writer = writer_of(os.path.join(pier.log_path, ".deedbook"))
            recovery = pier.recovery
            facts = {
                "path": pier.path,
                "format": self.name,
                "records": len(pier),
                "bounds": pier.bounds,
                "bytes": self.size_bytes(pier),
                "recovery": recovery.to_dict(),
                "writer": writer._asdict(),
                **self.facts(pier),
            }
            rows = [("path", pier.path), ("format", self.title), *self.rows(pier)]
            rows.append(("writer", writer_text(writer)))
            corrupt = any(epoch.verdict == "corrupt" for epoch in pier.epochs)
        if recovery.damage is not None and recovery.verdict != "open":
            rows.append(("damage", damage_text(recovery.damage, self.noun)))
        return Description(facts, rows, corrupt)

    def figures(self, handle: Pier) -> Figures:
        """The facts of the epochs."""
        figures = super().figures(handle)
        consumers, after = handle.consumers(), handle.last + 1
        figures = figures._replace(
            is_damaged=any(epoch.verdict == "corrupt" for epoch in handle.epochs),
            consumers={name: (at, max(0, after - at)) for name, at in consumers.items()},
            lag_unit="records",
        )
        return with_numbers(figures, handle)

    def outcome(self, path: str, report: PierReport) -> Outcome:
        """The outcome of a `deedbook.reports.PierReport`."""
        lines = [
            f"{one.path}: {text}"
            for one in report.epochs
            if not one.report.ok
            for text in [damage_text(damage, self.noun) for damage in one.report.damages]
            or ["acknowledged deeds are lost"]
        ]
        lines += [f"{path}: {gap}" for gap in report.gaps]
        records = sum(one.report.records for one in report.epochs)
        total = f"{count(len(report.epochs), 'epoch')}, {count(records, self.noun)}"
        bounds = [one.report.bounds for one in report.epochs if one.report.bounds is not None]
        total += f", events {bounds[0][0]}..{bounds[-1][1]}" if bounds else ""
        lines.append(f"{path}: {'ok' if report.ok else 'damaged'}, {total}")
        return Outcome(report.ok, {**report.to_dict(), "records": records}, lines)

    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """A part for each epoch."""
        return [part_of(f"0i{one['number']}", one["report"]) for one in checked["epochs"]]

    def extent_text(self, bounds: tuple[int, int], end: int) -> str:
        return f"events {bounds[0]}..{bounds[1]}"

    def prefix_end_text(self, bounds: tuple[int, int] | None, end: int) -> str:
        return f"byte {end:,}" if bounds is None else f"event {bounds[1]}"

    def loss_at(self, loss: Loss) -> str:
        return f"event {loss.first}"


def _meta(log: Pier) -> tuple[dict[str, Any], str]:
    """The metadata as facts and as text. If LMDB and the copy differ, the error of reading."""
    try:
        meta = log.meta
    except (CorruptError, NotALogError, UnsupportedError) as error:
        return {"meta": None, "meta_error": str(error)}, str(error)
    return {"meta": meta_facts(meta)}, meta_text(meta)


def _table(epochs: Sequence[Epoch]) -> list[tuple[str, str]]:
    """A row for each epoch, with columns of equal width."""
    cells = [
        (
            "no events" if epoch.bounds is None else f"{epoch.bounds[0]}..{epoch.bounds[1]}",
            count(epoch.deeds, "deed"),
            size(epoch.bytes),
            epoch.layout,
            "unwritten tail" if epoch.verdict == "open" else epoch.verdict,
        )
        for epoch in epochs
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = []
    for epoch, row in zip(epochs, cells, strict=True):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        rows.append((f"0i{epoch.number}", text.rstrip()))
    return rows


PIER = _PierInfo()
