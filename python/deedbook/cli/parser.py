"""The arguments of ``deedbook``, and its help."""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final, NoReturn

from deedbook import __version__
from deedbook.cli import (
    append,
    backup,
    cat,
    check,
    completion,
    convert,
    export,
    lmdb,
    mend,
    metrics,
    nostr,
    pier,
    pipeline,
    report,
    retain,
    spark,
    spool,
    vacuum,
    wal,
)
from deedbook.cli.arguments import (
    Commands,
    add_base,
    add_json,
    add_lock_timeout,
    add_path,
    add_paths,
    add_quiet,
    size,
)
from deedbook.cli.failure import CliError
from deedbook.cli.output import Output
from deedbook.cli.payloads import add_payload
from deedbook.formats import logs

EXIT_CODES: Final = """\
exit codes:
  0    fine
  1    a log is damaged, or something in it is lost
  2    wrong usage, unusable input, or a file that cannot be opened, read or written
  130  interrupted by Ctrl-C
  141  the reader of our output went away
  143  ended by SIGTERM

DEEDBOOK_DEBUG=1 in the environment shows where an error comes from."""


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
        raise CliError(f"{where}{message} (see '{self.prog} --help')")


class CommandParser(Parser):
    """The parser of one command. Options may stand between positional arguments.

    Without this, argparse (before 3.13) takes an optional positional for absent as soon as an
    option comes, and refuses ``append PATH --resume FILE``.
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


def build(argv: Sequence[str]) -> Parser:
    """The parser for ``argv``. The demo's arguments are loaded only if it is the command."""
    parser = Parser(
        prog="deedbook",
        description="Append-only logs that never lose what they acknowledged.",
        epilog="examples:\n"
        "  deedbook append events.book events.jsonl   append a file, a deed for each line\n"
        "  deedbook info events.book                  what is in it, and how it was closed\n"
        "  deedbook cat events.book 10:20             events 10 to 19\n"
        "  deedbook verify events.book                check every checksum\n\n"
        "'deedbook COMMAND --help' says more, with examples.\n\n" + EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"deedbook {__version__}")
    commands = parser.add_subparsers(
        dest="command",
        metavar="COMMAND",
        required=True,
        title="commands",
        parser_class=CommandParser,
    )
    _add_info(commands)
    _add_cat(commands)
    _add_tail(commands)
    report.add_arguments(commands)
    export.add_arguments(commands)
    _add_append(commands)
    _add_verify(commands)
    _add_repair(commands)
    _add_salvage(commands)
    backup.add_arguments(commands)
    convert.add_arguments(commands)
    lmdb.add_arguments(commands)
    vacuum.add_arguments(commands)
    metrics.add_arguments(commands)
    wal.add_arguments(commands)
    retain.add_arguments(commands)
    pier.add_arguments(commands)
    spool.add_arguments(commands)
    nostr.add_arguments(commands)
    spark.add_arguments(commands)
    pipeline.add_arguments(commands)
    command = next((word for word in argv if not word.startswith("-")), None)
    _add_demo(commands, load=command == "demo")
    completion.add_arguments(commands, lambda: build(["demo"]), EXIT_CODES)
    return parser


def _add_info(commands: Commands) -> None:
    parser = commands.add_parser(
        "info",
        help="show what a log holds and how it was left",
        description="Show layout, entries, size, durable end, metadata or consumers, writer, and "
        "what opening found. Reads only; works while another process writes.",
        epilog="examples:\n"
        "  deedbook info events.book\n"
        "  deedbook info --json events.book | jq .recovery.verdict\n"
        "  deedbook info logs/*\n\n"
        "With --json there is an object for each log. Every format has path, format, layout,\n"
        "records, bounds (of the first and the last record), bytes, end, file_end, durable_end,\n"
        "recovery, writer; a book and a WAL\n"
        "also transactions and staged; a book epoch, durable_event, meta; a WAL head,\n"
        "segment_bytes, segments, record_bytes_max,\n"
        "consumers; a saved end of a log saved_from, the byte at which it was cut off. A pier has\n"
        "epochs, each with number, path, layout, bounds, deeds, bytes and verdict, and log_path,\n"
        "epoch, durable_event and meta; recovery is that of the last epoch.\n\n"
        "Of a ledger every file is read: it has path, format, records, bytes, finished_files,\n"
        "active_files, quarantined_files, dead_letters, and for each base in ledgers the same,\n"
        "verdicts and files. Of an event store only the manifest is read, and no event: path,\n"
        "format, segments, records, page_bytes, history, segment_bytes, wal_bytes, index_bytes,\n"
        "compactions, created, last_compaction.\n\n"
        "Exits with 1 if a log is corrupt. A torn tail is what a crash leaves: not damage.",
    )
    add_paths(parser)
    add_base(parser)
    add_json(parser)
    parser.set_defaults(run=check.run_info)


