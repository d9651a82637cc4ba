"""The arguments of ``deedbook append``, and its help."""

from __future__ import annotations

from deedbook._cli import append
from deedbook._cli.arguments import (
    Commands,
    add_bad_lines,
    add_base,
    add_json,
    add_lock_timeout,
    add_path,
    add_quiet,
    positive,
    size,
)
from deedbook._cli.convert import LAYOUTS
from deedbook._cli.formats.append import logs

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "append",
        help="append lines of a file or of standard input",
        description="Append each line of FILE as a record: its bytes without the newline. The log "
        "is made if it is missing: a book, or what --format says. An event store has its own "
        "command, 'import'.",
        epilog="examples:\n"
        "  deedbook append events.book events.jsonl\n"
        "  producer | deedbook append events.book --acks\n"
        "  deedbook append events.book events.jsonl.gz     gzip and zstd, known by their bytes\n"
        "  deedbook append events.book events.jsonl --resume   after a crash: the rest only\n"
        "  deedbook append notes.book notes.txt --no-validate  any lines, not just JSON\n"
        "  deedbook append --format wal events.wal events.jsonl   a write-ahead log\n"
        "  deedbook append --format ledger spool events.jsonl     for 'deedbook send'\n\n"
        "Lines that are not JSON are left out: they are named, --aside keeps them, and the exit\n"
        "code is 1. Empty lines are passed over, with --no-validate of a ledger only.\n"
        "With --resume, line k of the input is the k-th event of the book. Lines whose events\n"
        "are there are skipped, after the last 1,000 of them were compared byte by byte.\n"
        "Lines that were left out are not counted. The records of a WAL or a ledger have no\n"
        "numbers to resume by: 'deedbook info --json' says how many there are.\n"
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
        type=positive,
        default=1000,
        help="lines for each commit, at most (default: 1000)",
    )
    parser.add_argument(
        "--durability",
        metavar="WHEN",
        type=append.durability,
        default="always",
        help="always (default: each commit is on stable storage before the next begins), "
        "interval:100ms, bytes:64m, manual (at the end), none (never)",
    )
    parser.add_argument(
        "--no-validate",
        dest="validate",
        action="store_false",
        help="take any lines, not just JSON",
    )
    add_bad_lines(parser)
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
        choices=LAYOUTS,
        help="for a new book: its layout (default: packed)",
    )
    parser.add_argument(
        "--line-bytes-max",
        metavar="BYTES",
        type=size,
        help="refuse longer lines (default: 256m; of a ledger 1m)",
    )
    parser.add_argument(
        "--format",
        choices=[info.name for info in logs()],
        help=f"format of a new log (default: what is there, or {logs()[0].name})",
    )
    parser.add_argument(
        "--segment-bytes",
        metavar="BYTES",
        type=size,
        help="for a new WAL: size of a segment (default: 64m)",
    )
    parser.add_argument(
        "--single-file", action="store_true", help="for a new WAL: one file, PATH, no segments"
    )
    add_base(parser)
    parser.add_argument(
        "--batch-bytes",
        metavar="BYTES",
        type=size,
        help="of a ledger: a file with more is finished (default: 475000)",
    )
    parser.add_argument(
        "--max-bytes", metavar="BYTES", type=size, help="of a ledger: limit of its files together"
    )
    parser.add_argument(
        "--drop-oldest",
        action="store_true",
        help="of a ledger: at that limit, drop the oldest files",
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=append.run)
