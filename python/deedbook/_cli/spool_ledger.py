"""``deedbook spool append|status|verify|send|dead-letters|replay``: a ledger from the shell."""

from __future__ import annotations

import argparse
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deedbook import CorruptError, Ledger
from deedbook._cli import check
from deedbook._cli.append import positive
from deedbook._cli.cat import seconds
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, printable
from deedbook._cli.lines import LineSource
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._cli.signals import Stop
from deedbook._formats import missing
from deedbook._formats.ledger import DEFAULT_BASE
from deedbook._formats.ledger_summary import dead_letters_of, quarantined
from deedbook._json import JsonLines
from deedbook._text import count, size

if TYPE_CHECKING:
    from deedbook.http import DeadLetters

RECORD_BYTES_MAX = 1 << 20
"""The usual limit of an event."""
BATCH_LINES = 1000
"""Lines that are appended with one write."""
_HEADER_VARIABLE = "DEEDBOOK_HEADER_"
_HEADERS_BYTES_MAX = 1 << 16


def add_arguments(commands: Any) -> None:
    """Add the commands to those of ``spool``."""
    _add_append(commands)
    _add_status(commands)
    _add_verify(commands)
    _add_send(commands)
    _add_dead_letters(commands)


def _add(commands: Any, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=examples
    )
    parser.add_argument("path", metavar="SPOOL", help="directory of the ledger")
    parser.add_argument("--base", default=DEFAULT_BASE, help="what its files' names end with")
    parser.add_argument("--json", action="store_true", help="a JSON object as the result")
    parser.add_argument("-q", "--quiet", action="store_true", help="only results and errors")
    return parser


def _add_append(commands: Any) -> None:
    parser = _add(
        commands,
        "append",
        "append each line of a file, or of standard input, as an event",
        "examples:\n"
        "  deedbook spool append spool events.jsonl\n"
        "  producer | deedbook spool append spool\n\n"
        "When it exits with 0, all lines are on stable storage. Empty lines are left out.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="input; - (default): standard input"
    )
    parser.add_argument(
        "--no-validate",
        dest="validate",
        action="store_false",
        help="take lines that are not JSON, too",
    )
    parser.add_argument(
        "--batch-bytes",
        metavar="BYTES",
        type=positive,
        default=475_000,
        help="a file with more is finished (default: 475000)",
    )
    parser.add_argument(
        "--max-bytes", metavar="BYTES", type=positive, help="limit of the ledger's files together"
    )
    parser.add_argument(
        "--drop-oldest", action="store_true", help="at that limit, drop the oldest files"
    )
    parser.set_defaults(run=run_append)


def _add_status(commands: Any) -> None:
    parser = _add(
        commands,
        "status",
        "show what waits in a ledger",
        "examples:\n"
        "  deedbook spool status spool\n"
        "  deedbook spool status spool --json | jq .bytes",
    )
    parser.set_defaults(run=run_status)


def _add_verify(commands: Any) -> None:
    parser = _add(
        commands,
        "verify",
        "check every record of every file of a ledger, as 'deedbook verify' does",
        "examples:\n  deedbook spool verify spool\n\nExits with 1 for damage.",
    )
    parser.set_defaults(run=run_verify)


def _add_send(commands: Any) -> None:
    parser = _add(
        commands,
        "send",
        "send what waits in a ledger to a URL, and remove what arrived",
        "examples:\n"
        "  deedbook spool send spool https://example.org/batch\n"
        "  deedbook spool send spool http://127.0.0.1:8080 --lines --header @secret-headers\n\n"
        "Other users can see a command's arguments: give a secret header in a file, or in the\n"
        "environment, as DEEDBOOK_HEADER_AUTHORIZATION='Bearer ...' (an underscore in the name\n"
        "stands for a hyphen).\n"
        "Bodies are JSON arrays; with --lines one event a line. Requests that fail are repeated\n"
        "until --timeout. Exits with 1 if the server refused events: they are dead letters, in\n"
        "SPOOL/.deedbook/dead-letters, with another base than events in dead-letters-BASE.\n"
        "What could not be sent stays in the ledger.",
    )
    parser.add_argument("url", metavar="URL", help="where to send")
    parser.add_argument("--lines", action="store_true", help="bodies of JSON lines")
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'|@FILE",
        action="append",
        type=_header,
        default=[],
        help="a header of each request, or a file with one a line; may be repeated",
    )
    parser.add_argument(
        "--compression", choices=("auto", "gzip", "zstd"), help="how bodies are compressed"
    )
    parser.add_argument(
        "--concurrency", metavar="N", type=positive, default=1, help="requests at a time"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, help="give up after so long (default: never)"
    )
    parser.set_defaults(run=run_send)


def _add_dead_letters(commands: Any) -> None:
    parser = _add(
        commands,
        "dead-letters",
        "print the events that a server refused, as JSON lines with the reason",
        "examples:\n  deedbook spool dead-letters spool | jq .reason",
    )
    parser.set_defaults(run=run_dead_letters)
    parser = _add(
        commands,
        "replay",
        "put the events that a server refused back into the ledger",
        "examples:\n  deedbook spool replay spool && deedbook spool send spool URL",
    )
    parser.set_defaults(run=run_replay)


