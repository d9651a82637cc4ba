"""What WALs and piers have: retention, and consumers that keep what they need."""

from __future__ import annotations

import argparse
from typing import Final

from deedbook import LockedError, Pier, Wal
from deedbook._cli.arguments import Commands, add_json, add_lock_timeout, add_path, age, size
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.kept import add_dry_run, open_kept, position_or_end
from deedbook._cli.output import Output, table
from deedbook._cli.wal import tell_dropped
from deedbook._formats.pier import PIER
from deedbook._formats.wal import WAL
from deedbook._text import count, exact_size
from deedbook.reports import DroppedEpochs

_FORMATS: Final = (WAL, PIER)


def add_arguments(commands: Commands) -> None:
    """Add the commands."""
    _add_retain(commands)
    _add_consumers(commands)


def _add_retain(commands: Commands) -> None:
    parser = commands.add_parser(
        "retain",
        help="drop the beginning of a WAL or pier by size, age or consumers",
        description="Drop whole segments from the beginning of a write-ahead log, or whole epochs "
        "from that of a pier. Each rule allows more to go; what a named consumer needs, or is not "
        "durable, stays, and so does a pier's last epoch.",
        epilog="examples:\n"
        "  deedbook retain events.wal --max-bytes 10g\n"
        "  deedbook retain events.wal --max-bytes 10g --dry-run    beside the writer, too\n"
        "  deedbook retain events.wal --max-age 7d --consumed\n"
        "  deedbook retain zod --max-age 30d",
    )
    add_path(parser)
    parser.add_argument(
        "--max-bytes",
        metavar="BYTES",
        type=size,
        help="keep at least so many bytes, with k, m or g; what is older may go",
    )
    parser.add_argument(
        "--max-age",
        metavar="AGE",
        type=age,
        help="seconds, or with m, h or d: what is older may go",
    )
    parser.add_argument(
        "--consumed", action="store_true", help="what every named consumer has passed may go"
    )
    add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    parser.set_defaults(run=run_retain)


def _add_consumers(commands: Commands) -> None:
    parser = commands.add_parser(
        "consumers",
        help="list, set or remove the named consumers of a WAL or pier",
        description="List the named consumers of a write-ahead log or pier, each with the LSN or "
        "event that it needs next. 'truncate --before' and 'retain' keep what the slowest one "
        "needs. Works beside a running writer.",
        epilog="examples:\n"
        "  deedbook consumers events.wal\n"
        "  deedbook consumers events.wal --set backup 4096\n"
        "  deedbook consumers events.wal --set backup end\n"
        "  deedbook consumers events.wal --remove backup --dry-run\n"
        "  deedbook consumers events.wal --remove backup",
    )
    add_path(parser)
    parser.add_argument(
        "--set", nargs=2, metavar=("NAME", "NEXT"), help="note durably what NAME needs next"
    )
    parser.add_argument("--remove", metavar="NAME", help="forget NAME, durably")
    parser.add_argument(
        "--dry-run", action="store_true", help="with --remove: only say what nothing keeps any more"
    )
    add_json(parser)
    parser.set_defaults(run=run_consumers)


def run_retain(args: argparse.Namespace, out: Output) -> int:
    """Drop what the rules allow to go; print what was dropped and what is left."""
    if args.max_bytes is None and args.max_age is None and not args.consumed:
        raise CliError("retain: give --max-bytes, --max-age or --consumed")
    try:
        return _retain(args, out)
    except LockedError as error:
        way = "a WAL's writer drops by itself if it is opened with retain_bytes or retain_age"
        known = {} if error.holder is None else {"holder": error.holder}
        raise CliError(f"{error}; {way}", kind=error.kind, path=error.path, **known) from error


def _retain(args: argparse.Namespace, out: Output) -> int:
    dry_run = args.dry_run
    with open_kept(args, "r" if dry_run else "a", _FORMATS) as log:
        rules = {"max_bytes": args.max_bytes, "max_age": args.max_age, "consumed": args.consumed}
        if isinstance(log, Pier):
            _tell_epochs(log, log.retain(**rules, dry_run=dry_run), args, out)
        else:
            head, end = log.head, log.end
            tell_dropped(log, head, end, log.retain(**rules, dry_run=dry_run), args, out)
    return EXIT_OK


def _tell_epochs(pier: Pier, dropped: DroppedEpochs, args: argparse.Namespace, out: Output) -> None:
    """Print which epochs are no longer there, or would not be."""
    last = pier.last
    if args.json:
        out.emit(
            {
                "ok": True,
                "dry_run": args.dry_run,
                "path": pier.path,
                "dropped_epochs": dropped.epochs,
                "dropped_records": dropped.deeds,
                "dropped_bytes": dropped.bytes,
                "records": len(pier) - (dropped.deeds if args.dry_run else 0),
                "epoch": dropped.epoch,
                "last": last,
            }
        )
        return
    gone = f"{count(len(dropped.epochs), 'epoch')} with {count(dropped.deeds, 'deed')}"
    what, are = (f"{gone} would go", "would be") if args.dry_run else (f"dropped {gone}", "are")
    some = "no events" if dropped.epoch == last else f"events {dropped.epoch + 1} to {last}"
    out.line(f"{pier.path}: {what}; {some} {are} left")
    out.flush()


def run_consumers(args: argparse.Namespace, out: Output) -> int:
    """List the named consumers, after setting or removing one."""
    if args.dry_run and (args.remove is None or args.set is not None):
        raise CliError("consumers: --dry-run goes with --remove alone")
    freed: dict[str, int] = {}
    if args.set is None and args.remove is None:
        with open_kept(args, "r", _FORMATS) as log:
            consumers = log.consumers()
    else:
        # Readers may set consumers, so this works beside a running writer.
        with open_kept(args, "r", _FORMATS) as log:
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
    if args.json:
        of_dry_run = {"dry_run": True, **freed} if args.dry_run else {}
        out.emit({"ok": True, "path": args.path, "consumers": consumers, **of_dry_run})
    else:
        if args.dry_run:
            [(unit, more)] = freed.items()
            kept = exact_size(more) if unit == "freed_bytes" else count(more, "deed")
            out.line(f"{args.remove} would be forgotten; it alone keeps {kept}")
        for line in table([(name, str(lsn)) for name, lsn in consumers.items()]):
            out.line(line)
        out.flush()
    return EXIT_OK


def _freed(log: Wal | Pier, name: str) -> dict[str, int]:
    """What that consumer alone keeps: bytes of a WAL, deeds of a pier."""
    consumers = log.consumers()
    first = min(consumers.values())
    del consumers[name]
    unit, end = ("freed_bytes", log.end) if isinstance(log, Wal) else ("freed_deeds", log.last + 1)
    return {unit: max(0, min(consumers.values(), default=end) - first)}


def _position(log: Wal | Pier, text: str) -> int:
    what = "an event" if isinstance(log, Pier) else "an LSN"
    try:
        where = position_or_end(text, what)
    except argparse.ArgumentTypeError as error:
        raise CliError(f"consumers: {error}") from error
    if isinstance(where, int):
        return where
    return log.last + 1 if isinstance(log, Pier) else log.end
