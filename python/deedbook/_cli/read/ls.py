"""``deedbook ls``: the logs in a directory."""

from __future__ import annotations

import argparse
import os
from typing import Any

from deedbook import Error, NotALogError
from deedbook._cli.arguments import Commands, add_json
from deedbook._cli.failure import EXIT_OK
from deedbook._cli.keep.check import show_failure
from deedbook._cli.terminal.output import Output, table
from deedbook._formats import find
from deedbook._show.text import size

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "ls",
        help="list the logs in directories, with format, records and size",
        description="List the logs in each directory, or the log at PATH: format, number of "
        "records, bytes and path. The number is empty if only a full read could count the "
        "records. The command only reads, and works while another process writes.",
        epilog="examples:\n"
        "  deedbook ls\n"
        "  deedbook ls /var/lib/logs\n"
        "  deedbook ls logs --json | jq 'select(.format == \"wal\").path'\n\n"
        "The exit code is 2 if a log cannot be opened. The other logs are still listed.",
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="directory of logs, or a log (default: the current directory)",
    )
    add_json(parser, "print JSON lines, one object for each log")
    parser.set_defaults(run=run_ls)


def run_ls(args: argparse.Namespace, out: Output) -> int:
    """List the logs; return the worst exit code."""
    worst, rows = EXIT_OK, []
    for path in args.paths or ["."]:
        for place in _places(path):
            try:
                facts = _facts(place)
            except NotALogError as error:
                if place == path:
                    worst = max(worst, show_failure(place, error, out, args.json))
                continue
            except (Error, OSError) as error:
                worst = max(worst, show_failure(place, error, out, args.json))
                continue
            if facts is None:
                continue
            if args.json:
                out.emit(facts)
            else:
                records = "" if facts["records"] is None else f"{facts['records']:,}"
                rows.append(
                    (facts["format"], f"{records:>12}  {size(facts['bytes']):>10}  {place}")
                )
    for line in table(rows):
        out.line(line)
    out.flush()
    return worst


def _places(path: str) -> list[str]:
    """A log, a path that is none, or what lies in a directory."""
    try:
        if find(path) is not None or not os.path.isdir(path):
            return [path]
        return [
            os.path.join(path, name) if path != "." else name for name in sorted(os.listdir(path))
        ]
    except (Error, OSError):
        return [path]


def _facts(path: str) -> dict[str, Any] | None:
    """The facts of a log that need no scan; None without a log."""
    found = find(path)
    if found is None:
        if not os.path.lexists(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return None
    info = found.format
    records: int | None = 0
    nbytes = 0
    for handle in info.readers(path).values():
        with handle:
            figures = info.figures(handle)
        records = None if records is None or figures.records is None else records + figures.records
        nbytes += figures.bytes
    return {"path": path, "format": info.name, "records": records, "bytes": nbytes}
