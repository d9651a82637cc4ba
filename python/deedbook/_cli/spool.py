"""``deedbook spool``: its commands, and the test endpoint."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from deedbook._cli import spool_ledger, spool_migrate
from deedbook._cli.failure import EXIT_OK, CliError
from deedbook._cli.output import Output

if TYPE_CHECKING:
    from deedbook.http.endpoint import Behaviour, Endpoint

_WORDS = ("ok", "reset", "stall", "drop")


def add_arguments(commands: Any) -> None:
    """Add the command ``spool`` with its own commands."""
    parser = commands.add_parser(
        "spool",
        help="keep events on disk until they were sent over HTTP",
        description="Keep events on disk until they were sent over HTTP.",
        epilog="examples:\n"
        "  deedbook spool append spool events.jsonl       a line, an event\n"
        "  deedbook spool send spool http://HOST/path     sends, and removes what arrived\n"
        "  deedbook spool endpoint --out received.jsonl   a server to try it with\n\n"
        "'deedbook spool COMMAND --help' says more.",
    )
    spool = parser.add_subparsers(
        dest="spool_command", metavar="COMMAND", required=True, title="commands"
    )
    spool_ledger.add_arguments(spool)
    spool_migrate.add_arguments(spool)
    _add_endpoint(spool)


def _add_endpoint(commands: Any) -> None:
    parser = commands.add_parser(
        "endpoint",
        help="run a server that takes batches, counts them, and fails on request",
        description="Run a server on this machine that takes batches of events, counts and stores "
        "them, and fails on request. The first line of the output is its URL; the last one says "
        "what came. It runs until Ctrl-C or SIGTERM.",
        epilog="examples:\n"
        "  deedbook spool endpoint --out received.jsonl --until-events 1000\n"
        "  deedbook spool endpoint --port 8080 --fail 503=0.2 --fail 429=0.1 --retry-after 2\n"
        "  deedbook spool endpoint --max-bytes 100000 --reset 0.1 --drop 0.1 --seed 7\n\n"
        "Shares go from 0 to 1, of all requests. Events of a request whose Idempotency-Key was\n"
        "stored before are counted and not stored again. Requests without an exact Content-Length\n"
        "are refused. Gzip and zstd are understood, and the bodies of Segment, PostHog,\n"
        "RudderStack, OTLP logs, JSON arrays and JSON lines.\n\n"
        "With --json, two objects: where it listens, and at the end what came.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument(
        "--public",
        action="store_true",
        help="allow a --host that other machines reach: whoever does can fill memory and disk",
    )
    parser.add_argument("--port", type=_port, default=0, help="port (default: 0, any that is free)")
    parser.add_argument("--out", metavar="FILE", help="append each event to FILE, one a line")
    parser.add_argument(
        "--fail",
        metavar="STATUS=SHARE",
        type=_failure,
        action="append",
        default=[],
        help="answer this share with a status; may be repeated",
    )
    parser.add_argument(
        "--retry-after", metavar="WHEN", help="Retry-After of 429 and 503: seconds or a date"
    )
    parser.add_argument(
        "--max-bytes", metavar="BYTES", type=_positive, help="answer larger bodies with 413"
    )
    parser.add_argument(
        "--reset", metavar="SHARE", type=_share, default=0.0, help="cut off in the middle"
    )
    parser.add_argument("--stall", metavar="SHARE", type=_share, default=0.0, help="never answer")
    parser.add_argument(
        "--drop",
        metavar="SHARE",
        type=_share,
        default=0.0,
        help="store the events, and lose the answer",
    )
    parser.add_argument(
        "--script",
        metavar="LIST",
        type=_script,
        default=[],
        help="what to do with the first requests, with commas: ok, reset, stall, drop, a status",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="which requests fail (default: 0)"
    )
    parser.add_argument(
        "--until-events", metavar="N", type=_positive, help="end when N events are stored"
    )
    parser.add_argument("--json", action="store_true", help="JSON objects as the result")
    parser.add_argument("-q", "--quiet", action="store_true", help="only the URL, and errors")
    parser.set_defaults(run=run_endpoint)


def run_endpoint(args: argparse.Namespace, out: Output) -> int:
    """Serve until a signal comes or the events are there; write the URL first, and counts last."""
    endpoint = _endpoint(args)
    with endpoint:
        try:
            if args.json:
                out.emit({"ok": True, "url": endpoint.url, "port": endpoint.port})
            else:
                out.line(endpoint.url)
                out.flush()
            wanted = math.inf if args.until_events is None else args.until_events
            # In pieces, because some systems do not interrupt a wait without an end.
            while not endpoint.wait(events=wanted, timeout_seconds=1.0):
                pass
        finally:
            endpoint.close()  # what it is answering is counted, too
            _tell(endpoint, args, out)
    return EXIT_OK


def _endpoint(args: argparse.Namespace) -> Endpoint:
    from deedbook._hosts import is_loopback
    from deedbook.http.endpoint import Endpoint, Faults

    if not args.public and not is_loopback(args.host):
        raise CliError(
            f"spool endpoint: other machines may reach {args.host}: it is a server for tests, "
            "without passwords; --public allows that"
        )
    try:
        faults = Faults(
            statuses=dict(args.fail),
            reset=args.reset,
            stall=args.stall,
            drop=args.drop,
            retry_after=args.retry_after,
            max_bytes=args.max_bytes,
            seed=args.seed,
        )
    except ValueError as error:
        raise CliError(f"spool endpoint: {error}") from error
    try:
        return Endpoint(
            args.port, args.host, out=args.out, faults=faults, script=args.script, keep=False
        )
    except OSError as error:
        if error.filename is not None:
            raise
        where = f"{args.host}:{args.port}"
        raise CliError(f"spool endpoint: cannot listen on {where}: {error.strerror}") from error


def _tell(endpoint: Endpoint, args: argparse.Namespace, out: Output) -> None:
    stats = endpoint.stats()
    if args.json:
        out.emit({"ok": True, **stats.to_dict()})
        return
    statuses = ", ".join(f"{count} x {status}" for status, count in sorted(stats.statuses.items()))
    out.talk(
        f"{stats.events} events in {stats.requests} requests ({statuses or 'none answered'}); "
        f"{stats.duplicates} repeated, {stats.failed} failed on request"
    )


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share from 0 to 1")
    return share


def _status(text: str) -> int:
    if len(text) != 3 or not (text.isascii() and text.isdigit()) or not 200 <= int(text) <= 599:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a status from 200 to 599")
    return int(text)


def _failure(text: str) -> tuple[int, float]:
    status, equals, share = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not STATUS=SHARE, such as 503=0.2")
    return _status(status), _share(share)


def _script(text: str) -> list[Behaviour]:
    found: list[Any] = [word if word in _WORDS else _status(word) for word in text.split(",")]
    return found


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) < 2**63:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1 up")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port from 0 to 65535")
    return int(text)
