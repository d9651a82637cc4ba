"""``deedbook completion``: the completion scripts and the manual page, from the parser."""

from __future__ import annotations

import argparse
from typing import Any

from deedbook._cli.arguments import Commands
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.man import manual
from deedbook._cli.terminal.output import Output

__all__ = ["add_arguments"]

_PATHS = (
    *("path", "paths", "source", "target", "dest", "directory", "log", "logs", "store", "table"),
    *("file", "files", "input", "output", "out", "aside", "checkpoint"),
)
"""Names of arguments that are files or directories."""


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print the completion script of bash, zsh or tcsh, or the manual page",
        description="Print a script for the completion of commands, options and paths in a shell, "
        "or print the manual page. The scripts need shtab, from the extra 'cli'.",
        epilog="examples:\n"
        "  deedbook completion bash > ~/.local/share/bash-completion/completions/deedbook\n"
        "  deedbook completion zsh > ~/.zfunc/_deedbook\n"
        "  deedbook completion man > ~/.local/share/man/man1/deedbook.1\n"
        "  deedbook completion man | man -l -",
    )
    parser.add_argument(
        "kind",
        metavar="KIND",
        choices=("bash", "zsh", "tcsh", "man"),
        help="bash, zsh, tcsh or man",
    )

    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace, out: Output) -> int:
    from deedbook._cli.parser import EXIT_CODES, whole  # parser imports this module

    made = manual(whole(), EXIT_CODES) if args.kind == "man" else _script(whole(), args.kind)
    out.data(made.encode())
    out.flush()
    return EXIT_OK


def _script(parser: argparse.ArgumentParser, shell: str) -> str:
    try:
        import shtab
    except ImportError as error:
        raise CliError("completion: needs shtab: pip install 'deedbook[cli]'") from error
    _say_paths(parser, shtab.FILE)
    script: str = shtab.complete(parser, shell)
    return script


def _say_paths(parser: argparse.ArgumentParser, complete: Any) -> None:
    """Mark every path argument for the completion of paths."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _say_paths(command, complete)
        elif action.dest in _PATHS:
            action.complete = complete  # type: ignore[attr-defined]
