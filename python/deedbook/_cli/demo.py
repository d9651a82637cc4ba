"""``deedbook demo --small``: its arguments. The demo itself is `deedbook._cli.first_minute`."""

from __future__ import annotations

import argparse
from pathlib import Path

from deedbook._cli.arguments import Commands, positive
from deedbook._cli.failure import CliError
from deedbook._cli.terminal.output import Output

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="show a log at work: write, crash, recover, read",
        description="Show a log at work: write, crash, recover, read.",
        epilog="examples:\n"
        "  deedbook demo --small\n"
        "  deedbook demo --small --input events.jsonl -o demo --json",
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="run for some seconds: kill a writer again and again, open the log, and count; then "
        "print a picture and write a page to DIR. The demo with Spark is examples/demo of the "
        "repository",
    )
    parser.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="write the JSON lines of FILE into the log (default: generated events)",
    )
    parser.add_argument(
        "-o",
        "--output",
        dest="out",
        type=Path,
        default=Path("demo-out"),
        metavar="DIR",
        help="write all files to DIR, and replace the output of an earlier run (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--events",
        type=positive,
        metavar="N",
        help="generate N events (default: 20000), or read N events from the input (default: all)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=20260302,
        metavar="N",
        help="choose the generated events and the moments of the kills (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print only report.json")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace, out: Output) -> int:
    if not args.small:
        raise CliError("demo: say --small; the demo with Spark is examples/demo of the repository")
    from deedbook._cli import first_minute  # too slow to load for the help

    return first_minute.run(args)
