"""``deedbook migrate``: logs of other programs come to Deedbook's formats, and go back."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from deedbook import Book, Ledger
from deedbook._cli.arguments import Commands, add_dry_run, add_json, add_quiet, size
from deedbook._cli.failure import CliError
from deedbook._cli.keep.convert import LAYOUTS
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats.ledger import DEFAULT_BASE
from deedbook._show.text import count
from deedbook._show.text import size as size_text

if TYPE_CHECKING:
    from deedbook.reports import LedgerFileMigration, LmdbMigration

__all__ = ["add_arguments"]

_OPTIONS: Final = {
    "book": ("layout",),
    "lmdb": (),
    "ledger": ("old_base", "base", "keep", "record_bytes_max"),
}
_LEDGER_FILE: Final = re.compile("[0-9]+-.+")


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "migrate",
        help="convert logs of other programs (LMDB, DirectoryStore), or books back to LMDB",
        description="Copy the events of another program's log to a new log. An LMDB environment "
        "of Urbit becomes a book, and a pier of environments becomes a pier of books. A "
        "DirectoryStore (crate transientdb) becomes a ledger. With --format lmdb, a book or a "
        "pier of books becomes LMDB again. Stop the program that writes SRC first.",
        epilog="examples:\n"
        "  deedbook migrate zod new-zod --dry-run      print the content of zod\n"
        "  deedbook migrate zod new-zod                a pier: new-zod/.urb/log/0iN\n"
        "  deedbook migrate zod/.urb/log/0i0 events    one environment: a book\n"
        "  deedbook migrate zod new-zod --layout slots as Urbit's own code writes books\n"
        "  deedbook migrate events env --format lmdb   a book: env/data.mdb\n"
        "  deedbook migrate old-dir spool              moves a DirectoryStore; --keep copies\n\n"
        "LMDB: the command only reads the source, reads every event back, and compares each\n"
        "event with the source. If the migration stops, run the command again: the command\n"
        "compares the destination with the source from the first event on, and adds the rest.\n"
        "The command refuses a destination with other events.\n\n"
        "DirectoryStore: if the migration stops, run the command again; the events of one file\n"
        "may then be in the ledger twice. From a torn or damaged file, the command moves the\n"
        "events before the damage, and copies the rest to DST/.deedbook/quarantine. A foreign\n"
        "file stays in SRC. The exit code is 1 if there was a torn, damaged or foreign file.",
    )
    parser.add_argument("source", metavar="SRC", help="directory to read")
    parser.add_argument("target", metavar="DST", help="directory to write")
    parser.add_argument(
        "--format",
        choices=tuple(_OPTIONS),
        help="create logs of the format (default: a ledger from a DirectoryStore, else books)",
    )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="choose the layout of new books (default: packed); existing books must have the same "
        "layout",
    )
    parser.add_argument(
        "--old-base",
        metavar="BASE",
        help="base name of the DirectoryStore's files (default: events)",
    )
    parser.add_argument(
        "--base", metavar="BASE", help="base name of the ledger's files (default: events)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the files of the DirectoryStore in SRC"
    )
    parser.add_argument(
        "--record-bytes-max",
        metavar="BYTES",
        type=size,
        help="limit the size of an event in the ledger (default: 1m)",
    )
    add_dry_run(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Bring all events, and say how many; return the exit code. Raises `deedbook.Error`."""
    kind = args.format or ("ledger" if _is_directory_store(args.source) else "book")
    for other, options in _OPTIONS.items():
        for option in options:
            if other != kind and getattr(args, option):
                flag = option.replace("_", "-")
                raise CliError(f"migrate: --{flag} is for --format {other}, not for {kind}")
    return _run_ledger(args, out) if kind == "ledger" else _run_lmdb(args, kind, out)


def _is_directory_store(path: str) -> bool:
    """Whether files of a DirectoryStore lie there, and nothing of LMDB."""
    try:
        names = os.listdir(path)
    except OSError:
        return False  # the migration says what is wrong
    return not {"data.mdb", ".urb"}.intersection(names) and any(
        _LEDGER_FILE.fullmatch(name) for name in names
    )


def _run_lmdb(args: argparse.Namespace, kind: str, out: Output) -> int:
    bring: Callable[..., LmdbMigration] = Book.export_lmdb
    if kind == "book":
        bring = partial(Book.migrate_lmdb, layout=args.layout)
    with Progress(f"migrate {args.source}", enabled=not args.quiet, unit="event") as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        report = bring(args.source, args.target, dry_run=args.dry_run, progress=progress.update)
    return out.result(args.json, report.to_dict(), _lines(report))


def _lines(report: LmdbMigration) -> list[str]:
    written = report.events - report.found
    verb = "would bring" if report.dry_run else "brought"
    text = f"{report.dest}: {verb} {count(written, 'event')}"
    if report.found:
        text += f"; {count(report.found, 'event')} were there, and are the source's"
    seconds = f"{size_text(report.bytes)} in {report.seconds:.1f} s"
    if report.seconds > 0:
        seconds += f", {count(int(report.events / report.seconds), 'event')}/s"
    lines = [text, f"  compared with the source: {seconds}"]
    if report.dry_run:
        lines[1] = f"  read: {seconds}"
    for log in report.epochs:
        held = "no events" if log.first is None else f"events {log.first} to {log.last}"
        lines.append(f"  epoch {log.epoch}: {held}, {size_text(log.bytes)}")
    lines.append(f"  {_meta(report.meta)}")
    return lines


def _meta(meta: Any) -> str:
    fields = [f"{name} {value}" for name, value in meta.to_dict().items() if value is not None]
    return "metadata: " + (", ".join(fields) or "none")


def _run_ledger(args: argparse.Namespace, out: Output) -> int:
    """Migrate, and say what became of each file that is not intact; return the exit code."""
    with Progress(f"migrate {args.source}", enabled=not args.quiet) as progress:
        files = Ledger.migrate_directory_store(
            args.source,
            args.target,
            args.base or DEFAULT_BASE,
            old_base=args.old_base or DEFAULT_BASE,
            keep=args.keep,
            dry_run=args.dry_run,
            record_bytes_max=args.record_bytes_max or 1 << 20,
            progress=progress.update,
        )
    bad = [file for file in files if file.rest_from is not None]
    events = sum(file.events for file in files)
    verb = "would move" if args.dry_run else "copied" if args.keep else "moved"
    lines = [f"{file.path}: {file.rest_reason}; {_fate(file, args)}" for file in bad]
    lines.append(f"{args.target}: {verb} {count(events, 'event')} of {count(len(files), 'file')}")
    facts = {"path": args.target, "source": args.source, "dry_run": args.dry_run, "events": events}
    return out.result(
        args.json, {**facts, "files": [file.to_dict() for file in files]}, lines, not bad
    )


def _fate(file: LedgerFileMigration, args: argparse.Namespace) -> str:
    if file.rest_from == 0:
        return "not a file of a DirectoryStore, it stays"
    rest = f"{count(file.bytes - (file.rest_from or 0), 'byte')} from byte {file.rest_from} on"
    if args.dry_run:
        return f"{rest} would be left over"
    if not file.removed:
        return f"{rest} are left over"
    return f"{rest} are in {file.set_aside}" if file.set_aside else f"{rest} were zeros"
