"""``--payload``: payloads as JSON, text or base64."""

from __future__ import annotations

import argparse
import base64
from typing import Final

from deedbook._cli.failure import CliError
from deedbook._formats.info import Entry
from deedbook._show.json import why_not_json
from deedbook._show.text import escape_json

__all__ = ["add_payload", "in_base64", "json_of", "text_of"]

_LINE_ENDS: Final = str.maketrans("\r\n", "  ")


def add_payload(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option with the help ``text``."""
    parser.add_argument("--payload", choices=("json", "text", "base64"), help=text)


def text_of(command: str, entry: Entry) -> str:
    """A payload as text. Raises `CliError` if the payload is not UTF-8."""
    try:
        return entry.payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CliError(
            f"{command}: {_place(entry)}: byte {error.start + 1} of the payload is not UTF-8;"
            " --payload base64 takes any bytes"
        ) from error


def json_of(command: str, entry: Entry) -> str:
    """A JSON payload on a single line. Raises `CliError` for other payloads."""
    if (wrong := why_not_json(entry.payload)) is not None:
        raise CliError(
            f"{command}: {_place(entry)}: the payload is not JSON: {wrong}; --payload text or "
            "base64 takes it as it is"
        )
    # In JSON, line ends only stand between values, and control characters only in strings.
    return escape_json(entry.payload.decode("utf-8").translate(_LINE_ENDS))


def in_base64(entry: Entry) -> str:
    """A payload in base64."""
    return base64.b64encode(entry.payload).decode("ascii")


def _place(entry: Entry) -> str:
    return " ".join(f"{name} {value}" for name, value in entry.facts.items() if name != "mug")
