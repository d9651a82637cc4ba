"""The base of formats whose paths are logs: the common output of the commands."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from deedbook._core import Book, Loss, Pier, Transactions, Wal
from deedbook._formats.info import (
    Description,
    Figures,
    FormatInfo,
    Found,
    Outcome,
    Part,
    Progress,
    View,
    part_of,
)
from deedbook._formats.writer import Writer, writer_of, writer_text
from deedbook._show.text import count, damage_text, size
from deedbook._system.sidecar import SIDECAR

__all__ = ["LogInfo", "LogT", "LogView", "loss_text"]

LogT = TypeVar("LogT", Book, Pier, Wal)


class LogView(View, Protocol):
    """A log for ``cat``."""

    @property
    def first(self) -> int:
        """Position of the first record."""

    @property
    def end(self) -> int:
        """Position after the last record."""

    def read(self, at: int, /) -> Any:
        """The record at a position."""

    def reversed(self, start: int | None, stop: int | None) -> Iterable[Any]:
        """The records of a range, newest first."""

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Any]:
        """The records from a position on, waiting for more."""


class LogInfo(FormatInfo, Generic[LogT]):
    """A format whose paths are logs, each with a beginning and an end, and a repair."""

    log: type[LogT]

    # -- a log

    @abstractmethod
    def view(self, log: LogT) -> LogView:
        """The log for ``cat``."""

    @abstractmethod
    def files(self, log: LogT) -> Sequence[str]:
        """The files with the log's records."""

    def sidecar(self, log: LogT) -> str:
        """The log's directory of mark, index and lock."""
        return os.path.join(log.path, SIDECAR)

    # -- in words and in JSON

    @abstractmethod
    def size_bytes(self, log: LogT) -> int:
        """Bytes of the log."""

    @abstractmethod
    def facts(self, log: LogT) -> dict[str, Any]:
        """The format's own keys of ``info --json``."""

    @abstractmethod
    def rows(self, log: LogT) -> list[tuple[str, str]]:
        """The lines of ``info`` on layout, records, size and durability."""

    @abstractmethod
    def extent_text(self, bounds: tuple[int, int], end: int) -> str:
        """The bounds of a log whose last byte is before ``end``: ``events 1..5``."""

    @abstractmethod
    def prefix_end_text(self, bounds: tuple[int, int] | None, end: int) -> str:
        """The last place of a damaged log before the first gap: ``event 5``."""

    @abstractmethod
    def loss_at(self, loss: Loss) -> str:
        """The place of missing acknowledged records: ``event 812``, ``lsn 4,096``."""

    # -- derived methods

    def open(self, path: str, mode: str, **options: Any) -> LogT:
        """As the log's class."""
        log: LogT = self.log.open(path, mode, **options)  # type: ignore[arg-type]
        return log

    @contextmanager
    def read(self, path: str, **options: Any) -> Iterator[LogView]:
        """The log, opened for reading."""
        with self.open(path, "r", **options) as log:
            yield self.view(log)

    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """The facts of opening the log for reading."""
        with self.open(path, "r", **options) as log:
            writer = writer_of(self.sidecar(log))
            facts, rows = _facts(found, self, log, writer), _rows(found, self, log, writer)
        return Description(facts, rows, facts["recovery"]["verdict"] == "corrupt")

    def figures(self, handle: LogT) -> Figures:
        """The facts of the log."""
        recovery = handle.recovery
        return Figures(
            bytes=self.size_bytes(handle),
            files=len(self.files(handle)),
            records=len(handle),
            # If the number of lost records is unknown, count a single loss.
            lost_records=0 if recovery.loss is None else max(1, recovery.loss.records),
            is_damaged=recovery.verdict == "corrupt",
        )

    def verify(self, path: str, progress: Progress, **options: Any) -> Outcome:
        """Check the log."""
        return self.outcome(path, self.log.verify(path, progress=progress, **options))

    def outcome(self, path: str, report: Any) -> Outcome:
        """The outcome of a `deedbook.reports.VerifyReport`."""
        return Outcome(report.ok, report.to_dict(), _verify_lines(path, self, report))

    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """The log, from the first byte on."""
        return [part_of(os.path.basename(os.path.abspath(path)), checked)]

    def data_files(self, path: str, **options: Any) -> list[str]:
        """The counters of the opened log."""
        with self.open(path, "r", **options) as log:
            return list(self.files(log))


def loss_text(info: LogInfo[Any], report: Any) -> str | None:
    """The acknowledged records missing in a report; None without a loss."""
    loss = report.loss
    if loss is None:
        return None
    what = f"acknowledged {info.noun}"
    lost = count(loss.records, what) if loss.records else f"{what}s, how many is not known,"
    return f"lost: {lost} from {info.loss_at(loss)} on (byte {loss.offset:,})"


