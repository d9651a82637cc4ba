"""``deedbook migrate`` and ``deedbook export-lmdb``: Urbit's logs from LMDB to books, and back."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from deedbook import Book
from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.convert import LAYOUTS
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._text import count, size

if TYPE_CHECKING:
    from deedbook.reports import LmdbMigration


def add_arguments(commands: Commands) -> None:
    """Add both commands."""
    migrate = _add(
        commands,
        "migrate",
        "bring Urbit's LMDB event log, or a pier, to books",
        "Bring the events and the metadata of an LMDB environment to a book, or those of all "
        "epochs of a pier to a new pier of books. The ship must have ended. The source is only "
        "read.",
        "examples:\n"
        "  deedbook migrate zod new-zod --dry-run      says what is there\n"
        "  deedbook migrate zod new-zod                a pier: new-zod/.urb/log/0iN\n"
        "  deedbook migrate zod/.urb/log/0i0 events    one environment: a book\n"
        "  deedbook migrate zod new-zod --layout slots as Urbit's own code writes books\n\n"
        "Every event is read back and compared with the source. Ended at any moment, it can be\n"
        "run again: what the destination holds is compared from its first event on, and the rest\n"
        "is added. A destination with other events is refused. 'deedbook export-lmdb' goes back.",
        "PIER_OR_ENV",
    )
    migrate.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="layout of new books (default packed); those that are there must have it",
    )
    _add(
        commands,
        "export-lmdb",
        "bring a book, or a pier of books, back to LMDB",
        "Bring a book to an LMDB environment as Urbit writes it, or a pier of books to a new pier "
        "of environments. The source is only read.",
        "examples:\n"
        "  deedbook export-lmdb events env        a book: env/data.mdb\n"
        "  deedbook export-lmdb new-zod old-zod   a pier: each epoch is an environment\n\n"
        "Every event is read back and compared; it can be ended and run again, as 'migrate'.",
        "PIER_OR_BOOK",
    )


def _add(
    commands: Commands, name: str, help_text: str, description: str, epilog: str, source: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help_text, description=description, epilog=epilog
    )
    parser.add_argument("source", metavar=source, help="what is read")
    parser.add_argument("dest", metavar="DEST", help="directory that is written")
    parser.add_argument(
        "--dry-run", action="store_true", help="read and compare, and change nothing"
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace, out: Output) -> int:
    """Bring all events, and say how many; return the exit code. Raises `deedbook.Error`."""
    bring: Callable[..., LmdbMigration] = Book.export_lmdb
    if args.command == "migrate":
        bring = partial(Book.migrate_lmdb, layout=args.layout)
    label = f"{args.command} {args.source}"
    with Progress(label, enabled=not args.quiet, unit="event") as progress:
        # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
        report = bring(args.source, args.dest, dry_run=args.dry_run, progress=progress.update)
    if args.json:
        out.emit({"ok": True, **report.to_dict()})
        return EXIT_OK
    for line in _lines(report):
        out.line(line)
    out.flush()
    return EXIT_OK


def _lines(report: LmdbMigration) -> list[str]:
    written = report.events - report.found
    verb = "would bring" if report.dry_run else "brought"
    text = f"{report.dest}: {verb} {count(written, 'event')}"
    if report.found:
        text += f"; {count(report.found, 'event')} were there, and are the source's"
    seconds = f"{size(report.bytes)} in {report.seconds:.1f} s"
    if report.seconds > 0:
        seconds += f", {count(int(report.events / report.seconds), 'event')}/s"
    lines = [text, f"  compared with the source: {seconds}"]
    if report.dry_run:
        lines[1] = f"  read: {seconds}"
    for log in report.epochs:
        held = "no events" if log.first is None else f"events {log.first} to {log.last}"
        lines.append(f"  epoch {log.epoch}: {held}, {size(log.bytes)}")
    lines.append(f"  {_meta(report.meta)}")
    return lines


def _meta(meta: Any) -> str:
    fields = [f"{name} {value}" for name, value in meta.to_dict().items() if value is not None]
    return "metadata: " + (", ".join(fields) or "none")
