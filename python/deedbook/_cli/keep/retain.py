"""``deedbook retain`` and ``consumers``: drop parts of logs; named consumers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final, Literal

from deedbook import EventStore, LockedError, Pier, Wal
from deedbook._cli.arguments import (
    Commands,
    add_dry_run,
    add_json,
    add_lock_timeout,
    add_path,
    add_quiet,
    age,
    size,
)
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.read.cat import event_number
from deedbook._cli.read.query import store_at
from deedbook._cli.terminal.output import Output, table
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import require
from deedbook._formats.info import FormatInfo
from deedbook._formats.nostr import NOSTR
from deedbook._formats.pier import PIER
from deedbook._formats.wal import WAL
from deedbook._show.text import count, exact_size
from deedbook.reports import Dropped, DroppedEpochs

_FORMATS: Final = (WAL, PIER)


def add_arguments(commands: Commands) -> None:
    """Add the commands."""
    _add_retain(commands)
    _add_consumers(commands)


def _add_retain(commands: Commands) -> None:
    parser = commands.add_parser(
        "retain",
        help="drop old records of a WAL, a pier or an event store",
        description="Drop the beginning of a write-ahead log or a pier, in whole segments or "
        "epochs, by size, age or consumers. Each further rule allows the command to drop more. "
        "Of an event store, the command hides single events, and 'deedbook compact' drops them. "
        "The command keeps records that a named consumer needs, records that are not durable, and "
        "the last epoch of a pier. With --from or --to, the command drops the records of a "
        "write-ahead log before or after an LSN. After a crash at any moment, the log has either "
        "all old records or only the kept records.",
        epilog="examples:\n"
        "  deedbook retain events.wal --max-bytes 10g\n"
        "  deedbook retain events.wal --max-bytes 10g --dry-run    even while a process writes\n"
        "  deedbook retain events.wal --max-age 7d --consumed\n"
        "  deedbook retain events.wal --from 4096          drop the records before LSN 4096\n"
        "  deedbook retain events.wal --from end           drop all records\n"
        "  deedbook retain events.wal --to 8192            drop the records from LSN 8192 on\n"
        "  deedbook retain zod --max-age 30d\n"
        "  deedbook retain zod --roll                      begin a new epoch of a pier\n"
        "  deedbook retain store --max-age 90d --kind 7    hide the reactions of an event store\n"
        "  deedbook retain store --event ID                hide an event\n\n"
        "'deedbook cat' prints the LSNs. --from drops records that a named consumer needs only\n"
        "with --force. With --roll, the command first begins a new epoch of the pier, durably,\n"
        "with the metadata of the last epoch. The rules may then drop the former last epoch.\n"
        "Without --kind, the rules for an event store keep profiles, lists, other events that\n"
        "their author can replace, and deletion requests.",
    )
    add_path(parser)
    parser.add_argument(
        "--max-bytes",
        metavar="BYTES",
        type=size,
        help="keep at least BYTES, for example 10g; drop older records",
    )
    parser.add_argument(
        "--max-age",
        metavar="TIME",
        type=age,
        help="drop records older than TIME, for example 7d",
    )
    parser.add_argument(
        "--consumed", action="store_true", help="drop the records before the slowest named consumer"
    )
    parser.add_argument(
        "--from",
        dest="from_",
        metavar="LSN",
        type=_lsn_or_end,
        help="for a WAL: keep the records from LSN on; 'end' keeps none",
    )
    parser.add_argument(
        "--to", metavar="LSN", type=event_number, help="for a WAL: keep the records before LSN"
    )
    parser.add_argument(
        "--force", action="store_true", help="with --from: also drop records that consumers need"
    )
    parser.add_argument("--roll", action="store_true", help="for a pier: first begin a new epoch")
    parser.add_argument(
        "--kind",
        metavar="KIND",
        type=_kind,
        action="append",
        default=[],
        help="for an event store: hide the events of this kind; several are possible",
    )
    parser.add_argument(
        "--event",
        metavar="ID",
        action="append",
        default=[],
        help="for an event store: hide the event with this id, 64 hex digits; several are possible",
    )
    add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_retain)


def _lsn_or_end(text: str) -> int | str:
    return _position_or_end(text, "an LSN")


def _kind(text: str) -> int:
    """Parse a kind. Raises `argparse.ArgumentTypeError`."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a kind, 0 to 65535")


