"""The arguments of ``deedbook cat`` and ``deedbook tail``, and their help."""

from __future__ import annotations

import argparse

from deedbook._cli import cat
from deedbook._cli.arguments import (
    Commands,
    add_json,
    add_paths,
    add_skip_corrupt,
    add_which,
    seconds,
)
from deedbook._cli.payloads import add_payload

__all__ = ["add_cat", "add_tail"]


def add_cat(commands: Commands) -> None:
    """Add the command ``cat``."""
    parser = commands.add_parser(
        "cat",
        help="print deeds or records",
        description="Print deeds, or a WAL's records, on standard output: one line each, event "
        "number or LSN, tab and payload, with everything unprintable escaped.",
        epilog="examples:\n"
        "  deedbook cat events.book                       everything\n"
        "  deedbook cat events.book 10:20                 events 10 to 19\n"
        "  deedbook cat events.book 42 --raw > event.bin  one payload and a newline\n"
        "  deedbook cat events.book --reverse | head      the newest first\n"
        "  deedbook cat events.book -n 10                 the last ten\n"
        "  deedbook cat events.book --json | jq .jam      JSON lines\n"
        "  deedbook cat events.book --json --payload json | jq .jam.type\n"
        "  deedbook cat events.book --raw -0 | xargs -0 -n1 handler\n"
        "  deedbook cat events.book --follow --timeout 60\n"
        "  deedbook cat logs/* -n 1                       the newest of each\n\n"
        'JSON lines: {"event":1,"mug":0,"jam":"text"}; a payload that is not UTF-8 is\n'
        '"jam_base64"; the event is null where damage hid its number. Of a WAL:\n'
        '{"lsn":0,"payload":"text"}, and ranges are of LSNs: events.wal 4096:8192.\n'
        "Of a ledger: the finished files, in the order in which they are sent, as FILE/RECORD or\n"
        '{"file":0,"record":0,"payload":"text"}; ranges are of files: spool 3:5, and spool 3 is\n'
        "all of file 3.\n"
        "Of an event store: the events that count, as SEGMENT:BYTE or\n"
        '{"segment":0,"offset":4096,"event":"JSON"}; ranges are of segments.\n'
        'Of several logs each line begins with PATH:, and JSON with "path"; with --raw nothing\n'
        "says where a log ends. A last word like 10:20 or 42 is a range; a log of that name is\n"
        "./42.\n"
        "At damage, everything before it is printed and the exit code is 1; also with\n"
        "--skip-corrupt, which prints what is intact after it too.",
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="directory of a log, or its file; or several; and then a range: START:STOP, either "
        "may be left out, STOP is not included; or one event or LSN",
    )
    add_which(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="EVENT",
        type=cat.event_number,
        help="first event, or LSN, to print",
    )
    parser.add_argument(
        "--to",
        dest="stop",
        metavar="EVENT",
        type=cat.event_number,
        help="event, or LSN, to stop before",
    )
    parser.add_argument(
        "-n",
        "--tail",
        metavar="N",
        type=cat.records,
        help="the last N, the oldest of them first; with --follow, then what comes",
    )
    parser.add_argument("--reverse", action="store_true", help="newest first")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="wait for what other processes append"
    )
    _add_timeout(parser)
    add_skip_corrupt(parser)
    _add_printed(parser)
    parser.set_defaults(run=cat.run)


def add_tail(commands: Commands) -> None:
    """Add the command ``tail``."""
    parser = commands.add_parser(
        "tail",
        help="print the last records, and wait for more",
        description="Print the last deeds or records, found from the end, the oldest of them "
        "first; with -f, then each that other processes append. The lines are those of "
        "'deedbook cat'.",
        epilog="examples:\n"
        "  deedbook tail events.book                      the last ten\n"
        "  deedbook tail events.book -n 1 --json\n"
        "  deedbook tail events.wal -f                    and what comes, until Ctrl-C\n"
        "  deedbook tail events.wal -n 0 -f --timeout 60  only what comes\n"
        "  deedbook tail logs/* -n 1                      the newest of each\n\n"
        "Of a ledger also the files that are being written are read; what is written and sent\n"
        "within half a second may be missed. An event store is not followed: ask it again.\n"
        "At damage, everything before it is printed and the exit code is 1.",
    )
    add_paths(parser)
    add_which(parser)
    parser.add_argument(
        "-n", "--tail", metavar="N", type=cat.records, default=10, help="how many (default: 10)"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="then wait for what other processes append"
    )
    _add_timeout(parser)
    _add_printed(parser)
    parser.set_defaults(run=cat.run_tail)


def _add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds,
        help="with --follow: end when nothing came for so long, as 10s (default: never)",
    )


def _add_printed(parser: argparse.ArgumentParser) -> None:
    """How records are printed."""
    parser.add_argument(
        "--raw", action="store_true", help="the payloads' bytes, each followed by a newline"
    )
    parser.add_argument(
        "-0",
        "--null",
        action="store_true",
        help="as --raw, each followed by a NUL byte instead of a newline",
    )
    add_json(parser, "JSON lines, one entry each")
    add_payload(
        parser,
        "with --json, payloads as JSON values, as text, or in base64; what is not so is an error "
        "(default: text, and base64 where that is not UTF-8)",
    )
