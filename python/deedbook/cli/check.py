"""``deedbook info`` and ``deedbook verify``: look at a log without changing it."""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

from deedbook import (
    Book,
    Damage,
    Error,
    Meta,
    RecoveryReport,
    VerifyReport,
    Wal,
    WalRecoveryReport,
    WalVerifyReport,
)
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, describe, details, exit_code
from deedbook.cli.output import Output, complain, count, size, table
from deedbook.cli.progress import Progress
from deedbook.formats import require


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Print what opening the log at ``args.path`` for reading tells; return the exit code.

    Raises `deedbook.Error`.
    """
    log: Book | Wal
    if require(args.path) == "wal":
        with Wal.open(args.path) as log:
            writer = writer_of(_sidecar(log))
            facts, rows = _wal_as_json(log, writer), _wal_rows(log, writer)
    else:
        with Book.open(args.path) as log:
            writer = writer_of(os.path.join(log.path, ".deedbook"))
            facts, rows = _info_as_json(log, writer), _info_rows(log, writer)
    if args.json:
        out.emit(facts)
    else:
        for line in table(rows):
            out.line(line)
        out.flush()
    return EXIT_DAMAGE if facts["recovery"]["verdict"] == "corrupt" else EXIT_OK


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """Check every record of the logs at ``args.paths``; return the worst exit code.

    A log that cannot be opened is told, and the others are still checked.
    """
    worst = EXIT_OK
    for path in args.paths:
        try:
            with Progress(f"verify {path}", enabled=not args.quiet) as progress:
                # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
                check = Wal.verify if require(path) == "wal" else Book.verify
                report = check(path, progress=progress.update)
        except (Error, OSError) as error:
            worst = max(worst, exit_code(error))
            complain(describe(error))
            if args.json:
                out.emit({"path": path, "ok": False, "error": details(error)})
            continue
        if not report.ok:
            worst = max(worst, EXIT_DAMAGE)
        if args.json:
            out.emit({"path": path, **report.to_dict()})
        else:
            for line in _verify_lines(path, report):
                out.line(line)
            out.flush()
    return worst


class Writer(NamedTuple):
    """Whether a writer holds a log's lock, as far as this machine can tell."""

    held: bool | None
    """None: not known."""
    pid: int | None
    """Process that signed the lock last, if it did not release it."""


def writer_of(sidecar: str) -> Writer:
    """Look who holds the lock in ``sidecar``, a log's ``.deedbook``, without touching the lock.

    A try-lock would be simpler, but a writer that opens at that moment would be refused.
    """
    path = os.path.join(sidecar, "lock")
    try:
        with open(path, "rb") as file:
            text = file.read(32).strip()
            inode = os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return Writer(False, None)
    except OSError:
        return Writer(None, None)
    if not text.isdigit():
        return Writer(False if not text else None, None)
    pid = int(text)
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as locks:
            held = any(_is_lock_of(line, pid, inode) for line in locks)
    except OSError:
        return Writer(None, pid)
    return Writer(held, pid)


def _is_lock_of(line: str, pid: int, inode: int) -> bool:
    """Whether a line like ``3: FLOCK  ADVISORY  WRITE 812 08:01:4711 0 EOF`` is that lock."""
    words = line.split()
    return len(words) > 5 and words[4] == str(pid) and words[5].rpartition(":")[2] == str(inode)


def damage_text(damage: Damage, noun: str = "deed") -> str:
    """A damaged stretch in one line; ``noun`` is what the log consists of."""
    text = f"bytes {damage.offset:,}..{damage.end:,}: {damage.reason}"
    if damage.events_lost is not None:
        text += f"; {count(damage.events_lost, noun)} lost"
        if damage.first_event is not None and damage.events_lost > 0:
            text += f" from event {damage.first_event}"
    elif damage.first_event is not None:
        text += f"; from event {damage.first_event} on"
    if damage.next_intact is not None:
        text += f"; next intact {noun} at byte {damage.next_intact:,}"
    return text


def bounds_text(bounds: tuple[int, int] | None) -> str:
    """First and last event, or that there is none."""
    return "no events" if bounds is None else f"events {bounds[0]}..{bounds[1]}"


def _info_as_json(book: Book, writer: Writer) -> dict[str, Any]:
    meta = book.meta
    return {
        "path": book.path,
        "layout": book.layout,
        "bounds": book.bounds,
        "epoch": book.epoch,
        "deeds": len(book),
        "bytes": book.end,
        "file_bytes": book.recovery.file_end,
        "durable_event": book.durable_last,
        "durable_end": book.recovery.durable_end,
        "meta": {
            # 128 bits: a JSON number would lose the lower ones in most readers.
            "who": None if meta.who is None else f"{meta.who:#x}",
            "version": meta.version,
            "life": meta.life,
            "fake": meta.fake,
        },
        "recovery": book.recovery.to_dict(),
        "writer": writer._asdict(),
    }


