"""``deedbook spool``: its commands."""

from __future__ import annotations

from typing import Any

from deedbook._cli import spool_ledger, spool_migrate


def add_arguments(commands: Any) -> None:
    """Add the command ``spool`` with its own commands."""
    parser = commands.add_parser(
        "spool",
        help="keep events on disk until they were sent over HTTP",
        description="Keep events on disk until they were sent over HTTP.",
        epilog="examples:\n"
        "  deedbook spool append spool events.jsonl       a line, an event\n"
        "  deedbook spool send spool http://HOST/path     sends, and removes what arrived\n\n"
        "'deedbook spool COMMAND --help' says more.",
    )
    spool = parser.add_subparsers(
        dest="spool_command", metavar="COMMAND", required=True, title="commands"
    )
    spool_ledger.add_arguments(spool)
    spool_migrate.add_arguments(spool)
