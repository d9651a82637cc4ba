"""The arguments of ``deedbook``, and its help."""

from __future__ import annotations

import argparse
import importlib
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from deedbook import __version__
from deedbook._cli import old_words
from deedbook._cli.failure import CliError

EXIT_CODES: Final = """\
exit codes:
  0    fine
  1    damage or loss; for verify also a torn end; bad lines; a failed check
  2    wrong usage, unusable input, or a file that cannot be opened, read or written
  130  interrupted by Ctrl-C
  141  the reader of the output closed the pipe
  143  ended by SIGTERM

DEEDBOOK_DEBUG=1 in the environment shows the origin of an error."""


_CHOICE: Final = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors are `CliError`: one line, exit code 2."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        if "description" in options:
            options["description"] = textwrap.fill(options["description"], 79)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise `CliError` with the message and where to find help."""
        command = self.prog.partition(" ")[2]
        where = f"{command}: " if command else ""
        if (wrong := _CHOICE.search(message)) is not None:
            message += old_words.nearest(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        raise CliError(f"{where}{message} (see '{self.prog} --help')")


class CommandParser(Parser):
    """The parser of one command. Options may stand between positional arguments.

    Before 3.13, argparse takes an optional positional for absent at the first option, and refuses
    ``append PATH --resume FILE``.
    """

    _intermixed = False

    def add_subparsers(self, **options: Any) -> Any:
        """As in the base class; then options do not stand between positional arguments."""
        self._intermixed = True
        return super().add_subparsers(**options)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As in the base class, options and positional arguments in any order."""
        if self._intermixed:
            return super().parse_known_args(args, namespace)
        self._intermixed = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False


# The function that adds each command, in the order of the help. For a fast start, only the module
# of the requested command is imported.
_ADDED_BY: Final = {
    "ls": "read.ls.add_arguments",
    "info": "keep.check.add_info",
    "cat": "read.cat_arguments.add_cat",
    "tail": "read.cat_arguments.add_tail",
    "query": "read.query.add_arguments",
    "stats": "read.report.add_arguments",
    "report": "read.report.add_arguments",
    "append": "write.append_arguments.add_arguments",
    "import": "write.import_events.add_arguments",
    "export": "read.export.add_arguments",
    "verify": "keep.check.add_verify",
    "repair": "keep.mend.add_repair",
    "salvage": "keep.mend.add_salvage",
    "backup": "keep.backup.add_arguments",
    "convert": "keep.convert.add_arguments",
    "migrate": "keep.migrate.add_arguments",
    "compact": "keep.compact.add_arguments",
    "vacuum": "keep.vacuum.add_arguments",
    "retain": "keep.retain.add_arguments",
    "consumers": "keep.retain.add_arguments",
    "send": "write.send.add_arguments",
    "dead-letters": "write.send.add_arguments",
    "metrics": "read.metrics.add_arguments",
    "spark": "spark.add_arguments",
    "demo": "demo.add_arguments",
    "completion": "completion.add_arguments",
}


_SAME: Final = {"archive": "backup", "restore": "backup"}
"""Other names of commands."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command. Raises `CliError`, and SystemExit after a help."""
    if argv[:1] == ["help"]:
        argv = [*(word for word in argv[1:] if word != "help"), "--help"]
    if argv and argv[0] in _SAME:
        argv = [_SAME[argv[0]], *argv[1:]]
    if argv and not argv[0].startswith("-") and argv[0] not in _ADDED_BY:
        raise CliError(old_words.of_command(argv, list(_ADDED_BY)))
    parser = build(argv)
    try:
        return parser.parse_args(argv)
    except CliError as error:
        if "unrecognized arguments" not in str(error):
            raise
        hint = old_words.of_option(argv, list(_options(parser)))
        what = str(error).partition(" (see")[0]
        raise CliError(f"{argv[0]}: {what}{hint} (see 'deedbook {argv[0]} --help')") from error


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a parser and of its commands."""
    yield from parser._option_string_actions
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _options(command)


def build(argv: Sequence[str]) -> Parser:
    """The parser of the command in ``argv``; the parser of all commands without a command."""
    return _parser([_ADDED_BY[argv[0]]]) if argv and argv[0] in _ADDED_BY else whole()


def whole() -> Parser:
    """The parser of all commands."""
    return _parser(_ADDED_BY.values())


def _parser(adding: Iterable[str]) -> Parser:
    parser = Parser(
        prog="deedbook",
        description="Append-only logs that never lose what they acknowledged.",
        epilog="examples:\n"
        "  deedbook append events.book events.jsonl   append a file, a deed for each line\n"
        "  deedbook info events.book                  the content, and the state at the end\n"
        "  deedbook cat events.book 10:20             events 10 to 19\n"
        "  deedbook verify events.book                check every checksum\n\n"
        "'deedbook help COMMAND' and 'deedbook COMMAND --help' print details and examples.\n\n"
        + EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"deedbook {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        title="commands",
        parser_class=CommandParser,
    )
    for adds in dict.fromkeys(adding):
        module, _, name = adds.rpartition(".")
        getattr(importlib.import_module(f"deedbook._cli.{module}"), name)(commands)
    return parser