def _info_rows(book: Book, writer: Writer) -> list[tuple[str, str]]:
    recovery = book.recovery
    rows = [
        ("path", book.path),
        ("layout", book.layout),
        ("events", _events_text(book)),
        ("size", f"{_exact_size(book.end)}, file {_exact_size(recovery.file_end)}"),
        ("durable", _durable_text(book)),
        ("metadata", _meta_text(book.meta)),
        ("writer", _writer_text(writer)),
        ("recovery", _recovery_text(recovery)),
    ]
    if recovery.damage is not None and not _is_only_unwritten(recovery):
        rows.append(("damage", damage_text(recovery.damage)))
    return rows


def _sidecar(wal: Wal) -> str:
    """The log's ``.deedbook``; several single files may lie in a directory."""
    if wal.layout == "segmented":
        return os.path.join(wal.path, ".deedbook")
    directory, name = os.path.split(wal.path)
    return os.path.join(directory, ".deedbook", name)


def _wal_as_json(wal: Wal, writer: Writer) -> dict[str, Any]:
    return {
        "path": wal.path,
        "format": "wal",
        "layout": wal.layout,
        "segment_bytes": wal.segment_bytes,
        "segments": len(wal.segment_paths),
        "records": len(wal),
        "head": wal.head,
        "end": wal.end,
        "file_end": wal.recovery.file_end,
        "durable_end": wal.durable_end,
        "record_bytes_max": wal.record_bytes_max,
        "consumers": wal.consumers(),
        "recovery": wal.recovery.to_dict(),
        "writer": writer._asdict(),
    }


def _wal_rows(wal: Wal, writer: Writer) -> list[tuple[str, str]]:
    recovery = wal.recovery
    layout: str = wal.layout
    if wal.segment_bytes is not None:
        layout += f", {count(len(wal.segment_paths), 'segment')} of {size(wal.segment_bytes)}"
    durable = "not known (no mark)" if wal.durable_end is None else f"to byte {wal.durable_end:,}"
    rows = [
        ("path", wal.path),
        ("layout", layout),
        ("records", f"{len(wal):,}, bytes {wal.head:,} to {wal.end:,}"),
        ("size", _exact_size(wal.end - wal.head)),
        ("durable", durable),
        ("writer", _writer_text(writer)),
        ("recovery", _recovery_text(recovery)),
    ]
    rows += [("consumer", f"{name} needs lsn {lsn:,}") for name, lsn in wal.consumers().items()]
    if recovery.damage is not None and not _is_only_unwritten(recovery):
        rows.append(("damage", damage_text(recovery.damage, "record")))
    return rows


def _events_text(book: Book) -> str:
    if book.bounds is None:
        return f"none (epoch {book.epoch})"
    low, high = book.bounds
    return f"{low}..{high} ({count(len(book), 'deed')}, epoch {book.epoch})"


def _exact_size(count_bytes: int) -> str:
    exact = count(count_bytes, "byte")
    return exact if count_bytes < 1024 else f"{size(count_bytes)} ({exact})"


def _durable_text(book: Book) -> str:
    end = book.recovery.durable_end
    if book.durable_last is None or end is None:
        return "not known (no mark)"
    return f"through event {book.durable_last} (byte {end:,})"


def _meta_text(meta: Meta) -> str:
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


def _writer_text(writer: Writer) -> str:
    if writer.held:
        return f"process {writer.pid}"
    if writer.held is None:
        return "not known" + (f" (signed by process {writer.pid})" if writer.pid else "")
    return "none" + (f" (process {writer.pid} left without closing)" if writer.pid else "")


def _recovery_text(recovery: RecoveryReport | WalRecoveryReport) -> str:
    how = "by the mark" if recovery.source == "mark" else "by a scan"
    verdict = "unwritten tail" if _is_only_unwritten(recovery) else recovery.verdict
    text = f"{verdict} ({how}, {size(recovery.scanned_bytes)} read"
    text += ")" if recovery.mark == "used" else f", mark {recovery.mark})"
    if recovery.torn_bytes:
        text += f"; torn tail of {count(recovery.torn_bytes, 'byte')}"
    return text


def _is_only_unwritten(recovery: RecoveryReport | WalRecoveryReport) -> bool:
    """Whether only zeros follow: space that a writer, alive or killed, took beforehand."""
    return recovery.verdict == "torn" and recovery.torn_bytes == 0


def _verify_lines(path: str, report: VerifyReport | WalVerifyReport) -> list[str]:
    if isinstance(report, WalVerifyReport):
        noun, found = "record", count(report.records, "record")
    else:
        noun, found = "deed", count(report.deeds, "deed")
    found += f", {size(report.bytes)}"
    if isinstance(report, VerifyReport):
        found += f", {bounds_text(report.bounds)}"
    elif report.bounds is not None:
        found += f", bytes {report.bounds[0]:,} to {report.bounds[1]:,}"
    lines = [f"{path}: {'ok' if report.ok else report.verdict}, {found}"]
    if report.lost_acknowledged:
        lines.append(
            f"  acknowledged {noun}s are lost: durable to byte {report.durable_end or 0:,}, "
            f"intact to byte {report.valid_end:,}"
        )
    return lines + [f"  {damage_text(damage, noun)}" for damage in report.damages]