def _facts(found: Found, info: LogInfo[Any], log: Any, writer: Writer) -> dict[str, Any]:
    """The keys common to all logs, and the format's own keys."""
    facts = {
        "path": log.path,
        "format": info.name,
        "layout": log.layout,
        "records": len(log),
        "bounds": log.bounds,
        "bytes": info.size_bytes(log),
        "end": log.end,
        "file_end": log.recovery.file_end,
        "durable_end": log.durable_end,
        "recovery": log.recovery.to_dict(),
        "writer": writer._asdict(),
        **({} if found.saved else _transaction_facts(log.transactions)),
        **info.facts(log),
    }
    if found.saved:
        facts["saved_from"] = found.saved_offset
    return facts


def _rows(found: Found, info: LogInfo[Any], log: Any, writer: Writer) -> list[tuple[str, str]]:
    recovery = log.recovery
    rows = [("path", log.path), ("format", info.title), *info.rows(log)]
    if found.saved:
        where = "" if found.saved_offset is None else f" at byte {found.saved_offset:,}"
        rows.append(("saved", f"this is what was cut off a log{where}; bytes count from there"))
    rows += [("writer", writer_text(writer)), ("recovery", _recovery_text(recovery))]
    if not found.saved:
        rows += _transaction_rows(log.transactions)
    if recovery.damage is not None and not _is_only_unwritten(recovery):
        rows.append(("damage", damage_text(recovery.damage, info.noun)))
    if (loss := loss_text(info, recovery)) is not None:
        rows.append(("loss", loss))
    return rows


def _transaction_facts(transactions: Transactions) -> dict[str, Any]:
    return {
        "transactions": [one.to_dict() for one in transactions.committed()],
        "staged": [job.to_dict() for job in transactions.staged()],
    }


def _transaction_rows(transactions: Transactions) -> list[tuple[str, str]]:
    rows = []
    for one in transactions.committed():
        of = f", of query {one.query}" if one.query not in (None, one.app) else ""
        rows.append(("transaction", f"{one.app} up to {one.version}{of}"))
    for job in transactions.staged():
        what = f"{count(job.files, 'file')} of {job.job}, {size(job.bytes)}"
        begun = "; its commit has begun, the next writer ends it" if job.is_committing else ""
        rows.append(("staged", what + begun))
    return rows


def _recovery_text(recovery: Any) -> str:
    how = "by the mark" if recovery.source == "mark" else "by a scan"
    verdict = "unwritten tail" if _is_only_unwritten(recovery) else recovery.verdict
    text = f"{verdict} ({how}, {size(recovery.scanned_bytes)} read"
    if recovery.source == "mark":
        text += "; verify reads all"
    text += ")" if recovery.mark == "used" else f", mark {recovery.mark})"
    if recovery.torn_bytes:
        text += f"; torn tail of {count(recovery.torn_bytes, 'byte')}"
    return text


def _is_only_unwritten(recovery: Any) -> bool:
    """Whether only zeros follow: space reserved by a writer, alive or killed."""
    return bool(recovery.verdict == "open")


def _verify_lines(path: str, info: LogInfo[Any], report: Any) -> list[str]:
    bounds, end = report.bounds, report.valid_end
    if report.verdict == "corrupt":
        intact = f"{_intact_text(info, report)}, {size(report.bytes)}"
        lines = [f"{path}: corrupt: {intact}; no gap up to {info.prefix_end_text(bounds, end)}"]
    else:
        extent = "" if bounds is None else f", {info.extent_text(bounds, end)}"
        verdict = "ok" if report.ok else report.verdict
        found = f"{count(report.records, info.noun)}, {size(report.bytes)}{extent}"
        lines = [f"{path}: {verdict}, {found}"]
    if report.lost_acknowledged:
        lines.append(
            f"  acknowledged {info.noun}s are lost: durable to byte {report.durable_end or 0:,}, "
            f"intact to byte {report.valid_end:,}"
        )
    if (loss := loss_text(info, report)) is not None:
        lines.append(f"  {loss}")
    lines += [f"  {damage_text(damage, info.noun)}" for damage in report.damages]
    if report.noted:
        until = "until you repair the log, or verify finds nothing"
        lines.append(f"  opening for writing is refused {until}")
    return lines


def _intact_text(info: LogInfo[Any], report: Any) -> str:
    """The number of intact records, with the total if known."""
    lost = [damage.records_lost for damage in report.damages]
    if not lost or None in lost:
        are = "is" if report.records == 1 else "are"
        return f"{count(report.records, info.noun)} {are} intact"
    total = count(report.records + sum(lost), info.noun)
    return f"{report.records:,} of {total} are intact"