def _add_consumers(commands: Commands) -> None:
    parser = commands.add_parser(
        "consumers",
        help="list, set or remove the named consumers of a WAL or pier",
        description="List the named consumers of a write-ahead log or pier, each with the next "
        "LSN or event to read. 'deedbook retain' keeps the records that the slowest consumer "
        "needs. The command works while another process writes.",
        epilog="examples:\n"
        "  deedbook consumers events.wal\n"
        "  deedbook consumers events.wal --set backup 4096\n"
        "  deedbook consumers events.wal --set backup end\n"
        "  deedbook consumers events.wal --remove backup --dry-run\n"
        "  deedbook consumers events.wal --remove backup",
    )
    add_path(parser)
    parser.add_argument(
        "--set",
        nargs=2,
        metavar=("NAME", "NEXT"),
        help="set the next LSN or event of NAME, durably; 'end' is the end of the log",
    )
    parser.add_argument("--remove", metavar="NAME", help="remove the consumer NAME, durably")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="with --remove: only print how much the consumer alone keeps",
    )
    add_json(parser)
    parser.set_defaults(run=run_consumers)


def run_retain(args: argparse.Namespace, out: Output) -> int:
    """Drop records by the rules; print the dropped and the kept records."""
    by_rule = args.max_bytes is not None or args.max_age is not None or args.consumed
    by_place = [place for place in (args.from_, args.to) if place is not None]
    if not (by_rule or by_place or args.roll or args.event):
        raise CliError(
            "retain: give --max-bytes, --max-age, --consumed, --from, --to, --roll or --event"
        )
    if args.event and (by_rule or by_place or args.roll or args.kind):
        raise CliError("retain: --event goes alone")
    if args.kind and (by_place or args.roll):
        raise CliError("retain: --kind goes with --max-bytes or --max-age")
    if len(by_place) > 1 or (by_place and (by_rule or args.roll)):
        raise CliError("retain: --from and --to each go alone")
    if args.force and args.from_ is None:
        raise CliError("retain: --force goes with --from")
    if args.roll and args.dry_run:
        raise CliError("retain: --roll goes without --dry-run")
    if by_place:
        return _truncate(args, out)
    if args.roll:
        _roll(args, out, last=not by_rule)
        if not by_rule:
            return EXIT_OK
    try:
        if args.event or require(args.path).format is NOSTR:
            return _hide(args, out)
        if args.kind:
            raise CliError("retain: --kind is for event stores")
        return _retain(args, out)
    except LockedError as error:
        way = "a WAL's writer drops by itself if it is opened with retain_bytes or retain_age"
        known = {} if error.holder is None else {"holder": error.holder}
        raise CliError(f"{error}; {way}", kind=error.kind, path=error.path, **known) from error


def _truncate(args: argparse.Namespace, out: Output) -> int:
    """Drop the records before or after a position."""
    dry_run = args.dry_run
    with _open_kept(args, "r" if dry_run else "a", (WAL,)) as wal:
        assert isinstance(wal, Wal)
        head, end = wal.head, wal.end
        if args.to is not None:
            dropped = wal.truncate_from(args.to, dry_run=dry_run)
        else:
            before = end if args.from_ == "end" else args.from_
            dropped = wal.truncate_before(before, force=args.force, dry_run=dry_run)
        return _tell_dropped(wal, head, end, dropped, args, out)


