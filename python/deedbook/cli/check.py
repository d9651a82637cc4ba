"""``deedbook info`` and ``deedbook verify``: look at a log without changing it."""

from __future__ import annotations

import argparse
import os
from typing import Any, NamedTuple

from deedbook import Error
from deedbook._text import count, damage_text, size
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, describe, details, exit_code
from deedbook.cli.output import Output, complain, table
from deedbook.cli.progress import Progress
from deedbook.formats import Found, require
from deedbook.formats._info import FormatInfo


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Print what opening the log at ``args.path`` for reading tells; return the exit code.

    Raises `deedbook.Error`.
    """
    found = require(args.path)
    with found.format.log.open(args.path) as log:
        writer = writer_of(found.format.sidecar(log))
        facts, rows = _facts(found, log, writer), _rows(found, log, writer)
    if args.json:
        out.emit(facts)
    else:
        for line in table(rows):
            out.line(line)
        out.flush()
    return EXIT_DAMAGE if facts["recovery"]["verdict"] == "corrupt" else EXIT_OK


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """Check every record of the logs at ``args.paths``; return the worst exit code.

    A log that cannot be opened is reported, and the others are still checked.
    """
    worst = EXIT_OK
    for path in args.paths:
        try:
            info = require(path).format
            with Progress(f"verify {path}", enabled=not args.quiet) as progress:
                # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
                report = info.log.verify(path, progress=progress.update)
        except (Error, OSError) as error:
            worst = max(worst, exit_code(error))
            complain(describe(error))
            if args.json:
                out.emit({"path": path, "ok": False, "error": details(error)})
            continue
        if not report.ok:
            worst = max(worst, EXIT_DAMAGE)
        if args.json:
            out.emit({"path": path, "format": info.name, **report.to_dict()})
        else:
            for line in _verify_lines(path, info, report):
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


def loss_text(info: FormatInfo[Any], report: Any) -> str | None:
    """The acknowledged records that a report misses; None if it misses none."""
    loss = report.loss
    if loss is None:
        return None
    lost = count(loss.records, f"acknowledged {info.noun}")
    return f"lost: {lost} from {info.loss_at(loss)} on (byte {loss.offset:,})"


def _facts(found: Found, log: Any, writer: Writer) -> dict[str, Any]:
    """What all formats have, under the same keys, and what only this one has."""
    info = found.format
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
        **info.facts(log),
    }
    if found.saved:
        facts["saved_from"] = found.saved_offset
    return facts


def _rows(found: Found, log: Any, writer: Writer) -> list[tuple[str, str]]:
    info, recovery = found.format, log.recovery
    rows = [("path", log.path), ("format", info.title), *info.rows(log)]
    if found.saved:
        where = "" if found.saved_offset is None else f" at byte {found.saved_offset:,}"
        rows.append(("saved", f"this is what was cut off a log{where}; bytes count from there"))
    rows += [("writer", _writer_text(writer)), ("recovery", _recovery_text(recovery))]
    if recovery.damage is not None and not _is_only_unwritten(recovery):
        rows.append(("damage", damage_text(recovery.damage, info.noun)))
    if (loss := loss_text(info, recovery)) is not None:
        rows.append(("loss", loss))
    return rows


def _writer_text(writer: Writer) -> str:
    if writer.held:
        return f"process {writer.pid}"
    if writer.held is None:
        return "not known" + (f" (signed by process {writer.pid})" if writer.pid else "")
    return "none" + (f" (process {writer.pid} left without closing)" if writer.pid else "")


def _recovery_text(recovery: Any) -> str:
    how = "by the mark" if recovery.source == "mark" else "by a scan"
    verdict = "unwritten tail" if _is_only_unwritten(recovery) else recovery.verdict
    text = f"{verdict} ({how}, {size(recovery.scanned_bytes)} read"
    text += ")" if recovery.mark == "used" else f", mark {recovery.mark})"
    if recovery.torn_bytes:
        text += f"; torn tail of {count(recovery.torn_bytes, 'byte')}"
    return text


def _is_only_unwritten(recovery: Any) -> bool:
    """Whether only zeros follow: space that a writer, alive or killed, took beforehand."""
    return bool(recovery.verdict == "open")


def _verify_lines(path: str, info: FormatInfo[Any], report: Any) -> list[str]:
    found = f"{count(report.records, info.noun)}, {size(report.bytes)}"
    found += info.extent_text(report.bounds)
    lines = [f"{path}: {'ok' if report.ok else report.verdict}, {found}"]
    if report.lost_acknowledged:
        lines.append(
            f"  acknowledged {info.noun}s are lost: durable to byte {report.durable_end or 0:,}, "
            f"intact to byte {report.valid_end:,}"
        )
    if (loss := loss_text(info, report)) is not None:
        lines.append(f"  {loss}")
    return lines + [f"  {damage_text(damage, info.noun)}" for damage in report.damages]
