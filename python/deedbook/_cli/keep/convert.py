"""``deedbook convert``: a book in another layout."""

from __future__ import annotations

import argparse

from deedbook import Book
from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.failure import CliError
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import require
from deedbook._show.text import count, damage_text, exact_size

__all__ = ["LAYOUTS", "add_arguments", "run_convert"]

LAYOUTS = ("packed", "slots")
"""In which a book can be written."""


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "convert",
        help="copy a book to another layout, and compare",
        description="Copy a book, with epoch and metadata, to a new book in another layout. Then "
        "read both books and compare every event. The command does not change the source.",
        epilog="examples:\n"
        "  deedbook convert 0i0 converted/0i0 --layout slots     the layout of the reference\n"
        "  deedbook convert old.book new.book --layout packed    from any layout, also padded\n\n"
        "The command recognises the books of Urbit's reference implementation: the head of the\n"
        "repository writes the layout slots, the state of January 2026 the layout padded. The\n"
        "command refuses a corrupt source and creates no DST: use 'deedbook salvage' to copy\n"
        "the intact records. From a torn source, the command copies all valid events. The exit\n"
        "code is 1 if a torn source has no valid event.",
    )
    parser.add_argument("source", metavar="SRC", help="the book")
    parser.add_argument("target", metavar="DST", help="the new book")
    parser.add_argument("--layout", choices=LAYOUTS, required=True, help="layout of the new book")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_convert)


def run_convert(args: argparse.Namespace, out: Output) -> int:
    """Convert ``args.source``. Raises `deedbook.Error`, and `CliError` for another format.

    Nothing copied of a torn source is a failure, with `EXIT_DAMAGE`, as for a salvage.
    """
    found = require(args.source)
    if found.format.name != "book" or found.saved:
        what = "what was cut off a log" if found.saved else f"a {found.format.title}"
        raise CliError(
            f"convert: {args.source} holds {what}; only books have layouts", path=args.source
        )
    with Progress(f"convert {args.source}", enabled=not args.quiet) as progress:
        report = Book.convert(args.source, args.target, args.layout, progress=progress.update)
    ok = report.deeds > 0 or report.left_out is None
    events = "no events"
    if report.bounds is not None:
        events = f"events {report.bounds[0]}..{report.bounds[1]}"
    lines = [
        f"{args.target}: {count(report.deeds, 'deed')} copied and compared, {events}, "
        f"{report.source_layout} to {report.target_layout}, "
        f"{exact_size(report.source_bytes)} to {exact_size(report.target_bytes)}"
    ]
    if report.left_out is not None:
        lines.append(f"  left out {damage_text(report.left_out, 'deed')}")
    facts = {"source": args.source, "target": args.target, **report.to_dict()}
    return out.result(args.json, facts, lines, ok)