def _add_cat(commands: Commands) -> None:
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
    add_base(parser)
    parser.add_argument(
        "--start", metavar="EVENT", type=cat.event_number, help="first event, or LSN, to print"
    )
    parser.add_argument(
        "--stop", metavar="EVENT", type=cat.event_number, help="event, or LSN, to stop before"
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
    parser.add_argument(
        "--skip-corrupt", action="store_true", help="go on after damage, and exit with 1"
    )
    _add_printed(parser)
    parser.set_defaults(run=cat.run)


def _add_tail(commands: Commands) -> None:
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
    add_base(parser)
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
        metavar="SECONDS",
        type=cat.seconds,
        help="with --follow: end when nothing came for so long (default: never)",
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


def _add_append(commands: Commands) -> None:
    parser = commands.add_parser(
        "append",
        help="append lines of a file or of standard input",
        description="Append each line of FILE as a deed, or as a record of a WAL: its bytes "
        "without the newline. The log is made if it is missing: a book, or what --format says.",
        epilog="examples:\n"
        "  deedbook append events.book events.jsonl\n"
        "  producer | deedbook append events.book --acks\n"
        "  deedbook append events.book events.jsonl.gz     gzip and zstd, known by their bytes\n"
        "  deedbook append events.book events.jsonl --resume   after a crash: the rest only\n"
        "  deedbook append notes.book notes.txt --no-validate  any lines, not just JSON\n"
        "  deedbook append --format wal events.wal events.jsonl   a write-ahead log\n\n"
        "With --resume, line k of the input is the k-th event of the book. Lines whose events\n"
        "are there are skipped, after the last 1,000 of them were compared byte by byte.\n"
        "Lines skipped by --skip-invalid are not counted. The records of a WAL have no numbers\n"
        "to resume by: 'deedbook info --json' says how many lines (records) are in.\n"
        "A commit holds at most --batch lines, and fewer when the input pauses.\n"
        "Ctrl-C and SIGTERM end at the edge of a commit: no line is half in the log, and\n"
        "lines read but not yet committed are not in it. A second signal ends at once.",
    )
    add_path(parser)
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="-", help="input; - (default): standard input"
    )
    parser.add_argument(
        "--resume", action="store_true", help="skip the lines that the book already holds"
    )
    parser.add_argument(
        "--batch",
        metavar="LINES",
        type=append.positive,
        default=1000,
        help="lines for each commit, at most (default: 1000)",
    )
    parser.add_argument(
        "--durability",
        metavar="WHEN",
        type=append.durability,
        default="always",
        help="always (default: each commit is on stable storage before the next begins), "
        "interval:MS, bytes:N, manual (at the end), none (never)",
    )
    parser.add_argument(
        "--validate",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="stop at a line that is not JSON (default); the lines before it stay appended",
    )
    parser.add_argument(
        "--skip-invalid", action="store_true", help="leave out lines that are not JSON, and count"
    )
    parser.add_argument(
        "--acks",
        action="store_true",
        help="write the last durable event, or the byte to which a WAL is durable, to standard "
        "output after each commit",
    )
    parser.add_argument(
        "--recovery",
        choices=("valid", "acknowledged", "spec"),
        default="valid",
        help="after a crash, keep all that is intact (default), cut back to what was acknowledged, "
        "or do as the specification says",
    )
    parser.add_argument(
        "--epoch",
        metavar="EVENT",
        type=append.epoch,
        help="for an empty book: the last event before its first one (default: 0)",
    )
    parser.add_argument(
        "--layout",
        choices=convert.LAYOUTS,
        help="for a new book: its layout (default: packed)",
    )
    parser.add_argument(
        "--line-bytes-max",
        metavar="BYTES",
        type=append.positive,
        default=256 << 20,
        help="refuse longer lines (default: 268435456)",
    )
    parser.add_argument(
        "--format",
        choices=[info.name for info in logs()],
        help=f"format of a new log (default: what is there, or {logs()[0].name})",
    )
    # Its name before; goes with the next version.
    parser.add_argument(
        "--log",
        dest="format",
        choices=[info.name for info in logs()],
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )
    parser.add_argument(
        "--segment-bytes",
        metavar="BYTES",
        type=size,
        help="for a new WAL: size of a segment, with k, m or g (default: 64m)",
    )
    parser.add_argument(
        "--single-file", action="store_true", help="for a new WAL: one file, PATH, no segments"
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=append.run)


