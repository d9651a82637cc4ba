"""What only write-ahead logs have: dropping records, consumers, retention."""

from __future__ import annotations

import argparse
from typing import Literal

from deedbook import Dropped, LockedError, Wal
from deedbook._text import count, exact_size
from deedbook.cli.arguments import Commands, add_json, add_lock_timeout, add_path, age, size
from deedbook.cli.cat import event_number
from deedbook.cli.failure import EXIT_OK, CliError
from deedbook.cli.output import Output, table
from deedbook.formats import require


def add_arguments(commands: Commands) -> None:
    """Add the commands that only write-ahead logs have."""
    _add_truncate(commands)
    _add_retain(commands)
    _add_consumers(commands)


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
    _add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    parser.set_defaults(run=run_truncate)


def _add_retain(commands: Commands) -> None:
    parser = commands.add_parser(
        "retain",
        help="drop old segments of a WAL by size, age or consumers",
        description="Drop whole segments from the beginning of a write-ahead log. Each rule allows "
        "more to go; what a named consumer needs, or is not durable, stays.",
        epilog="examples:\n"
        "  deedbook retain events.wal --max-bytes 10g\n"
        "  deedbook retain events.wal --max-bytes 10g --dry-run    beside the writer, too\n"
        "  deedbook retain events.wal --max-age 7d --consumed\n"
        "  deedbook retain events.wal --max-bytes 10g --ask        the writer that has it open",
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
    parser.add_argument(
        "--ask",
        action="store_true",
        help="where a writer has it open, ask that one: it does so in its next segment",
    )
    _add_dry_run(parser)
    add_lock_timeout(parser)
    add_json(parser)
    parser.set_defaults(run=run_retain)


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would go, and change nothing"
    )


def _add_consumers(commands: Commands) -> None:
    parser = commands.add_parser(
        "consumers",
        help="list, set or remove the named consumers of a WAL",
        description="List the named consumers of a write-ahead log, each with the LSN that it "
        "needs next. 'truncate --before' and 'retain' keep what the slowest one needs. Works "
        "beside a running writer.",
        epilog="examples:\n"
        "  deedbook consumers events.wal\n"
        "  deedbook consumers events.wal --set backup 4096\n"
        "  deedbook consumers events.wal --set backup end\n"
        "  deedbook consumers events.wal --remove backup --dry-run\n"
        "  deedbook consumers events.wal --remove backup",
    )
    add_path(parser)
    parser.add_argument(
        "--set", nargs=2, metavar=("NAME", "LSN"), help="note durably what NAME needs next"
    )
    parser.add_argument("--remove", metavar="NAME", help="forget NAME, durably")
    parser.add_argument(
        "--dry-run", action="store_true", help="with --remove: only say what nothing keeps any more"
    )
    add_json(parser)
    parser.set_defaults(run=run_consumers)


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
        _tell_dropped(wal, head, end, dropped, args, out)
    return EXIT_OK


def run_retain(args: argparse.Namespace, out: Output) -> int:
    """Drop the segments that the rules allow to go; print what was dropped and what is left."""
    if args.max_bytes is None and args.max_age is None and not args.consumed:
        raise CliError("retain: give --max-bytes, --max-age or --consumed")
    try:
        return _retain(args, out)
    except LockedError as error:
        if not args.ask:
            raise
        return _ask_to_retain(args, error.holder, out)


def _ask_to_retain(args: argparse.Namespace, writer: int | None, out: Output) -> int:
    with _open(args, "r") as wal:
        wal.ask_to_retain(max_bytes=args.max_bytes, max_age=args.max_age, consumed=args.consumed)
        if args.json:
            out.emit({"ok": True, "path": wal.path, "asked": True, "holder": writer})
            return EXIT_OK
        whose = "the writer" if writer is None else f"the writer, process {writer},"
        out.line(f"{wal.path}: {whose} is asked; it drops when the log goes on in a new segment")
        out.flush()
    return EXIT_OK


def _retain(args: argparse.Namespace, out: Output) -> int:
    dry_run = args.dry_run
    with _open(args, "r" if dry_run else "a") as wal:
        head, end, records = wal.head, wal.end, len(wal)
        allowed = wal.retain(
            max_bytes=args.max_bytes,
            max_age=args.max_age,
            consumed=args.consumed,
            dry_run=dry_run,
        )
        left = head if allowed is None else allowed
        if dry_run:
            dropped = wal.truncate_before(left, dry_run=True)
        else:
            gone = records - len(wal)
            dropped = Dropped(records=gone, bytes=left - head, head=left, end=wal.end)
        _tell_dropped(wal, head, end, dropped, args, out)
    return EXIT_OK


def _tell_dropped(
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


def run_consumers(args: argparse.Namespace, out: Output) -> int:
    """List the named consumers, after setting or removing one."""
    if args.dry_run and (args.remove is None or args.set is not None):
        raise CliError("consumers: --dry-run goes with --remove alone")
    freed = 0
    if args.set is None and args.remove is None:
        with _open(args, "r") as wal:
            consumers = wal.consumers()
    else:
        # Readers may set consumers, so this works beside a running writer.
        with _open(args, "r") as wal:
            if args.remove is not None:
                if args.remove not in wal.consumers():
                    raise CliError(f"consumers: {wal.path} has no consumer {args.remove!r}")
                if not args.dry_run:
                    wal.remove_consumer(args.remove)
            if args.set is not None:
                wal.set_consumer(args.set[0], _lsn(wal, _lsn_or_end(args.set[1])))
            consumers = wal.consumers()
            if args.dry_run:
                kept = min(consumers.values())
                del consumers[args.remove]
                freed = max(0, min(consumers.values(), default=wal.end) - kept)
    if args.json:
        of_dry_run = {"dry_run": True, "freed_bytes": freed} if args.dry_run else {}
        out.emit({"ok": True, "path": args.path, "consumers": consumers, **of_dry_run})
    else:
        if args.dry_run:
            out.line(f"{args.remove} would be forgotten; it alone keeps {exact_size(freed)}")
        for line in table([(name, str(lsn)) for name, lsn in consumers.items()]):
            out.line(line)
        out.flush()
    return EXIT_OK


def lsn_or_end(text: str) -> int | str:
    """Parse an LSN, or ``end``. Raises `argparse.ArgumentTypeError`."""
    if text == "end":
        return text
    if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is neither an LSN nor 'end'")


def _lsn_or_end(text: str) -> int | str:
    try:
        return lsn_or_end(text)
    except argparse.ArgumentTypeError as error:
        raise CliError(f"consumers: {error}") from error


def _lsn(wal: Wal, where: int | str) -> int:
    return wal.end if isinstance(where, str) else where


def _open(args: argparse.Namespace, mode: str = "a") -> Wal:
    """The log, which must be there: nothing is created by dropping from it."""
    found = require(args.path)
    if found.format.log is not Wal or found.saved:
        saved = "the saved end of " if found.saved else ""
        raise CliError(
            f"{args.command}: {args.path} holds {saved}a {found.format.title}, this is for"
            " write-ahead logs"
        )
    writes: Literal["r", "a"] = "a" if mode == "a" else "r"
    timeout = args.lock_timeout if writes == "a" else 0.0
    return Wal.open(args.path, writes, lock_timeout=timeout)
