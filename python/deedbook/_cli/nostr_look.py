"""``deedbook nostr`` with what is stored: query, count, check, compact, index, describe."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final, Literal

from deedbook import EventStore
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.output import Output, table
from deedbook._cli.progress import Progress
from deedbook._formats import Found
from deedbook._formats.nostr import NOSTR
from deedbook._text import count, escape_json, size

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
    with EventStore.open(args.store, mapped_reads=args.mapped_reads) as store:
        found = store.query(text, on_corrupt=_on_corrupt(args))
        for event in found:
            out.data(escape_json(event.to_json()).encode() + b"\n")
    return passed_over(len(found.damages), out)


def _on_corrupt(args: argparse.Namespace) -> Literal["raise", "skip"]:
    return "skip" if args.skip_corrupt else "raise"


def passed_over(damages: int, out: Output) -> int:
    """Tell what was passed over; returns the exit code."""
    if not damages:
        return EXIT_OK
    out.talk(f"passed over {count(damages, 'damaged place')}; verify names them")
    return EXIT_DAMAGE


def run_stats(args: argparse.Namespace, out: Output) -> int:
    """Count the events. Raises `deedbook.Error`."""
    with EventStore.open(args.store, mapped_reads=args.mapped_reads) as store:
        with Progress("stats", enabled=not args.quiet) as progress:
            census = store.census(
                on_corrupt=_on_corrupt(args),
                progress=lambda events: progress.update(0, note=count(events, "event")),
            )
            # Of a damaged segment nothing is compacted before it is repaired.
            segments = (
                []
                if census.damages
                else store.fragmentation(progress=lambda done, total: progress.update(0))
            )
        path, ratio = store.path, store.compaction_ratio
    is_due = any(found.dead_bytes and found.share >= ratio for found in segments)
    days = {str(_EPOCH + timedelta(days=day)): number for day, number in census.days.items()}
    tables: dict[str, Mapping[Any, int]] = {
        "kinds": census.kinds,
        "authors": census.authors,
        "days": days,
        "tags": census.tags,
    }
    if args.json:
        facts: dict[str, Any] = {name: _most(numbers, 0) for name, numbers in tables.items()}
        facts["segments"] = None if census.damages else [found.to_dict() for found in segments]
        facts["compaction_due"] = None if census.damages else is_due
        facts["damages"] = [found.to_dict() for found in census.damages]
        ok = not census.damages
        out.emit({"ok": ok, "path": path, "events": census.events, **facts})
        return EXIT_OK if ok else EXIT_DAMAGE
    out.line(f"{path}: {count(census.events, 'event')}")
    for name, numbers in tables.items():
        shown = _most(numbers, args.top)
        of_all = f", the first {len(shown)}" if len(shown) < len(numbers) else ""
        out.line(f"{count(len(numbers), name[:-1])}{of_all}")
        for line in table([(key, f"{number:>12,}") for key, number in shown.items()]):
            out.line(f"  {line}")
    if census.damages:
        out.line("what a compaction would drop is not known: it needs a repair")
        return passed_over(len(census.damages), out)
    due = "a compaction is due" if is_due else "no compaction is due"
    out.line(f"{count(len(segments), 'segment')}, and what a compaction would drop; {due}")
    for line in table([(str(found.segment), f"{found.share:>12.1%}") for found in segments]):
        out.line(f"  {line}")
    return EXIT_OK


def _most(numbers: Mapping[Any, int], rows: int) -> dict[str, int]:
    """The most frequent ones first."""
    found = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return {str(key): number for key, number in found[: rows or None]}


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """Check a store; return the exit code. Raises `deedbook.Error`."""
    # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
    with Progress("verify", enabled=not args.quiet) as progress:
        outcome = NOSTR.verify(
            args.store, progress.update, check=args.check, mapped_reads=args.mapped_reads
        )
    if args.json:
        out.emit({"path": args.store, "format": NOSTR.name, **outcome.facts})
    else:
        for line in outcome.lines:
            out.line(line)
    return EXIT_OK if outcome.ok else EXIT_DAMAGE


def run_compact(args: argparse.Namespace, out: Output) -> int:
    """Compact a store. Raises `deedbook.Error`."""
    opened = EventStore.open(args.store) if args.dry_run else _writer(args)
    with opened as store, Progress("compact", enabled=not args.quiet) as progress:
        # Given even if nothing is drawn: Ctrl-C is raised from it.
        report = store.compact(args.ratio, dry_run=args.dry_run, progress=progress.update)
        path, default = store.path, store.compaction_ratio
    ratio = default if args.ratio is None else args.ratio
    if args.json:
        out.emit({"ok": True, "path": path, "dry_run": args.dry_run, **report.to_dict()})
        return EXIT_OK
    if not report.segments:
        share = f"no segment of which {ratio:.0%} is deleted, replaced or expired"
        out.line(f"{path}: nothing dropped, {share if ratio else 'there is nothing to drop'}")
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
    with _writer(args) as store, Progress("reindex", enabled=not args.quiet) as progress:
        events = store.reindex(progress=progress.update)
        path = store.path
    if args.json:
        out.emit({"ok": True, "path": path, "events": events})
    else:
        out.line(f"{path}: indexed {count(events, 'event')}")
    return EXIT_OK


def _writer(args: argparse.Namespace) -> EventStore:
    """A store that is there, for changes: opening it for them would make a missing one."""
    EventStore.open(args.store).close()
    return EventStore.open(args.store, "a", lock_timeout=args.lock_timeout)


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Show sizes and the manifest. Raises `deedbook.Error`."""
    described = NOSTR.describe(args.store, Found(NOSTR))
    if args.json:
        out.emit(described.facts)
    else:
        for line in table(described.rows):
            out.line(line)
    return EXIT_OK
