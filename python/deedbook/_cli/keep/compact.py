"""``deedbook compact``: drop the events of an event store that do not count any more."""

from __future__ import annotations

import argparse
import math
from typing import Literal

from deedbook import EventStore
from deedbook._cli.arguments import Commands, add_dry_run, add_json, add_lock_timeout, add_quiet
from deedbook._cli.read.query import store_at
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count, size

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compact",
        help="drop deleted, replaced and expired events of an event store",
        description="Drop deleted, replaced and expired events. The command rewrites each segment "
        "in which the events to drop have at least SHARE of the bytes.",
        epilog="examples:\n"
        "  deedbook compact store --dry-run\n"
        "  deedbook compact store --ratio 0      drop as many events as possible",
    )
    parser.add_argument("store", metavar="STORE", help="directory of the event store")
    parser.add_argument(
        "--ratio",
        metavar="SHARE",
        type=_share,
        help="rewrite a segment if the events to drop have at least SHARE of the bytes, 0 to 1 "
        "(default: the store's compaction_ratio, 0.2 unless set)",
    )
    add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_compact)


def _share(text: str) -> float:
    """Parse a share. Raises `argparse.ArgumentTypeError`."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share from 0 to 1")
    return found


def run_compact(args: argparse.Namespace, out: Output) -> int:
    """Compact a store. Raises `deedbook.Error`."""
    store_at(args, args.store)  # opening for writing would make a missing one
    mode: Literal["r", "a"] = "r" if args.dry_run else "a"
    timeout = 0.0 if args.dry_run else args.lock_timeout
    opened = EventStore.open(args.store, mode, lock_timeout=timeout)
    with opened as store, Progress("compact", enabled=not args.quiet) as progress:
        # Given even if nothing is drawn: Ctrl-C is raised from it.
        report = store.compact(args.ratio, dry_run=args.dry_run, progress=progress.update)
        path, default = store.path, store.compaction_ratio
    ratio = default if args.ratio is None else args.ratio
    facts = {"path": path, "dry_run": args.dry_run, **report.to_dict()}
    if report.segments:
        would = "would drop" if args.dry_run else "dropped"
        text = (
            f"{would} {report.deleted:,} deleted, {report.replaced:,} replaced and"
            f" {report.expired:,} expired of {count(len(report.segments), 'segment')};"
            f" {size(report.bytes_before)} -> {size(report.bytes_after)}"
        )
    elif ratio:
        text = f"nothing dropped, no segment of which {ratio:.0%} is deleted, replaced or expired"
    else:
        text = "nothing dropped, there is nothing to drop"
    return out.result(args.json, facts, [f"{path}: {text}"])
