"""``deedbook demo``: its place among the commands. The demo itself is `deedbook.demo`."""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType

from deedbook._cli.arguments import Commands
from deedbook._cli.failure import CliError
from deedbook._cli.output import Output

__all__ = ["add_arguments", "add_name"]


def add_arguments(commands: Commands) -> None:
    """Add the command with its arguments, for which the demo is loaded."""
    parser = add_name(commands)
    _demo().add_arguments(parser)
    parser.set_defaults(run=_run)


def add_name(commands: Commands) -> argparse.ArgumentParser:
    """Add the command without arguments, for the list of commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="see it work: write, crash, recover, read",
        description="See it work: write, crash, recover, read.",
        epilog="examples:\n"
        "  deedbook demo --small    without Spark, in seconds\n"
        "  deedbook demo\n"
        "  deedbook demo --input events.jsonl --out demo --json",
    )
    return parser


def _demo() -> ModuleType:
    try:
        return importlib.import_module("deedbook.demo")
    except ImportError as error:
        raise CliError(f"demo: cannot be loaded: {error}") from error


def _run(args: argparse.Namespace, out: Output) -> int:
    code = _demo().main(args)
    return int(code or 0)
