"""The arguments of ``deedbook append``, and its help."""

from __future__ import annotations

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
from deedbook._cli.keep.convert import LAYOUTS
from deedbook._cli.write import append
from deedbook._cli.write.append_formats import logs

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "append",
        help="append the lines of a file or of standard input",
        description="Append each line of FILE as a record, without the newline. The command "
        "creates a missing log: a book, or a log of the format --format. For an event store, use "
        "'deedbook import'.",
        epilog="examples:\n"
        "  deedbook append events.book events.jsonl\n"
        "  producer | deedbook append events.book --acks\n"
        "  deedbook append events.book events.jsonl.gz     gzip or zstd\n"
        "  deedbook append events.book events.jsonl --resume   after a crash: only the rest\n"
        "  deedbook append notes.book notes.txt --no-validate  any lines, not just JSON\n"
        "  deedbook append --format wal events.wal events.jsonl   a write-ahead log\n"
        "  deedbook append --format ledger spool events.jsonl     for 'deedbook send'\n\n"
        "The command skips lines that are not JSON, names the lines, and exits with 1. --aside\n"
        "keeps the bad lines. The command also skips empty lines; with --no-validate, only a\n"
        "ledger skips empty lines.\n\n"
        "With --resume, line k of the input is the k-th event of the book. The command skips\n"
        "the lines already in the book, after comparing the last 1,000 lines byte by byte. Bad\n"
        "lines do not count. The records of a WAL or a ledger have no numbers for --resume:\n"
        "'deedbook info --json' has the number of records.\n\n"
        "A commit holds at most --batch lines, and fewer if the input pauses. Ctrl-C and\n"
        "SIGTERM stop the command between two commits: no line is half in the log, and lines\n"
        "without a commit are not in the log. A second signal stops the command at once.",
    )
    add_path(parser)
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="input file; - (default) reads standard input",
    )
    parser.add_argument("--resume", action="store_true", help="skip the lines already in the book")
    parser.add_argument(
        "--batch",
        metavar="LINES",
        type=positive,
        default=1000,
        help="append at most LINES in a commit (default: 1000)",
    )
    parser.add_argument(
        "--durability",
        metavar="WHEN",
        type=append.durability,
        default="always",
        help="sync at these times: always (default: before the next commit begins), "
        "interval:100ms, bytes:64m, manual (at the end), none (never)",
    )
    parser.add_argument(
        "--no-validate",
        dest="validate",
        action="store_false",
        help="accept any lines, not only JSON",
    )
    add_bad_lines(parser)
    parser.add_argument(
        "--acks",
        action="store_true",
        help="after each commit, print the last durable event, or the durable end of a WAL in "
        "bytes",
    )
    parser.add_argument(
        "--recovery",
        choices=("valid", "acknowledged", "spec"),
        default="valid",
        help="after a crash, keep all intact records (default), cut the log back to the "
        "acknowledged records, or follow the specification",
    )
    parser.add_argument(
        "--epoch",
        metavar="EVENT",
        type=append.epoch,
        help="for an empty book: set the event before the first event (default: 0)",
    )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="for a new book: choose the layout (default: packed)",
    )
    parser.add_argument(
        "--line-bytes-max",
        metavar="BYTES",
        type=size,
        help="refuse lines above BYTES (default: 256m; for a ledger 1m)",
    )
    parser.add_argument(
        "--format",
        choices=[info.name for info in logs()],
        help=f"create a log of the format (default: the format of the log, or {logs()[0].name})",
    )
    parser.add_argument(
        "--segment-bytes",
        metavar="BYTES",
        type=size,
        help="for a new WAL: set the size of a segment (default: 64m)",
    )
    parser.add_argument(
        "--single-file",
        action="store_true",
        help="for a new WAL: write the single file PATH, without segments",
    )
    add_base(parser)
    parser.add_argument(
        "--batch-bytes",
        metavar="BYTES",
        type=size,
        help="for a ledger: finish a file above BYTES (default: 475000)",
    )
    parser.add_argument(
        "--max-bytes",
        metavar="BYTES",
        type=size,
        help="for a ledger: limit the total size of all files",
    )
    parser.add_argument(
        "--drop-oldest",
        action="store_true",
        help="for a ledger: drop the oldest files at the limit",
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=append.run)
