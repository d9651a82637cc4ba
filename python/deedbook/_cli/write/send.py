"""``deedbook send`` and ``dead-letters``: a ledger's events on their way to a server."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import TYPE_CHECKING

from deedbook import CorruptError, Ledger
from deedbook._cli.arguments import Commands, add_json, add_quiet, positive, seconds
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, printable
from deedbook._cli.terminal.output import Output
from deedbook._formats import find, missing
from deedbook._formats.ledger import DEFAULT_BASE, LEDGER
from deedbook._formats.ledger_summary import dead_letters_of
from deedbook._show.text import count

if TYPE_CHECKING:
    from deedbook.http import DeadLetters

__all__ = ["add_arguments"]

RECORD_BYTES_MAX = 1 << 20
"""The usual limit of an event."""
_HEADER_VARIABLE = "DEEDBOOK_HEADER_"
_HEADERS_BYTES_MAX = 1 << 16


def add_arguments(commands: Commands) -> None:
    """Add both commands."""
    _add_send(commands)
    _add_dead_letters(commands)


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="LEDGER", help="directory of the ledger")
    parser.add_argument(
        "--base",
        metavar="BASE",
        default=DEFAULT_BASE,
        help="base name of the ledger's files (default: events)",
    )


def _add_send(commands: Commands) -> None:
    parser = commands.add_parser(
        "send",
        help="send the events of a ledger to a URL, and remove the sent events",
        description="Send the events of a ledger to a URL, and remove the events that the server "
        "accepted.",
        epilog="examples:\n"
        "  deedbook send spool https://example.org/batch\n"
        "  deedbook send spool http://127.0.0.1:8080 --lines --header @secret-headers\n\n"
        "Other users can see the arguments of a command. Give a secret header in a file, or in\n"
        "the environment, as DEEDBOOK_HEADER_AUTHORIZATION='Bearer ...' (an underscore in the\n"
        "name stands for a hyphen).\n\n"
        "A body is a JSON array, or JSON lines with --lines. The command repeats failed\n"
        "requests until --timeout. The exit code is 1 if the server refused events. Refused\n"
        "events become dead letters, in LEDGER/.deedbook/dead-letters, or in dead-letters-BASE\n"
        "for a base name other than events. Unsent events stay in the ledger.",
    )
    _add_ledger(parser)
    parser.add_argument("url", metavar="URL", help="address for the requests")
    parser.add_argument("--lines", action="store_true", help="send bodies of JSON lines")
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'|@FILE",
        action="append",
        type=_header,
        default=[],
        help="add a header to each request, or the headers in FILE (one on each line); may be "
        "repeated",
    )
    parser.add_argument(
        "--compression", choices=("auto", "gzip", "zstd"), help="compress the bodies"
    )
    parser.add_argument(
        "--concurrency",
        metavar="N",
        type=positive,
        default=1,
        help="send N requests at a time (default: 1)",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds,
        help="give up after TIME, for example 30s (default: never)",
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_send)


def _add_dead_letters(commands: Commands) -> None:
    parser = commands.add_parser(
        "dead-letters",
        help="print the events that a server refused, or put the events back",
        description="Print the events of a ledger that a server refused, as JSON lines with the "
        "reason; or put the events back into the ledger.",
        epilog="examples:\n"
        "  deedbook dead-letters spool | jq .reason\n"
        "  deedbook dead-letters spool --replay && deedbook send spool URL",
    )
    _add_ledger(parser)
    parser.add_argument(
        "--replay",
        action="store_true",
        help="put the events back into the ledger, to be sent again",
    )
    add_json(parser, "with --replay: print the result as one JSON object")
    add_quiet(parser)
    parser.set_defaults(run=run_dead_letters)


def run_send(args: argparse.Namespace, out: Output) -> int:
    """Send what waits; return 1 if the server refused events."""
    from deedbook.http import Sender, presets

    _existing(args)
    preset = presets.ndjson(args.url) if args.lines else presets.json_array(args.url)
    options = {"headers": _headers(args), "compression": args.compression}
    others = _other_bases(args)
    with Ledger.open(args.path, "a", base=args.base, durability="manual") as ledger:
        try:
            sender = Sender(ledger, preset=preset, concurrency=args.concurrency, **options)
        except ImportError as error:  # which says what to install
            raise CliError(f"send: {error}") from error
        try:
            drained = sender.drain(args.timeout)
        finally:
            sender.close(0)
        stats = sender.stats()
    if args.json:
        facts = {"ok": bool(drained), "path": args.path, "other_bases": others}
        out.emit({**facts, **stats.to_dict()})
    else:
        text = f"sent {count(stats.events_sent, 'event')} in {count(stats.requests, 'request')}"
        if stats.events_dead:
            text += f"; {count(stats.events_dead, 'event')} refused, now dead letters"
        out.talk(text)
        if others:
            out.talk(_named(others))
    if not drained.empty:
        last = f": {stats.last_error}" if stats.last_error else ""
        after = "" if args.timeout is None else f" after {args.timeout:g} s"
        raise CliError(f"send: not all is sent{after}{last}", path=args.path)
    return EXIT_OK if drained else EXIT_DAMAGE


def run_dead_letters(args: argparse.Namespace, out: Output) -> int:
    """Print the dead letters, a JSON object a line, or put them back."""
    path = _existing(args)
    letters = dead_letters_of(path, args.base)
    if not args.replay:
        for letter in letters:
            out.emit(letter.to_dict())
        return EXIT_OK
    # Each was in a ledger, which may have been opened with more than the usual limit.
    limit = max(_longest(letters), RECORD_BYTES_MAX)
    opened = Ledger.open(path, "a", base=args.base, durability="manual", record_bytes_max=limit)
    with opened as ledger:
        replayed = letters.replay(ledger)
    if args.json:
        out.emit({"ok": True, "path": args.path, "replayed": replayed})
    else:
        out.talk(f"put {count(replayed, 'event')} back")
    return EXIT_OK


def _existing(args: argparse.Namespace) -> str:
    """The directory of the ledger, which may have no files left."""
    path: str = args.path
    if not os.path.isdir(path):
        raise missing("no ledger there", path)
    found = find(path, base=args.base)
    if found is not None and found.format is not LEDGER:
        raise CliError(
            f"{args.command}: {path} holds a {found.format.title}, this is for ledgers", path=path
        )
    return path


def _longest(letters: DeadLetters) -> int:
    """Bytes of the longest event among dead letters; the replay tells of damaged files."""
    longest = 0
    for file in letters.files():
        with contextlib.suppress(CorruptError, FileNotFoundError):
            lengths = (len(letter.payload) for letter in letters.read(file))
            longest = max(longest, *lengths, 0)
    return longest


def _other_bases(args: argparse.Namespace) -> list[str]:
    """The bases of other ledgers in the directory, which this command leaves alone."""
    return [base for base in Ledger.bases(args.path) if base != args.base]


def _named(bases: list[str]) -> str:
    return f"other ledgers lie there, by the bases {', '.join(map(printable, bases))}: see --base"


def _headers(args: argparse.Namespace) -> dict[str, str]:
    """Headers from the environment, and from the arguments, which come first."""
    found = {
        name[len(_HEADER_VARIABLE) :].replace("_", "-").title(): value
        for name, value in os.environ.items()
        if name.startswith(_HEADER_VARIABLE) and name != _HEADER_VARIABLE
    }
    for lines in args.header:
        for name, value in lines:
            same = [held for held in found if held.lower() == name.lower()]
            for held in same:
                del found[held]
            found[name] = value
    return found


def _header(text: str) -> list[tuple[str, str]]:
    """The headers of an argument: a single header, or all headers of a file."""
    lines = [text]
    if text.startswith("@"):
        try:
            with open(text[1:], encoding="latin-1") as file:
                lines = [line for line in file.read(_HEADERS_BYTES_MAX).splitlines() if line]
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text[1:]}: {error.strerror}") from error
    return [_one_header(line) for line in lines]


def _one_header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError("a header is NAME: VALUE")  # not shown: it may be a key
    return name.strip(), value.strip()