def _roll(args: argparse.Namespace, out: Output, *, last: bool) -> None:
    """Begin an epoch of a pier; print the result if the command does nothing else."""
    with _open_kept(args, "a", (PIER,)) as pier:
        assert isinstance(pier, Pier)
        number = pier.roll()
        path, epoch, epochs = pier.path, pier.epochs[-1], len(pier.epochs)
    if args.json and last:
        out.emit({"ok": True, "path": path, "epoch": number, "epoch_path": epoch.path})
    elif not args.json:
        out.talk(f"began epoch 0i{number}, the {epochs}. of {path}")


def _retain(args: argparse.Namespace, out: Output) -> int:
    dry_run = args.dry_run
    # Event stores went to `_hide`.
    with _open_kept(args, "r" if dry_run else "a", (*_FORMATS, NOSTR)) as log:
        rules = {"max_bytes": args.max_bytes, "max_age": args.max_age, "consumed": args.consumed}
        if isinstance(log, Pier):
            return _tell_epochs(log, log.retain(**rules, dry_run=dry_run), args, out)
        head, end = log.head, log.end
        return _tell_dropped(log, head, end, log.retain(**rules, dry_run=dry_run), args, out)


def _hide(args: argparse.Namespace, out: Output) -> int:
    """Hide events of a store: by id, or by the rules."""
    if args.consumed:
        why = (
            f"--consumed: {args.path} holds an event store, this is for write-ahead logs and piers"
        )
        raise CliError(f"retain: {why}")
    store_at(args, args.path)  # opening for writing would make a missing one
    opened = EventStore.open(args.path, "a", lock_timeout=args.lock_timeout, auto_compact=False)
    with opened as store, Progress("retain", enabled=not args.quiet) as progress:
        if args.event:
            hidden = _hide_events(store, args.event, dry_run=args.dry_run)
        else:
            hidden = store.retain(
                max_bytes=args.max_bytes,
                max_age=args.max_age,
                kinds=args.kind,
                dry_run=args.dry_run,
                progress=lambda events: progress.update(0, note=count(events, "event")),
            )
        path = store.path
    facts = {"path": path, "dry_run": args.dry_run, "hidden": hidden}
    what = f"would hide {count(hidden, 'event')}"
    if not args.dry_run:
        what = f"hid {count(hidden, 'event')}; 'deedbook compact' gives the space back"
    return out.result(args.json, facts, [f"{path}: {what}"])


def _hide_events(store: EventStore, ids: Sequence[str], *, dry_run: bool) -> int:
    """Hide the events with these ids, all or none."""
    places = set()
    for event in ids:
        stored = store.get(event)
        if stored is None or stored.location is None:
            raise CliError(f"retain: {store.path} has no event {event}, or it is hidden already")
        places.add(stored.location)
    for location in () if dry_run else places:
        store.set_flags(location, deleted=True)
    return len(places)


def _tell_dropped(
    wal: Wal, head: int, end: int, dropped: Dropped, args: argparse.Namespace, out: Output
) -> int:
    """Print the dropped records, or the records to drop, of a log from ``head`` to ``end``."""
    facts = {"head": dropped.head, "end": dropped.end}
    gone = count(dropped.records, "record")
    left = f"bytes {dropped.head:,} to {dropped.end:,} {{}} left of {head:,} to {end:,}"
    return _tell(wal, dropped.records, dropped.bytes, facts, gone, left, args, out)


def _tell_epochs(pier: Pier, dropped: DroppedEpochs, args: argparse.Namespace, out: Output) -> int:
    """Print the dropped epochs, or the epochs to drop."""
    last = pier.last
    facts = {"dropped_epochs": dropped.epochs, "epoch": dropped.epoch, "last": last}
    gone = f"{count(len(dropped.epochs), 'epoch')} with {count(dropped.deeds, 'deed')}"
    some = "no events" if dropped.epoch == last else f"events {dropped.epoch + 1} to {last}"
    return _tell(pier, dropped.deeds, dropped.bytes, facts, gone, f"{some} {{}} left", args, out)


