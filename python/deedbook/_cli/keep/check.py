"""``deedbook info`` and ``deedbook verify``: read-only looks at a log."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from deedbook import Error
from deedbook._cli.archive import is_url, verify_archive
from deedbook._cli.arguments import Commands, add_json, add_paths, add_quiet, add_which
from deedbook._cli.failure import (
    EXIT_DAMAGE,
    EXIT_OK,
    CliError,
    describe,
    details,
    exit_code,
    trace,
)
from deedbook._cli.terminal.output import Output, complain, table
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import FORMATS, Found, Outcome, require
from deedbook._formats.nostr import NOSTR

_COLOURS: Final = {"clean": "green", "open": "yellow", "torn": "yellow", "corrupt": "red"}
"""The colours of verdicts on a terminal."""


def add_info(commands: Commands) -> None:
    """Add the command ``info``."""
    parser = commands.add_parser(
        "info",
        help="show the content of a log and how the last writer left the log",
        description="Show layout, entries, size, durable end, metadata or consumers, writer, and "
        "the state found on opening. The command only reads, and works while another process "
        "writes.",
        epilog="examples:\n"
        "  deedbook info events.book\n"
        "  deedbook info --json events.book | jq .recovery.verdict\n"
        "  deedbook info logs/*\n\n"
        "With --json there is an object for each log, with path, format, records, and of a\n"
        "  book    layout, bounds (of the first and the last record), bytes, end, file_end,\n"
        "          durable_end, recovery, writer, transactions, staged, epoch, durable_event,\n"
        "          meta\n"
        "  pier    bounds, bytes, recovery (of the last epoch), writer, log_path, epoch,\n"
        "          durable_event, meta, meta_error (if meta is unreadable), consumers, and\n"
        "          epochs: of each its number, path, layout, bounds, deeds, bytes, verdict\n"
        "  wal     layout, bounds, bytes, end, file_end, durable_end, recovery, writer,\n"
        "          transactions, staged, head, segment_bytes, segments, record_bytes_max,\n"
        "          consumers\n"
        "  ledger  bytes, finished_files, active_files, quarantined_files, dead_letters, and\n"
        "          ledgers: of each its base, the same sums, verdicts, files\n"
        "  nostr   segments, page_bytes, history, segment_bytes, wal_bytes, index_bytes,\n"
        "          compactions, created, last_compaction, is_loss\n"
        "The saved end of a book or a WAL has saved_from (the byte of the cut), but\n"
        "no transactions and staged. The command reads every file of a ledger, but only the\n"
        "manifest and the file sizes of an event store.\n\n"
        "The exit code is 1 if a log is corrupt. A torn tail after a crash is not damage.",
    )
    add_paths(parser)
    add_which(parser)
    add_json(parser)
    parser.set_defaults(run=run_info)


def add_verify(commands: Commands) -> None:
    """Add the command ``verify``."""
    parser = commands.add_parser(
        "verify",
        help="check every checksum, without changing anything",
        description="Check every deed or record of each log, without changing anything.",
        epilog="examples:\n"
        "  deedbook verify events.book\n"
        "  deedbook verify --json *.book | jq 'select(.ok | not)'\n"
        "  deedbook verify store --check signature        also signatures of events\n"
        "  deedbook verify s3://bucket/events             an archive: each piece, read back\n\n"
        "With --json, the command prints one object for each log. The exit code is 1 if a log\n"
        "is damaged or torn, or has lost acknowledged records. The exit code is 2 if a log\n"
        "cannot be opened.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="directory or file of a log")
    add_which(parser)
    parser.add_argument(
        "--check",
        choices=("none", "id", "signature"),
        help="for event stores: check checksums and the id of each event (default), also the "
        "signature, or only checksums",
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_verify)


def asked_for(args: argparse.Namespace, path: str) -> tuple[Found, dict[str, Any]]:
    """The log at a path, and the options that select a log among several at the path.

    Raises as `deedbook._formats.require`, and `CliError` for an option of another format.
    """
    names = {option for info in FORMATS for option in info.read_options}
    given = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    found = require(path, **given)
    for info in FORMATS:
        for option in info.read_options:
            if option in given and option not in found.format.read_options:
                flag = f"--{option.replace('_', '-')}"
                raise CliError(
                    f"{args.command}: {path} holds a {found.format.title}, {flag} is for"
                    f" {info.title}s",
                    path=path,
                )
    return found, given


def each(args: argparse.Namespace, out: Output, look: Callable[[str], int], as_json: bool) -> int:
    """Look at ``args.paths`` one after the other; return the worst exit code.

    Reports unreadable logs, with ``as_json`` also as an object, and continues with the others.
    """
    worst = EXIT_OK
    for path in args.paths:
        try:
            code = look(path)
        except (Error, OSError) as error:
            code = show_failure(path, error, out, as_json)
        worst = max(worst, code)
    return worst


def run_info(args: argparse.Namespace, out: Output) -> int:
    """Print the facts about ``args.paths``; return the worst exit code."""

    def look(path: str) -> int:
        if path != args.paths[0] and not args.json:
            out.line("")
        return _info(args, path, out)

    return each(args, out, look, args.json)


def _info(args: argparse.Namespace, path: str, out: Output) -> int:
    found, options = asked_for(args, path)
    described = found.format.describe(path, found, **options)
    if args.json:
        out.emit(described.facts)
    else:
        colours = [_row_colour(name, described.facts) for name, _ in described.rows]
        for colour, line in zip(colours, table(described.rows), strict=True):
            out.line(line, colour)
        out.flush()
    return EXIT_DAMAGE if described.corrupt else EXIT_OK


def run_verify(args: argparse.Namespace, out: Output) -> int:
    """Check every record at ``args.paths``; return the worst exit code."""

    def look(path: str) -> int:
        if is_url(path):
            return verify_archive(path, args, out)
        found, options = asked_for(args, path)
        if args.check is not None:
            if found.format is not NOSTR:
                raise CliError(
                    f"verify: {path} holds a {found.format.title}, --check is for event stores",
                    path=path,
                )
            options["check"] = args.check
        with Progress(f"verify {path}", enabled=not args.quiet) as progress:
            # The callback is given even if nothing is drawn: Ctrl-C is raised from it.
            outcome = found.format.verify(path, progress.update, **options)
        return show_outcome(path, found.format.name, outcome, out, args.json)

    return each(args, out, look, args.json)


def show_outcome(path: str, name: str, outcome: Outcome, out: Output, as_json: bool) -> int:
    """Print the outcome of a check of a log of the format ``name``; return the exit code."""
    facts = {"path": path, "format": name, **outcome.facts}
    return out.result(as_json, facts, outcome.lines, outcome.ok, _outcome_colour(outcome))


def _outcome_colour(outcome: Outcome) -> str:
    """Green, yellow for what a crash leaves, red for damage and loss."""
    if outcome.ok:
        return "green"
    lost = outcome.facts.get("lost_acknowledged") or outcome.facts.get("loss")
    return "red" if lost else _COLOURS.get(outcome.facts.get("verdict", ""), "red")


def _row_colour(name: str, facts: dict[str, Any]) -> str | None:
    """The colour of a row of ``info``; a ledger's rows of verdicts are named after these."""
    found = _COLOURS.get(facts.get("recovery", {}).get("verdict", ""))
    if name == "recovery":
        return found
    if name == "damage":
        return "yellow" if found == "yellow" else "red"
    return "red" if name == "loss" else _COLOURS.get(name)


def show_failure(path: str, error: Exception, out: Output, as_json: bool) -> int:
    """Print why a log was not looked at; return the exit code."""
    trace(error)
    complain(describe(error))
    if as_json:
        out.emit({"path": path, "ok": False, "error": details(error)})
    return exit_code(error)
