"""``deedbook spool migrate``: the files of a DirectoryStore come to a ledger."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from deedbook import Ledger
from deedbook._cli.append import positive
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._text import count

if TYPE_CHECKING:
    from deedbook.reports import LedgerFileMigration


def add_arguments(commands: Any) -> None:
    """Add the command to those of ``spool``."""
    parser = commands.add_parser(
        "migrate",
        help="move the events of a DirectoryStore (crate transientdb) to a ledger",
        description="Move the events of a DirectoryStore (crate transientdb) to a ledger. The "
        "program that wrote them must have ended.",
        epilog="examples:\n"
        "  deedbook spool migrate old-dir spool --dry-run   says what is there\n"
        "  deedbook spool migrate old-dir spool             each file is removed when it is over\n"
        "  deedbook spool migrate old-dir spool --keep      copies; a second run copies again\n\n"
        "Ended at any moment, it can be run again; one file may come twice then.\n"
        "Of a torn or damaged file the events before the damage are moved, and the rest is copied\n"
        "to SPOOL/.deedbook/quarantine. Exits with 1 if there was such a file, or one that is no\n"
        "DirectoryStore's, which stays.",
    )
    parser.add_argument("source", metavar="OLD_DIR", help="directory of the DirectoryStore")
    parser.add_argument("path", metavar="SPOOL", help="directory of the ledger")
    parser.add_argument("--old-base", default="events", help="what the old files' names end with")
    parser.add_argument("--base", default="events", help="what the ledger's files' names end with")
    parser.add_argument("--keep", action="store_true", help="leave the old files where they are")
    parser.add_argument("--dry-run", action="store_true", help="change nothing")
    parser.add_argument(
        "--record-bytes-max",
        metavar="BYTES",
        type=positive,
        default=1 << 20,
        help="limit of an event (default: 1048576)",
    )
    parser.add_argument("--json", action="store_true", help="a JSON object as the result")
    parser.add_argument("-q", "--quiet", action="store_true", help="only results and errors")
    parser.set_defaults(run=run_migrate)


def run_migrate(args: argparse.Namespace, out: Output) -> int:
    """Migrate, and say what became of each file that is not intact; return the exit code."""
    with Progress(f"migrate {args.source}", enabled=not args.quiet) as progress:
        files = Ledger.migrate_directory_store(
            args.source,
            args.path,
            args.base,
            old_base=args.old_base,
            keep=args.keep,
            dry_run=args.dry_run,
            record_bytes_max=args.record_bytes_max,
            progress=progress.update,
        )
    bad = [file for file in files if file.rest_from is not None]
    events = sum(file.events for file in files)
    if args.json:
        facts = {"ok": not bad, "path": args.path, "source": args.source, "dry_run": args.dry_run}
        out.emit(
            {
                **facts,
                "events": events,
                "files": [file.to_dict() for file in files],
            }
        )
        return EXIT_DAMAGE if bad else EXIT_OK
    for file in bad:
        out.line(f"{file.path}: {file.rest_reason}; {_fate(file, args)}")
    verb = "would move" if args.dry_run else "copied" if args.keep else "moved"
    out.line(f"{args.path}: {verb} {count(events, 'event')} of {count(len(files), 'file')}")
    out.flush()
    return EXIT_DAMAGE if bad else EXIT_OK


def _fate(file: LedgerFileMigration, args: argparse.Namespace) -> str:
    if file.rest_from == 0:
        return "not a file of a DirectoryStore, it stays"
    rest = f"{count(file.bytes - (file.rest_from or 0), 'byte')} from byte {file.rest_from} on"
    if args.dry_run:
        return f"{rest} would be left over"
    if not file.removed:
        return f"{rest} are left over"
    return f"{rest} are in {file.set_aside}" if file.set_aside else f"{rest} were zeros"
