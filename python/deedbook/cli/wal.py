"""The commands for write-ahead logs: what ``deedbook`` does where a path holds one."""

from __future__ import annotations

import argparse
import base64
import os
from collections.abc import Callable, Iterable
from typing import Any

from deedbook import Error, Record, Wal, WalVerifyReport
from deedbook.cli.check import damage_text, writer_of
from deedbook.cli.failure import (
    EXIT_DAMAGE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    CliError,
    details,
    printable,
)
from deedbook.cli.lines import LineSource, why_not_json
from deedbook.cli.output import Output, count, size, table
from deedbook.cli.progress import Progress
from deedbook.cli.signals import Stop

# -- looking --------------------------------------------------------------------------------------


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Print what opening the log for reading tells; return the exit code."""
    with Wal.open(args.path) as wal:
        recovery = wal.recovery
        facts: dict[str, Any] = {
            "path": wal.path,
            "format": "wal",
            "layout": wal.layout,
            "segment_bytes": wal.segment_bytes,
            "segments": len(wal.segment_paths),
            "records": len(wal),
            "head": wal.head,
            "end": wal.end,
            "durable_end": wal.durable_end,
            "record_bytes_max": wal.record_bytes_max,
            "consumers": wal.consumers(),
        }
        if args.json:
            writer = writer_of(_lock_dir(wal))._asdict()
            out.emit({**facts, "recovery": recovery.to_dict(), "writer": writer})
        else:
            for line in table(_info_rows(wal, facts)):
                out.line(line)
            out.flush()
    return EXIT_DAMAGE if recovery.verdict == "corrupt" else EXIT_OK


def _lock_dir(wal: Wal) -> str:
    """The directory beside which the lock lies."""
    if wal.layout == "segmented":
        return wal.path
    return os.path.join(os.path.dirname(wal.path), ".deedbook", os.path.basename(wal.path))


def _info_rows(wal: Wal, facts: dict[str, Any]) -> list[tuple[str, str]]:
    recovery = wal.recovery
    layout: str = wal.layout
    if wal.segment_bytes is not None:
        layout += f", {count(facts['segments'], 'segment')} of {size(wal.segment_bytes)}"
    durable = "not known (no mark)" if wal.durable_end is None else f"to byte {wal.durable_end:,}"
    how = "by the mark" if recovery.source == "mark" else "by a scan"
    unwritten = recovery.verdict == "torn" and recovery.torn_bytes == 0
    verdict = "unwritten tail" if unwritten else recovery.verdict
    rows = [
        ("path", wal.path),
        ("layout", layout),
        (
            "records",
            f"{len(wal):,}, bytes {wal.head:,} to {wal.end:,} ({size(wal.end - wal.head)})",
        ),
        ("durable", durable),
        ("recovery", f"{verdict} ({how}, {size(recovery.scanned_bytes)} read)"),
    ]
    rows += [("consumer", f"{name} needs lsn {lsn:,}") for name, lsn in facts["consumers"].items()]
    if recovery.damage is not None and not unwritten:
        rows.append(("damage", damage_text(recovery.damage)))
    return rows


def verify(path: str, progress: Progress, as_json: bool, out: Output) -> bool:
    """Check one log and print the result; whether it is fine."""
    report = Wal.verify(path, progress=progress.update)
    if as_json:
        out.emit({"path": path, **report.to_dict()})
    else:
        for line in _verify_lines(path, report):
            out.line(line)
        out.flush()
    return report.ok


def _verify_lines(path: str, report: WalVerifyReport) -> list[str]:
    found = f"{count(report.records, 'record')}, {size(report.bytes)}"
    if report.bounds is not None:
        found += f", bytes {report.bounds[0]:,} to {report.bounds[1]:,}"
    lines = [f"{path}: {'ok' if report.ok else report.verdict}, {found}"]
    if report.lost_acknowledged:
        lines.append(
            f"  acknowledged records are lost: durable to byte {report.durable_end or 0:,}, "
            f"intact to byte {report.valid_end:,}"
        )
    return lines + [f"  {damage_text(damage)}" for damage in report.damages]


# -- reading --------------------------------------------------------------------------------------


def run_cat(args: argparse.Namespace, start: int | None, stop: int | None, out: Output) -> int:
    """Print the records of a range of LSNs; return the exit code."""
    encode = _encoder(args)
    with Wal.open(args.path) as wal:
        if args.event is not None:
            out.data(encode(Record(args.event, wal.read(args.event))))
            out.flush()
            return EXIT_OK
        if args.follow:
            for record in wal.follow(start, timeout=args.timeout):
                if stop is not None and record.lsn >= stop:
                    break
                out.data(encode(record))
                out.flush()
            return EXIT_OK
        if stop is not None and stop > wal.end:
            stop = None
        records = wal.iter(
            start,
            stop,
            reverse=args.reverse,
            on_corrupt="skip" if args.skip_corrupt else "raise",
        )
        _print(records, encode, out)
        damages = getattr(records, "damages", [])
        for damage in damages:
            out.talk(f"skipping damage: {damage_text(damage)}")
    return EXIT_DAMAGE if damages else EXIT_OK


def _print(records: Iterable[Record], encode: Callable[[Record], bytes], out: Output) -> None:
    try:
        for record in records:
            out.data(encode(record))
    finally:
        out.flush()


def _encoder(args: argparse.Namespace) -> Callable[[Record], bytes]:
    if args.json:
        from deedbook.cli.output import to_json

        return lambda record: to_json(as_json(record))
    if args.raw:
        end = b"\0" if args.null else b"\n"
        return lambda record: record.payload + end
    return lambda record: as_text(record).encode() + b"\n"


def as_json(record: Record) -> dict[str, Any]:
    """A record as plain values: ``payload`` where it is UTF-8, else ``payload_base64``."""
    try:
        return {"lsn": record.lsn, "payload": record.payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {"lsn": record.lsn, "payload_base64": base64.b64encode(record.payload).decode()}


def as_text(record: Record) -> str:
    """A record on one line: LSN, tab, payload with everything unprintable escaped."""
    return f"{record.lsn}\t{printable(record.payload.decode('utf-8', 'backslashreplace'))}"


# -- appending ------------------------------------------------------------------------------------


def run_append(args: argparse.Namespace, out: Output) -> int:
    """Append the lines of a file as records; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the log; whatever was committed
    before stays, and is told in the JSON object.
    """
    if args.resume:
        raise CliError("append: --resume goes by event numbers, which a WAL has not")
    if args.epoch is not None:
        raise CliError("append: --epoch is for books")
    with (
        LineSource.open(args.file, line_bytes_max=args.line_bytes_max) as source,
        Wal.open(
            args.path,
            "a",
            # One sync for each commit, not for each record.
            durability="manual" if args.durability == "always" else args.durability,
            recovery=args.recovery,
            segment_bytes=args.segment_bytes,
            single_file=args.single_file,
        ) as wal,
    ):
        if wal.recovery.torn_bytes and wal.recovery.cut_bytes:
            torn = count(wal.recovery.torn_bytes, "byte")
            out.talk(f"cut a torn tail of {torn} behind byte {wal.recovery.valid_end:,}")
        if any(source.is_file(path) for path in wal.segment_paths):
            raise CliError(f"{source.name} is a file of {wal.path} itself")
        job = _Job(args, out, wal, source)
        try:
            with Stop() as stop:
                job.append_all(stop)
        except (CliError, Error) as error:
            if args.json:
                out.emit({"ok": False, **job.result(), "error": details(error)})
            elif job.appended:
                out.talk(job.summary())
            raise
        if args.json:
            out.emit({"ok": not stop.requested, **job.result()})
        else:
            out.talk(("interrupted; " if stop.requested else "") + job.summary())
    return EXIT_INTERRUPTED if stop.requested else EXIT_OK


class _Job:
    """One run of ``append``: what was appended, left out and acknowledged."""

    def __init__(self, args: argparse.Namespace, out: Output, wal: Wal, source: LineSource) -> None:
        self._args, self._out, self._wal, self._source = args, out, wal, source
        self._first: int | None = None
        self._invalid = 0
        self.appended = 0

    def append_all(self, stop: Stop) -> None:
        """Append every line, a commit for each batch; return at an edge after a stop."""
        source = self._source
        with Progress("append", source.total_bytes, enabled=not self._args.quiet) as progress:
            for batch in source.batches(self._args.batch, stop):
                self._take(batch.lines, batch.first_line)
                progress.update(source.bytes_read, note=count(self.appended, "record"))
        if self._args.durability != "none":
            self._wal.sync()

    def _take(self, lines: list[bytes], first_line: int) -> None:
        payloads: list[bytes] = []
        problem: CliError | None = None
        for number, line in enumerate(lines, first_line):
            reason = why_not_json(line) if self._args.validate else None
            if reason is not None and not self._args.skip_invalid:
                text = f"line {number} of {self._source.name} is not JSON: {reason}"
                problem = CliError(text, line=number)
                break
            if reason is None:
                payloads.append(line)
            else:
                self._invalid += 1
        if payloads:
            self._commit(payloads)
        if problem is not None:
            raise problem

    def _commit(self, payloads: list[bytes]) -> None:
        lsns = self._wal.append_batch(payloads)
        if self._first is None:
            self._first = lsns[0]
        if self._args.durability == "always":
            self._wal.sync()
        self.appended += len(lsns)
        if self._args.acks and self._wal.durable_end == self._wal.end:
            self._out.line(str(self._wal.durable_end))
            self._out.flush()

    def result(self) -> dict[str, Any]:
        """The run in numbers, ready for JSON."""
        return {
            "path": self._wal.path,
            "appended": self.appended,
            "invalid_lines": self._invalid,
            "first_lsn": self._first,
            "end": self._wal.end,
            "durable_end": self._wal.durable_end,
        }

    def summary(self) -> str:
        """The run in one line for people."""
        text = f"appended {count(self.appended, 'record')}"
        if self._first is not None:
            text += f" (bytes {self._first:,} to {self._wal.end:,})"
        if self._invalid:
            text += f", left out {count(self._invalid, 'invalid line')}"
        durable = self._wal.durable_end
        return f"{text}; " + (
            "all durable" if durable == self._wal.end else f"durable to byte {durable or 0:,}"
        )


# -- mending and dropping -------------------------------------------------------------------------


def run_salvage(args: argparse.Namespace, out: Output) -> int:
    """Copy every intact record to a new log of the same layout."""
    with Progress(f"salvage {args.source}", enabled=not args.quiet) as progress:
        report = Wal.salvage(args.source, args.target, progress=progress.update)
    if args.json:
        out.emit({"ok": True, "source": args.source, "target": args.target, **report.to_dict()})
        return EXIT_OK
    out.line(f"{args.target}: copied {count(report.records, 'record')}")
    for damage in report.damages:
        out.line(f"  left out {damage_text(damage)}")
    for run in report.runs if len(report.runs) > 1 else []:
        out.line(f"  {count(run.records, 'record')} from lsn {run.source_lsn:,} at {run.lsn:,}")
    out.flush()
    return EXIT_OK


def run_truncate(args: argparse.Namespace, out: Output) -> int:
    """Drop a prefix, or cut the end; print what is left."""
    chosen = [name for name in ("before", "after", "from_") if getattr(args, name) is not None]
    if len(chosen) != 1:
        raise CliError("truncate: give one of --before, --after and --from")
    with Wal.open(args.path, "a") as wal:
        head, end, records = wal.head, wal.end, len(wal)
        # Opening synced what it found: everything is durable.
        if args.before is not None:
            wal.truncate_before(end if args.before == "end" else args.before, force=args.force)
        elif args.after is not None:
            wal.truncate_after(args.after)
        else:
            wal.truncate_from(args.from_)
        dropped = records - len(wal)
        if args.json:
            out.emit(
                {
                    "ok": True,
                    "path": wal.path,
                    "dropped_records": dropped,
                    "head": wal.head,
                    "end": wal.end,
                }
            )
        else:
            left = f"bytes {wal.head:,} to {wal.end:,} are left of {head:,} to {end:,}"
            out.line(f"{wal.path}: dropped {count(dropped, 'record')}; {left}")
            out.flush()
    return EXIT_OK
