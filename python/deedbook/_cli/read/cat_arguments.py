"""The arguments of ``deedbook cat`` and ``deedbook tail``, and their help."""

from __future__ import annotations

import argparse

from deedbook._cli.arguments import (
    Commands,
    add_json,
    add_paths,
    add_skip_corrupt,
    add_which,
    seconds,
)
from deedbook._cli.read import cat
from deedbook._cli.terminal.payloads import add_payload

__all__ = ["add_cat", "add_tail"]


def add_cat(commands: Commands) -> None:
    """Add the command ``cat``."""
    parser = commands.add_parser(
        "cat",
        help="print deeds or records",
        description="Print deeds, or the records of a WAL, on standard output. Each line has the "
        "event number or LSN, a tab, and the payload with unprintable characters escaped.",
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
        'JSON lines of a book: {"event":1,"mug":0,"jam":"text"}. A payload that is not UTF-8 is\n'
        '"jam_base64". The event is null if damage hides the number.\n'
        'JSON lines of a WAL: {"lsn":0,"payload":"text"}. Ranges are of LSNs:\n'
        "events.wal 4096:8192.\n"
        "A ledger: the finished files in sending order, each line as FILE/RECORD or\n"
        '{"file":0,"record":0,"payload":"text"}. Ranges are of files: spool 3:5; spool 3 prints\n'
        "all of file 3.\n"
        "An event store: the live events, each line as SEGMENT:BYTE or\n"
        '{"segment":0,"offset":4096,"event":"JSON"}. Ranges are of segments.\n'
        'Several logs: each line begins with PATH:, and JSON has "path". With --raw nothing marks\n'
        "the end of a log. A last word like 10:20 or 42 is a range; ./42 is a log\n"
        "with the name 42.\n"
        "At damage, the command prints everything before the damage and exits with 1. With\n"
        "--skip-corrupt, the command also prints the intact records after the damage.",
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="directory or file of a log; several are possible. A range may follow: START:STOP "
        "(STOP is excluded, either may be empty), or one event or LSN",
    )
    add_which(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="EVENT",
        type=cat.event_number,
        help="begin with the event or LSN",
    )
    parser.add_argument(
        "--to",
        dest="stop",
        metavar="EVENT",
        type=cat.event_number,
        help="stop before the event or LSN",
    )
    parser.add_argument(
        "-n",
        "--tail",
        metavar="N",
        type=cat.records,
        help="print only the last N records, the oldest first; with --follow, also print new "
        "records",
    )
    parser.add_argument("--reverse", action="store_true", help="print the newest record first")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="wait for records of other processes"
    )
    _add_timeout(parser)
    add_skip_corrupt(parser)
    _add_printed(parser)
    parser.set_defaults(run=cat.run)


def add_tail(commands: Commands) -> None:
    """Add the command ``tail``."""
    parser = commands.add_parser(
        "tail",
        help="print the last records, and wait for new records",
        description="Print the last deeds or records, the oldest first. The command searches from "
        "the end of the log. With -f, the command then prints each record that another process "
        "appends. The lines are the lines of 'deedbook cat'.",
        epilog="examples:\n"
        "  deedbook tail events.book                      the last ten\n"
        "  deedbook tail events.book -n 1 --json\n"
        "  deedbook tail events.wal -f                    also new records, until Ctrl-C\n"
        "  deedbook tail events.wal -n 0 -f --timeout 60  only new records\n"
        "  deedbook tail logs/* -n 1                      the newest of each\n\n"
        "The command also reads the unfinished files of a ledger. The command may miss a record\n"
        "that is written and sent within half a second. You cannot follow an event store:\n"
        "repeat the command instead. At damage, the command prints everything before the damage\n"
        "and exits with 1.",
    )
    add_paths(parser)
    add_which(parser)
    parser.add_argument(
        "-n",
        "--tail",
        metavar="N",
        type=cat.records,
        default=10,
        help="print the last N records (default: 10)",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="then wait for records of other processes"
    )
    _add_timeout(parser)
    _add_printed(parser)
    parser.set_defaults(run=cat.run_tail)


def _add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds,
        help="with --follow: stop after TIME without a new record, for example 10s (default: "
        "never)",
    )


def _add_printed(parser: argparse.ArgumentParser) -> None:
    """How records are printed."""
    parser.add_argument(
        "--raw",
        action="store_true",
        help="print only payloads, unescaped, with a newline after each",
    )
    parser.add_argument(
        "-0",
        "--null",
        action="store_true",
        help="print as with --raw, but with a NUL byte after each payload",
    )
    add_json(parser, "print JSON lines, one record on each line")
    add_payload(
        parser,
        "with --json: print payloads as JSON values, as text, or in base64, and fail for other "
        "payloads (default: text, or base64 if a payload is not UTF-8)",
    )