def _tell(
    log: Wal | Pier,
    records: int,
    nbytes: int,
    facts: dict[str, Any],
    gone: str,
    left: str,
    args: argparse.Namespace,
    out: Output,
) -> int:
    """Print ``gone``, the dropped part, and ``left``, the kept part with ``{}`` for the verb."""
    what, are = (f"{gone} would go", "would be") if args.dry_run else (f"dropped {gone}", "are")
    facts = {
        "dry_run": args.dry_run,
        "path": log.path,
        "dropped_records": records,
        "dropped_bytes": nbytes,
        "records": len(log) - (records if args.dry_run else 0),
        **facts,
    }
    return out.result(args.json, facts, [f"{log.path}: {what}; {left.format(are)}"])


def run_consumers(args: argparse.Namespace, out: Output) -> int:
    """List the named consumers, after setting or removing one."""
    if args.dry_run and (args.remove is None or args.set is not None):
        raise CliError("consumers: --dry-run goes with --remove alone")
    freed: dict[str, int] = {}
    if args.set is None and args.remove is None:
        with _open_kept(args, "r", _FORMATS) as log:
            consumers = log.consumers()
    else:
        # Readers may set consumers: the command works while another process writes.
        with _open_kept(args, "r", _FORMATS) as log:
            if args.remove is not None:
                if args.remove not in log.consumers():
                    raise CliError(f"consumers: {log.path} has no consumer {args.remove!r}")
                if args.dry_run:
                    freed = _freed(log, args.remove)
                else:
                    log.remove_consumer(args.remove)
            if args.set is not None:
                log.set_consumer(args.set[0], _position(log, args.set[1]))
            consumers = log.consumers()
    if args.dry_run:
        del consumers[args.remove]
    facts = {"path": args.path, "consumers": consumers}
    lines = []
    if args.dry_run:
        facts |= {"dry_run": True, **freed}
        [(unit, more)] = freed.items()
        kept = exact_size(more) if unit == "freed_bytes" else count(more, "deed")
        lines.append(f"{args.remove} would be forgotten; it alone keeps {kept}")
    lines += table([(name, str(lsn)) for name, lsn in consumers.items()])
    return out.result(args.json, facts, lines)


def _freed(log: Wal | Pier, name: str) -> dict[str, int]:
    """The part of the log that only the consumer keeps: bytes of a WAL, deeds of a pier."""
    consumers = log.consumers()
    first = min(consumers.values())
    del consumers[name]
    unit, end = ("freed_bytes", log.end) if isinstance(log, Wal) else ("freed_deeds", log.last + 1)
    return {unit: max(0, min(consumers.values(), default=end) - first)}


def _position(log: Wal | Pier, text: str) -> int:
    what = "an event" if isinstance(log, Pier) else "an LSN"
    try:
        where = _position_or_end(text, what)
    except argparse.ArgumentTypeError as error:
        raise CliError(f"consumers: {error}") from error
    if isinstance(where, int):
        return where
    return log.last + 1 if isinstance(log, Pier) else log.end


def _open_kept(
    args: argparse.Namespace, mode: Literal["r", "a"], formats: Sequence[FormatInfo]
) -> Wal | Pier:
    """The log, in one of the formats. A missing log is an error: dropping creates nothing."""
    found = require(args.path)
    if found.format not in formats or found.saved:
        saved = "the saved end of " if found.saved else ""
        *others, last = (f"{info.title}s" for info in formats)
        titles = f"{', '.join(others)} and {last}" if others else last
        raise CliError(
            f"{args.command}: {args.path} holds {saved}a {found.format.title}, this is for {titles}"
        )
    timeout = args.lock_timeout if mode == "a" else 0.0
    opened: Wal | Pier = found.format.log.open(args.path, mode, lock_timeout=timeout)
    return opened


def _position_or_end(text: str, what: str) -> int | str:
    """Parse a position, or ``end``. Raises `argparse.ArgumentTypeError`."""
    if text == "end":
        return text
    if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is neither {what} nor 'end'")
