"""``deedbook query``: the events of an event store that a filter wants."""

from __future__ import annotations

import argparse
import sys

from deedbook import EventStore
from deedbook._cli.arguments import Commands, add_skip_corrupt
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.terminal.output import Output
from deedbook._formats import require
from deedbook._show.text import count, escape_json

__all__ = ["add_arguments", "passed_over", "store_at"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "query",
        help="print the events of an event store that match a filter",
        description="Print the events that match a filter as JSON lines, the newest first. The "
        "command reads all events, without the index, and works while another process writes.",
        epilog="examples:\n"
        '  deedbook query store \'{"kinds":[1],"limit":10}\'\n'
        '  deedbook query store \'[{"kinds":[0]},{"#t":["deedbook"]}]\'\n'
        "  deedbook query store - < filter.json\n\n"
        "With --skip-corrupt, the exit code is 1 if the command skipped damage.",
    )
    parser.add_argument("store", metavar="STORE", help="directory of the event store")
    parser.add_argument(
        "filter",
        metavar="FILTER",
        help="a filter of NIP-01 in JSON, or a list of filters; - reads standard input",
    )
    add_skip_corrupt(parser)
    parser.set_defaults(run=run_query)


def run_query(args: argparse.Namespace, out: Output) -> int:
    """Print the events that a filter wants. Raises `CliError` and `deedbook.Error`."""
    text = args.filter
    if text == "-":
        if sys.stdin is None:
            raise CliError("standard input is closed")
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    with EventStore.open(store_at(args, args.store)) as store:
        found = store.query(text, on_corrupt="skip" if args.skip_corrupt else "raise")
        for event in found:
            out.data(escape_json(event.to_json()).encode() + b"\n")
    return passed_over(len(found.damages), out)


def store_at(args: argparse.Namespace, path: str) -> str:
    """The path of the event store that must be there. Raises `CliError` for another format."""
    found = require(path)
    if found.format.name != "nostr":
        raise CliError(
            f"{args.command}: {path} holds a {found.format.title}, this is for event stores",
            path=path,
        )
    return path


def passed_over(damages: int, out: Output) -> int:
    """Tell what was passed over; returns the exit code."""
    if not damages:
        return EXIT_OK
    out.talk(f"passed over {count(damages, 'damaged place')}; verify names them")
    return EXIT_DAMAGE
