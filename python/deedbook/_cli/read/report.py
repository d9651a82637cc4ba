"""``deedbook report`` and ``deedbook stats``: the content of a log, as a page and as figures."""

from __future__ import annotations

import argparse
from typing import Any, Final

from deedbook._cli.arguments import Commands, add_json, add_paths, add_quiet, add_which
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.files.aside import refuse_within, written_aside
from deedbook._cli.keep.check import asked_for, each
from deedbook._cli.read.census import show_census
from deedbook._cli.terminal.output import Output, table
from deedbook._cli.terminal.progress import Progress
from deedbook._formats.nostr import NOSTR
from deedbook._report import LogReport, look
from deedbook._report._figures import state_of
from deedbook._report._html import page_of_several, rate_text
from deedbook._show.text import count, exact_size, size

__all__ = ["add_arguments", "run_report", "run_stats"]

_TYPES_SHOWN: Final = 10


def add_arguments(commands: Commands) -> None:
    """Add both commands."""
    parser = commands.add_parser(
        "report",
        help="write an HTML page about a log: times, sizes, types, damage",
        description="Check a log, read the whole log once, and write one self-contained HTML "
        "file: records and bytes by time, sizes of payloads, types, durable end, files, "
        "consumers, and a map of damage. Several logs share a page. The command only reads, and "
        "works while another process writes. The writer counts latencies of syncs: call "
        "deedbook.report(log) in the writing process.",
        epilog="examples:\n"
        "  deedbook report events.book -o report.html\n"
        "  deedbook report logs/* -o report.html\n"
        "  deedbook report events.book --json | jq .types\n\n"
        "The time of a record is the first readable field of created_at, createdAt, timestamp,\n"
        "ts, time, datetime, date, sentAt and at. The type of a record is the field type or\n"
        "kind, else the list of keys. Payloads other than JSON objects have neither time nor\n"
        "type.\n\n"
        "The exit code is 0 for a report about damage, too. 'deedbook verify' exits with 1 at\n"
        "damage.",
    )
    add_paths(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the page to FILE (with --json: no page by default)",
    )
    add_which(parser)
    add_json(parser, "print the figures as JSON, one object for each log")
    add_quiet(parser)
    parser.set_defaults(run=run_report)

    parser = commands.add_parser(
        "stats",
        help="count records, bytes, sizes, types and rate",
        description="Read a log once and count: records, bytes, sizes of payloads, times and "
        "rate, types. The command only reads, and works while another process writes.",
        epilog="examples:\n"
        "  deedbook stats events.book\n"
        "  deedbook stats logs/*\n"
        "  deedbook stats events.book --json | jq .sizes.p99\n\n"
        "With --json, the command prints an object for each log, with the keys of 'deedbook\n"
        "report --json'; 'checked' and 'parts' are empty. For an event store, the command\n"
        "counts the events by kind, author, day and tag, and the share of each segment that a\n"
        "compaction would drop. At damage, the command counts all intact records and exits with\n"
        "1.",
    )
    add_paths(parser)
    add_which(parser)
    parser.add_argument(
        "--top",
        metavar="N",
        type=_top,
        help="for event stores: print N rows of each table; 0: all rows (default: 10; with "
        "--json: all)",
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_stats)


def _top(text: str) -> int:
    """A number of rows. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 up")
    return int(text)


def run_report(args: argparse.Namespace, out: Output) -> int:
    """Write the page about ``args.paths``; return the worst exit code.

    A log that cannot be read is left out of the page. Raises `CliError` and OSError.
    """
    if args.output is None and not args.json:
        raise CliError("report: say where the page goes: -o FILE, or --json for the figures alone")
    if args.output is not None:
        for path in args.paths:
            refuse_within("report", path, args.output)
    reports: list[LogReport] = []

    def look_at(path: str) -> int:
        reports.append(found := _figures(args, path, check=True))
        if args.json:
            out.emit(found.to_dict())
        return EXIT_OK

    code = each(args, out, look_at, args.json)
    if args.output is not None and reports:
        with written_aside(args.output) as file:
            shown = reports[0].to_html() if len(args.paths) == 1 else page_of_several(reports)
            file.write(shown.encode("utf-8", "replace"))
    if args.output is not None and not args.json and not args.quiet:
        for found in reports:
            _tell(args, found, out)
        out.flush()
    return code


def _tell(args: argparse.Namespace, found: LogReport, out: Output) -> None:
    of = "" if len(args.paths) == 1 else f"{found.path}, "
    out.line(
        f"{args.output}: {of}{count(found.records, found.noun)}, {size(found.bytes)} of payloads,"
        f" {state_of(found)}"
    )


def run_stats(args: argparse.Namespace, out: Output) -> int:
    """Print figures about ``args.paths``; return the worst exit code."""

    def show(path: str) -> int:
        info = asked_for(args, path)[0].format
        if info is NOSTR:
            return show_census(path, args.top, args.json, args.quiet, out)
        if args.top is not None:
            raise CliError(f"stats: {path} holds a {info.title}, --top is for event stores")
        found = _figures(args, path, check=False)
        if args.json:
            out.emit(found.to_dict())
            return EXIT_OK if found.ok else EXIT_DAMAGE
        if path != args.paths[0]:
            out.line("")
        for line in table(_rows(found)):
            out.line(line)
        out.flush()
        for text in found.findings:
            out.talk(text)
        return EXIT_OK if found.ok else EXIT_DAMAGE

    return each(args, out, show, args.json)


def _figures(args: argparse.Namespace, path: str, *, check: bool) -> LogReport:
    found, options = asked_for(args, path)
    with Progress(f"{args.command} {path}", enabled=not args.quiet) as progress:
        return look(path, found, options, check=check, progress=progress.update)


def _rows(found: LogReport) -> list[tuple[str, str]]:
    rows: list[tuple[str, Any]] = [
        ("path", found.path),
        ("format", found.format),
        (f"{found.noun}s", f"{found.records:,}"),
        ("payloads", exact_size(found.bytes)),
    ]
    if found.files:
        total = sum(file.bytes for file in found.files)
        rows.append(("files", f"{len(found.files):,}, {exact_size(total)}"))
    if found.sizes is not None:
        of = found.sizes
        rows.append(("sizes", f"{of.least:,} to {of.most:,} bytes, mean {of.mean:,.0f}"))
        rows.append(("", f"about: median {of.median:,}, 95 % {of.p95:,}, 99 % {of.p99:,}"))
    if (times := found.times) is not None:
        first, last = (at.strftime("%Y-%m-%d %H:%M:%S") for at in (times.first, times.last))
        rows.append(("times", f"{first} to {last} UTC ({times.source} of {times.records:,})"))
    if found.rate is not None:
        rows.append(("rate", rate_text(found.rate, found.noun)))
    for number, one in enumerate(found.types[:_TYPES_SHOWN]):
        text = f"{one.records:>9,}  {size(one.bytes):>10}  {one.name}"
        rows.append(("" if number else "types", text))
    if found.damages or not found.ok:
        rows.append(("damage", f"'deedbook verify {found.path}' says where"))
    return rows
