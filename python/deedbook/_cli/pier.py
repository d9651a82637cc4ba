"""``deedbook pier``: what only a pier has."""

from __future__ import annotations

import argparse

from deedbook import Pier
from deedbook._cli.arguments import Commands, add_json, add_lock_timeout, add_quiet
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.output import Output

__all__ = ["add_arguments", "run_roll"]


def add_arguments(commands: Commands) -> None:
    """Add the command and its own commands."""
    parser = commands.add_parser(
        "pier",
        help="begin epochs of an Urbit pier",
        description="What only a pier has. info, cat, append and verify take a pier as any log.",
        epilog="examples:\n"
        "  deedbook info zod            the epochs of a pier, and what is in them\n"
        "  deedbook pier roll zod       begin a new epoch after the last event\n",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, title="verbs")
    roll = verbs.add_parser(
        "roll",
        help="begin a new epoch",
        description="Begin a new epoch after the last event, durably: what was appended is synced, "
        "and the new epoch gets the metadata of the one before. A crash leaves the pier with the "
        "new epoch or without it.",
    )
    roll.add_argument("path", metavar="PATH", help="the pier, or its .urb/log")
    add_lock_timeout(roll)
    add_json(roll)
    add_quiet(roll)
    roll.set_defaults(run=run_roll)


def run_roll(args: argparse.Namespace, out: Output) -> int:
    """Begin an epoch of the pier at ``args.path``. Raises `deedbook.Error`."""
    # For reading first: opening for appending would make a pier where none is.
    with Pier.open(args.path):
        pass
    with Pier.open(args.path, "a", lock_timeout=args.lock_timeout) as pier:
        number = pier.roll()
        epoch = pier.epochs[-1]
        count = len(pier.epochs)
    if args.json:
        out.emit({"ok": True, "path": pier.path, "epoch": number, "epoch_path": epoch.path})
    else:
        out.talk(f"began epoch 0i{number}, the {count}. of {pier.path}")
    return EXIT_OK