def run_append(args: argparse.Namespace, out: Output) -> int:
    """Append lines, and sync; return the exit code. Lines before an invalid one stay."""
    if args.drop_oldest and args.max_bytes is None:
        raise CliError("spool append: --drop-oldest needs --max-bytes")
    appended = 0
    with (
        LineSource.open(args.file, line_bytes_max=RECORD_BYTES_MAX) as source,
        Ledger.open(
            args.path,
            "a",
            base=args.base,
            batch_bytes=args.batch_bytes,
            max_bytes=args.max_bytes,
            on_full="drop_oldest" if args.drop_oldest else "reject",
            durability="manual",
        ) as ledger,
        Stop() as stop,
        Progress("append", source.total_bytes, enabled=not args.quiet) as progress,
    ):
        try:
            for batch in source.batches(BATCH_LINES, stop):
                lines, problem = _checked(args, source, batch.first_line, batch.lines)
                ledger.append_many(lines)
                appended += len(lines)
                progress.update(source.bytes_read, note=count(appended, "event"))
                if problem is not None:
                    raise problem
        finally:
            ledger.sync()
        stats = ledger.stats()
    if args.json:
        dropped = stats.dropped_events
        out.emit(
            {"ok": not stop.requested, "path": args.path, "appended": appended, "dropped": dropped}
        )
    else:
        text = f"appended {count(appended, 'event')}, on stable storage"
        if stats.dropped_events:
            text += f"; dropped {count(stats.dropped_events, 'older event')}"
        out.talk(text)
    return 128 + stop.number if stop.requested else EXIT_OK


def _checked(
    args: argparse.Namespace, source: LineSource, first: int, lines: list[bytes]
) -> tuple[list[bytes], CliError | None]:
    """The lines up to the first that is not JSON, without empty ones, and what is wrong with it."""
    if not args.validate:
        return [line for line in lines if line], None
    good: list[bytes] = []
    json = JsonLines(lines)
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        reason = json.why_not(index)
        if reason is not None:
            number = first + index
            text = f"line {number} of {source.name} is not JSON: {reason}"
            return good, CliError(text, line=number)
        good.append(line)
    return good, None


def run_status(args: argparse.Namespace, out: Output) -> int:
    """Print what waits; return the exit code."""
    with Ledger.open(_existing(args), base=args.base) as ledger:
        found = ledger.files
    waiting, held = len(found), sum(file.bytes for file in found)
    letters, aside = len(_dead_letters(args)), quarantined(args.path, args.base)
    others = _other_bases(args)
    if args.json:
        facts = {"ok": True, "path": args.path, "files": waiting, "bytes": held}
        facts |= {"dead_letters": letters, "quarantined_files": len(aside)}
        out.emit({**facts, "other_bases": others})
        return EXIT_OK
    active = sum(file.active for file in found)
    written = f", {active} of them being written" if active else ""
    out.line(f"{args.path}: {count(waiting, 'file')}{written}, {size(held)}")
    if letters:
        base = "" if args.base == DEFAULT_BASE else f" --base {args.base}"
        out.line(f"{count(letters, 'dead letter')}: deedbook spool dead-letters {args.path}{base}")
    if aside:
        where = Path(aside[0]).parent
        out.line(f"{count(len(aside), 'damaged file')} in {where}")
    if others:
        out.line(_named(others))
    out.flush()
    return EXIT_OK


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """As ``deedbook verify`` of a ledger."""
    args.paths = [_existing(args)]
    return check.run_verify(args, out)


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
            raise CliError(f"spool send: {error}") from error
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
        raise CliError(f"spool send: not all is sent{after}{last}", path=args.path)
    return EXIT_OK if drained else EXIT_DAMAGE


def run_dead_letters(args: argparse.Namespace, out: Output) -> int:
    """Print the dead letters, one JSON object a line."""
    for letter in _dead_letters(args):
        out.emit(letter.to_dict())
    return EXIT_OK


def run_replay(args: argparse.Namespace, out: Output) -> int:
    """Put dead letters back."""
    letters = _dead_letters(args)
    # Each was in a ledger, which may have been opened with more than the usual limit.
    limit = max(_longest(letters), RECORD_BYTES_MAX)
    path = _existing(args)
    opened = Ledger.open(path, "a", base=args.base, durability="manual", record_bytes_max=limit)
    with opened as ledger:
        replayed = letters.replay(ledger)
    if args.json:
        out.emit({"ok": True, "path": args.path, "replayed": replayed})
    else:
        out.talk(f"put {count(replayed, 'event')} back")
    return EXIT_OK


def _existing(args: argparse.Namespace) -> str:
    path: str = args.path
    if not Path(path).is_dir():
        raise missing("no ledger there", path)
    return path


def _dead_letters(args: argparse.Namespace) -> DeadLetters:
    return dead_letters_of(_existing(args), args.base)


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
    """The headers of an argument: one, or those of a file."""
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
