"""What only write-ahead logs have: dropping records before or after a position."""

from __future__ import annotations

import argparse
from typing import Literal

from deedbook import Wal
from deedbook._cli.arguments import Commands, add_json, add_lock_timeout, add_path
from deedbook._cli.cat import event_number
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.kept import add_dry_run, open_kept, position_or_end
from deedbook._cli.output import Output
from deedbook._formats.wal import WAL
from deedbook._text import count
from deedbook.reports import Dropped


def add_arguments(commands: Commands) -> None:
    """Add the commands that only write-ahead logs have."""
    _add_truncate(commands)


def _add_truncate(commands: Commands) -> None:
    parser = commands.add_parser(
        "truncate",
        help="drop the beginning or the end of a WAL",
        description="Drop records of a write-ahead log: before an LSN, after the record at one, "
        "or from an LSN on. A crash at any moment leaves the log as it was or as asked for.",
        epilog="examples:\n"
        "  deedbook truncate events.wal --before 4096\n"
        "  deedbook truncate events.wal --before end      all records\n"
        "  deedbook truncate events.wal --before 4096 --dry-run\n"
        "  deedbook truncate events.wal --after 8192      the record at 8192 is the last one\n"
        "  deedbook truncate events.wal --from 8192       the record at 8192 goes, too\n\n"
        "LSNs are those that 'deedbook cat' prints. What a named consumer needs is not dropped\n"
        "without --force.",
    )
    add_path(parser)
    parser.add_argument(
        "--before", metavar="LSN", type=lsn_or_end, help="drop what comes before; or 'end'"
    )
    parser.add_argument("--after", metavar="LSN", type=event_number, help="drop what follows")
    parser.add_argument(
        "--from", dest="from_", metavar="LSN", type=event_number, help="drop it and the rest"
    )
    parser.add_argument(
        "--force", action="store_true", help="with --before: also what consumers need"
    )
    add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    parser.set_defaults(run=run_truncate)


def run_truncate(args: argparse.Namespace, out: Output) -> int:
    """Drop a prefix, or cut the end; print what was dropped and what is left."""
    chosen = [name for name in ("before", "after", "from_") if getattr(args, name) is not None]
    if len(chosen) != 1:
        raise CliError("truncate: give one of --before, --after and --from")
    if args.force and args.before is None:
        raise CliError("truncate: --force goes with --before")
    dry_run = args.dry_run
    with _open(args, "r" if dry_run else "a") as wal:
        head, end = wal.head, wal.end
        if args.before is not None:
            before = _lsn(wal, args.before)
            dropped = wal.truncate_before(before, force=args.force, dry_run=dry_run)
        elif args.after is not None:
            dropped = wal.truncate_after(args.after, dry_run=dry_run)
        else:
            dropped = wal.truncate_from(args.from_, dry_run=dry_run)
        tell_dropped(wal, head, end, dropped, args, out)
    return EXIT_OK


def tell_dropped(
    wal: Wal, head: int, end: int, dropped: Dropped, args: argparse.Namespace, out: Output
) -> None:
    """Print what is no longer there, or would not be, of a log from ``head`` to ``end``."""
    if args.json:
        out.emit(
            {
                "ok": True,
                "dry_run": args.dry_run,
                "path": wal.path,
                "dropped_records": dropped.records,
                "dropped_bytes": dropped.bytes,
                "records": len(wal) - (dropped.records if args.dry_run else 0),
                "head": dropped.head,
                "end": dropped.end,
            }
        )
        return
    gone = count(dropped.records, "record")
    what, are = (f"{gone} would go", "would be") if args.dry_run else (f"dropped {gone}", "are")
    left = f"bytes {dropped.head:,} to {dropped.end:,} {are} left of {head:,} to {end:,}"
    out.line(f"{wal.path}: {what}; {left}")
    out.flush()


def lsn_or_end(text: str) -> int | str:
    """Parse an LSN, or ``end``. Raises `argparse.ArgumentTypeError`."""
    return position_or_end(text, "an LSN")


def _lsn(wal: Wal, where: int | str) -> int:
    return wal.end if isinstance(where, str) else where


def _open(args: argparse.Namespace, mode: Literal["r", "a"]) -> Wal:
    log = open_kept(args, mode, (WAL,))
    assert isinstance(log, Wal)
    return log
