"""``deedbook nostr`` with what is stored: query, count, check, compact, index, describe."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final

from deedbook import EventStore
from deedbook._text import count, exact_size, size
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook.cli.output import Output, table
from deedbook.cli.progress import Progress

FAULTS_SHOWN_MAX: Final = 20
"""At most this many faults are named, without ``--json``."""
_EPOCH: Final = date(1970, 1, 1)


def top(text: str) -> int:
    """Parse a number of rows. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 up")
    return int(text)


def share(text: str) -> float:
    """Parse a share. Raises `argparse.ArgumentTypeError`."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share from 0 to 1")
    return found


def run_query(args: argparse.Namespace, out: Output) -> int:
    """Print the events that a filter wants. Raises `CliError` and `deedbook.Error`."""
    text = args.filter
    if text == "-":
        if sys.stdin is None:
            raise CliError("standard input is closed")
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    with EventStore.open(args.store) as store:
        for event in store.query(text):
            out.data(event.to_json().encode() + b"\n")
    return EXIT_OK


def run_stats(args: argparse.Namespace, out: Output) -> int:
    """Count the events. Raises `deedbook.Error`."""
    with EventStore.open(args.store) as store:
        with Progress("stats", enabled=not args.quiet) as progress:
            census = store.census(
                progress=lambda events: progress.update(0, note=count(events, "event"))
            )
        path = store.path
    days = {str(_EPOCH + timedelta(days=day)): number for day, number in census.days.items()}
    tables: dict[str, Mapping[Any, int]] = {
        "kinds": census.kinds,
        "authors": census.authors,
        "days": days,
        "tags": census.tags,
    }
    if args.json:
        facts = {name: _most(numbers, 0) for name, numbers in tables.items()}
        out.emit({"ok": True, "path": path, "events": census.events, **facts})
        return EXIT_OK
    out.line(f"{path}: {count(census.events, 'event')}")
    for name, numbers in tables.items():
        shown = _most(numbers, args.top)
        of_all = f", the first {len(shown)}" if len(shown) < len(numbers) else ""
        out.line(f"{count(len(numbers), name[:-1])}{of_all}")
        for line in table([(key, f"{number:>12,}") for key, number in shown.items()]):
            out.line(f"  {line}")
    return EXIT_OK


def _most(numbers: Mapping[Any, int], rows: int) -> dict[str, int]:
    """The most frequent ones first."""
    found = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return {str(key): number for key, number in found[: rows or None]}


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """Check a store; return the exit code. Raises `deedbook.Error`."""
    with (
        EventStore.open(args.store) as store,
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        Progress("verify", enabled=not args.quiet) as progress,
    ):
        report = store.verify(check=args.check, progress=progress.update)
        path = store.path
    if args.json:
        out.emit({"path": path, "format": "nostr", **report.to_dict()})
        return EXIT_OK if report.ok else EXIT_DAMAGE
    verdict = "ok" if report.ok else count(report.faults, "fault")
    out.line(
        f"{path}: {verdict}, {count(report.live, 'event')}, {report.deleted:,} deleted,"
        f" {report.replaced:,} replaced, {count(report.segments, 'segment')},"
        f" {size(report.bytes)}"
    )
    for fault in report.first_faults[:FAULTS_SHOWN_MAX]:
        segment, offset = fault.location
        out.line(f"  segment {segment}, bytes {offset:,}..{fault.end:,}: {fault.reason}")
    if report.faults > FAULTS_SHOWN_MAX:
        out.line(f"  and {count(report.faults - FAULTS_SHOWN_MAX, 'more fault')}")
    return EXIT_OK if report.ok else EXIT_DAMAGE


def run_compact(args: argparse.Namespace, out: Output) -> int:
    """Compact a store. Raises `deedbook.Error`."""
    with _writer(args) as store:
        report = store.compact(args.ratio, dry_run=args.dry_run)
        path = store.path
    if args.json:
        out.emit({"ok": True, "path": path, "dry_run": args.dry_run, **report.to_dict()})
        return EXIT_OK
    if not report.segments:
        out.line(f"{path}: nothing to drop")
        return EXIT_OK
    would = "would drop" if args.dry_run else "dropped"
    out.line(
        f"{path}: {would} {report.deleted:,} deleted, {report.replaced:,} replaced and"
        f" {report.expired:,} expired of {count(len(report.segments), 'segment')};"
        f" {size(report.bytes_before)} -> {size(report.bytes_after)}"
    )
    return EXIT_OK


def run_reindex(args: argparse.Namespace, out: Output) -> int:
    """Make the index again. Raises `deedbook.Error`."""
    with _writer(args) as store:
        events = store.reindex()
        path = store.path
    if args.json:
        out.emit({"ok": True, "path": path, "events": events})
    else:
        out.line(f"{path}: indexed {count(events, 'event')}")
    return EXIT_OK


def _writer(args: argparse.Namespace) -> EventStore:
    """A store that is there, for changes: opening it for them would make a missing one."""
    EventStore.open(args.store).close()
    return EventStore.open(args.store, "a")


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Show sizes and the manifest. Raises `deedbook.Error`."""
    with EventStore.open(args.store) as store:
        path = store.path
    manifest = _manifest(path)
    facts: dict[str, Any] = {
        "path": path,
        "format": "nostr",
        "segments": len(manifest.get("active_segments", [])),
        "records": manifest.get("total_records"),
        "page_bytes": manifest.get("page_size"),
        "segment_bytes": _bytes_below(os.path.join(path, "data")),
        "wal_bytes": _bytes_below(os.path.join(path, "wal")),
        "index_bytes": _bytes_below(os.path.join(path, ".deedbook")),
        "compactions": manifest.get("compactions"),
        "created": _time(manifest.get("created_at")),
        "last_compaction": _time(manifest.get("last_compaction_time")),
    }
    if args.json:
        out.emit(facts)
        return EXIT_OK
    rows = [(name.replace("_", " "), _shown(name, value)) for name, value in facts.items()]
    for line in table(rows):
        out.line(line)
    return EXIT_OK


def _manifest(path: str) -> dict[str, Any]:
    """What the manifest says; nothing if it is not there: the next opening for writing makes it."""
    try:
        with open(os.path.join(path, "manifest.json"), "rb") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _bytes_below(directory: str) -> int:
    return sum(_sizes(directory))


def _sizes(directory: str) -> Iterable[int]:
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                yield os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:  # a writer replaced it
                continue


def _time(seconds: Any) -> str | None:
    """In UTC; None for a time that never was."""
    if not isinstance(seconds, int) or not 0 < seconds < 2**37:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("_bytes"):
        return exact_size(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
