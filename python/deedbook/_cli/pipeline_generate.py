"""``deedbook pipeline generate``: inputs to try a pipeline with."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.output import Output, complain

__all__ = ["add_generate"]


def add_generate(actions: Commands) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "generate",
        help="fill inputs with events, to try a pipeline with",
        description="Fill three inputs at the same time, as three producers would: files of lines "
        "in DIRECTORY/files, a WAL in DIRECTORY/app.wal, a ledger in DIRECTORY/spool. Some events "
        "come twice, some late, and some lines are no events. DIRECTORY/expected has a line for "
        "each line and record. The events are those of a file, or synthetic: made up, with true "
        "ids, signatures of random digits, and shares of kinds roughly as relays see them.",
        epilog="examples:\n"
        "  deedbook pipeline generate in --events 100000\n"
        "  deedbook pipeline generate in --from events.jsonl.zst\n"
        "  deedbook pipeline generate in --events 50000 --rate 500    about 100 seconds\n"
        "  deedbook pipeline generate in --resume                     after a kill",
    )
    parser.add_argument("directory", metavar="DIRECTORY", help="where the inputs are made")
    parser.add_argument(
        "--events",
        metavar="N",
        type=_number,
        help="so many different events (default: all of the file, or 10000)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=_number, help="another number, other choices (default: 0)"
    )
    parser.add_argument(
        "--rate",
        metavar="R",
        type=_rate,
        help="so many events a second, all producers together (default: as fast as they can)",
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="events, a JSON line each; also .gz and .zst"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where producers were stopped or killed"
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace, out: Output) -> int:
    from deedbook.pipeline.generate import start

    source = None if args.source is None else Path(args.source)
    generation = start(
        Path(args.directory),
        events=args.events,
        seed=args.seed,
        rate=args.rate,
        source=source,
        resume=args.resume,
    )
    done = generation.wait()
    if args.json:
        out.emit({"ok": not done.failures, **done.to_dict()})
    else:
        lines = ", ".join(f"{name} {count:,}" for name, count in done.lines.items())
        rest = "" if done.complete else "; not complete, --resume goes on"
        kind = "synthetic" if done.events == "synthetic" else f"of {done.events}"
        out.talk(f"{lines or 'nothing'} lines, {kind}, in {done.seconds:.1f} s{rest}")
    for name, why in done.failures.items():
        complain(f"{name}: {why}")
    return EXIT_DAMAGE if done.failures else EXIT_OK


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 to 999999999")
    return int(text)


def _rate(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= 1e6:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a rate above 0, up to 1000000")
    return found
