"""``deedbook metrics``: metrics of logs for Prometheus."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.files.aside import refuse_within, written_aside
from deedbook._cli.terminal.output import Output, to_json

if TYPE_CHECKING:
    from deedbook.metrics import Family

__all__ = ["add_arguments", "run"]

_HOST: Final = "127.0.0.1"


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "metrics",
        help="print metrics of logs for Prometheus: as text, as a file, or over HTTP",
        description="Print metrics of logs in the text format of Prometheus: records, bytes, "
        "files, unsynced data, losses, damage, and the lag of each consumer. Other processes may "
        "write to the logs. Only the writing process can count appends and syncs: use the Python "
        "module deedbook.metrics there.",
        epilog="examples:\n"
        "  deedbook metrics orders.wal events.book\n"
        "  deedbook metrics orders.wal --listen 9477            http://127.0.0.1:9477/metrics\n"
        "  deedbook metrics orders.wal -o /var/lib/node_exporter/deedbook.prom\n"
        "  deedbook metrics orders.wal --json | jq .value       a JSON object for each value\n\n"
        "The label 'log' is the last part of a path, or the whole path if two last parts are\n"
        "equal. The exit code is 1 if a log is unreadable; the metric deedbook_up of the log is\n"
        "then 0.",
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="directory or file of a log")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--listen",
        metavar="[HOST:]PORT",
        type=_address,
        help=f"answer GET /metrics until stopped (default host: {_HOST}; port 0: any free port)",
    )
    where.add_argument("-o", "--output", metavar="FILE", help="replace FILE atomically")
    add_json(parser, "print JSON lines, one value on each line")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Show the metrics of ``args.paths``. Raises `CliError`."""
    from deedbook.metrics import families, in_text

    logs = dict(zip(_names(args.paths), args.paths, strict=True))
    if args.listen is not None:
        if args.json:
            raise CliError("metrics: --listen goes without --json")
        return _listen(logs, args.listen, out)
    found = families(logs)
    encoded = list(_json(found)) if args.json else [in_text(found).encode()]
    if args.output is not None:
        for path in args.paths:
            refuse_within("metrics", path, args.output)
        with written_aside(args.output) as file:
            file.writelines(encoded)
    else:
        for part in encoded:
            out.data(part)
        out.flush()
    up = next(family for family in found if family.name == "deedbook_up")
    return EXIT_OK if all(sample.value for sample in up.samples) else EXIT_DAMAGE


def _listen(logs: dict[str, str], address: tuple[str, int], out: Output) -> int:
    from deedbook._cli.read.metrics_server import serve  # slow to load
    from deedbook.metrics import text

    host, port = address
    try:
        server = serve(lambda: text(logs), host, port)
    except OSError as error:
        raise CliError(f"metrics: cannot listen on {host}:{port}: {error.strerror}") from error
    with server:
        shown = f"[{host}]" if ":" in host else host
        out.talk(f"metrics at http://{shown}:{server.server_port}/metrics")
        server.serve_forever()
    return EXIT_OK


def _json(found: list[Family]) -> Iterator[bytes]:
    for family in found:
        for sample in family.samples:
            yield to_json(
                {"name": sample.name, "labels": dict(sample.labels), "value": sample.value}
            )


def _names(paths: list[str]) -> list[str]:
    short = [os.path.basename(os.path.abspath(path)) for path in paths]
    names = short if len(set(short)) == len(short) else [os.path.abspath(path) for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise CliError(f"metrics: {min(twice)} is named twice")
    return names


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not [HOST:]PORT")
    return host.removeprefix("[").removesuffix("]") or _HOST, int(port)