def _add_verify(commands: Commands) -> None:
    parser = commands.add_parser(
        "verify",
        help="check every checksum, without changing anything",
        description="Check every deed or record of each log, without changing anything.",
        epilog="examples:\n"
        "  deedbook verify events.book\n"
        "  deedbook verify --json *.book | jq 'select(.ok | not)'\n\n"
        "With --json, one object for each log. Exits with 1 if a log is damaged, torn or has\n"
        "lost what it acknowledged, and with 2 if one cannot be opened.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a log, or a ledger")
    add_base(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=check.run_verify)


def _add_repair(commands: Commands) -> None:
    parser = commands.add_parser(
        "repair",
        help="cut a damaged log after its intact beginning, saving what is cut",
        description="Cut a damaged log after its intact beginning. What is cut is saved beside "
        "the log first; what is intact after the damage goes with it, so try salvage before.",
        epilog="examples:\n"
        "  deedbook salvage events.book rescued.book   keep what is after the damage\n"
        "  deedbook repair events.book --dry-run       what would be cut, and what goes with it\n"
        "  deedbook repair events.book --force         then make the log usable again\n\n"
        "Exits with 0 when the log is usable, whatever had to be cut, and with 1 when it is not.",
    )
    add_path(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be cut, and change nothing"
    )
    parser.add_argument(
        "--force", action="store_true", help="cut also if intact records go with it"
    )
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on without acknowledged records that are missing; the loss stays noted",
    )
    add_json(parser)
    parser.set_defaults(run=mend.run_repair)


def _add_salvage(commands: Commands) -> None:
    parser = commands.add_parser(
        "salvage",
        help="copy everything intact to a new log",
        description="Copy every intact deed and the metadata, or every intact record, to a new "
        "log. The source is not changed. What lies after a gap gets new numbers or LSNs; the "
        "report has both.",
        epilog="examples:\n"
        "  deedbook salvage broken.book rescued.book\n"
        "  deedbook salvage --json broken.book rescued.book | jq .damages\n\n"
        "Exits with 0 when everything intact was copied, whatever was left out, and with 1 when\n"
        "there was something, but nothing intact. What was lost at the end is reported, too.",
    )
    parser.add_argument(
        "source",
        metavar="SRC",
        help="the damaged log, or the file in which a repair saved what it cut",
    )
    parser.add_argument("target", metavar="DST", help="the new log")
    add_base(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=mend.run_salvage)


def _add_demo(commands: Commands, *, load: bool) -> None:
    parser = commands.add_parser(
        "demo",
        help="see it work: write, crash, recover, read",
        description="See it work: write, crash, recover, read.",
        epilog="examples:\n"
        "  deedbook demo --small    without Spark, in seconds\n"
        "  deedbook demo\n"
        "  deedbook demo --input events.jsonl --out demo --json",
    )
    if load:
        demo = _demo()
        demo.add_arguments(parser)
        parser.set_defaults(run=_run_demo)


def _demo() -> ModuleType:
    try:
        return importlib.import_module("deedbook.demo")
    except ImportError as error:
        raise CliError(f"demo: cannot be loaded: {error}") from error


def _run_demo(args: argparse.Namespace, out: Output) -> int:
    code = _demo().main(args)
    return int(code or 0)
