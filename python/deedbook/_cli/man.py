"""The manual page and the page of the site, made from the help texts of the parser."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator

from deedbook import __version__

__all__ = ["manual", "markdown"]


def manual(parser: argparse.ArgumentParser, exit_codes: str) -> str:
    """``deedbook(1)`` for man. ``exit_codes`` stands at the end of the parser's help, too."""
    lines = [
        f'.TH DEEDBOOK 1 "" "deedbook {_escaped(__version__)}" "Deedbook"',
        ".SH NAME",
        r"deedbook \- " + _escaped((parser.description or "").rstrip(".")),
        ".SH SYNOPSIS",
        r".B deedbook",
        r".I COMMAND",
        r"\&...",
        ".SH DESCRIPTION",
        *_text(parser.description),
        *_literal((parser.epilog or "").replace(exit_codes, "")),
        ".SH COMMANDS",
    ]
    for command in _commands(parser):
        lines += _command(command)
    lines += [".SH EXIT STATUS", *_literal(exit_codes.partition("\n")[2])]
    return "\n".join(lines) + "\n"


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands without subcommands, and the subcommands, in the order of the help."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                below = list(_commands(command))
                yield from below or [command]


def _command(command: argparse.ArgumentParser) -> list[str]:
    lines = [f".SS {_escaped(command.prog)}", *_literal(command.format_usage())]
    lines += [".PP", *_text(command.description)]
    for action in command._actions:
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            lines += [".TP", _names(action), *_text(_help_of(command, action))]
    return lines + _literal(command.epilog)


def _names(action: argparse.Action) -> str:
    value = _value_of(action)
    if not action.option_strings:
        return rf"\fI{_escaped(value)}\fR"
    names = ", ".join(rf"\fB{_escaped(name)}\fR" for name in action.option_strings)
    return names if action.nargs == 0 else rf"{names} \fI{_escaped(value)}\fR"


def _value_of(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
    return metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()


def _help_of(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help of an argument, with the default filled in."""
    return (action.help or "") % {**vars(action), "prog": command.prog}


def _text(text: str | None) -> list[str]:
    return [_line(" ".join(text.split()))] if text else []


def _literal(text: str | None) -> list[str]:
    """Preformatted text after an empty line."""
    if not text or not text.strip():
        return []
    return [".PP", ".nf", *map(_line, text.strip("\n").splitlines()), ".fi"]


def _line(text: str) -> str:
    """A line of text, escaped if the line would be a request of roff."""
    shown = _escaped(text)
    return r"\&" + shown if shown.startswith((".", "'")) else shown


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-")


def markdown(parser: argparse.ArgumentParser, exit_codes: str) -> str:
    """The page of all commands, in Markdown."""
    lines = [
        "# All commands",
        "",
        "`scripts/commands_page.py` writes this page from the commands' own help.",
        "[Shell](shell.md) has the first steps.",
    ]
    for command in _commands(parser):
        lines += ["", f"## {command.prog}", "", *_wrapped(command.description), ""]
        for action in command._actions:
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
                text = _code_spans(" ".join(_help_of(command, action).split()))
                lines.append(f"- `{_plain_names(action)}`: {text}")
        if command.epilog:
            lines += ["", "```text", *command.epilog.rstrip().splitlines(), "```"]
    lines += ["", "## Exit codes", "", "```text", *exit_codes.splitlines()[1:], "```"]
    return "\n".join(lines) + "\n"


def _wrapped(text: str | None) -> list[str]:
    return textwrap.wrap(_code_spans(" ".join((text or "").split())), 120)


def _code_spans(text: str) -> str:
    """Text with quoted commands as code, and with characters of Markdown escaped."""
    text = re.sub(r"'(deedbook [^']+)'", r"`\1`", text)
    return text.replace("*", r"\*").replace("<", "&lt;")


def _plain_names(action: argparse.Action) -> str:
    """The argument as typed by a user."""
    value = _value_of(action)
    if not action.option_strings:
        return value
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"
