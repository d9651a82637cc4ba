"""``deedbook pipeline check`` and ``follow``: whether a pipeline kept what it was given."""

from __future__ import annotations

import argparse
import math
import threading
from collections.abc import Callable

from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.output import Output, complain
from deedbook.pipeline.config import Config

__all__ = ["add_check", "add_follow"]

Load = Callable[[str], Config]


def add_check(actions: Commands, load: Load) -> None:
    """Add the action ``check``."""
    parser = actions.add_parser(
        "check",
        help="check that everything came through once, and nothing else",
        description="Hold bronze against the inputs' expected lines, silver against bronze, gold "
        "against silver, and the quarantine against the bad lines, without Spark and without the "
        "pipeline's code. The pipeline must have read all, and must not run. Nothing is changed. "
        "The exit code is 1 if anything is wrong.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline's file, TOML")
    add_json(parser)
    parser.set_defaults(run=lambda args, out: _check(load(args.file), args, out))


def add_follow(actions: Commands, load: Load) -> None:
    """Add the action ``follow``."""
    parser = actions.add_parser(
        "follow",
        help="read the bronze logs live, and note each record for check",
        description="Read all bronze logs from their first records on, as they grow, and append "
        "the hash and position of each record to follower/NAME.jsonl in the pipeline's directory. "
        "'check' then asks that all of them are in the log still. Ends with Ctrl-C or SIGTERM.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline's file, TOML")
    parser.add_argument(
        "--idle", metavar="SECONDS", type=_seconds, help="end when nothing came for so long"
    )
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=lambda args, out: _follow(load(args.file), args, out))


def _check(config: Config, args: argparse.Namespace, out: Output) -> int:
    try:
        import pyarrow  # noqa: F401

        if "delta" in config.tables:
            import deltalake  # noqa: F401
    except ImportError as error:
        raise CliError(
            f"a check reads tables: pip install 'deedbook[pipeline]' ({error})"
        ) from error
    from deedbook.pipeline.check import check, text_of

    checks = check(config)
    ok = all(one.ok is not False for one in checks)
    if args.json:
        out.emit({"ok": ok, "checks": [one.to_dict() for one in checks]})
    else:
        width = max(len(one.name) for one in checks)
        words = {True: "ok", False: "WRONG", None: "-"}
        for one in checks:
            out.line(f"{words[one.ok]:<5}  {one.name:<{width}}  {text_of(one.found)}")
            if one.ok is False:
                out.line(f"{'':<5}  {'':<{width}}  expected: {text_of(one.expected)}")
        out.flush()
    return EXIT_OK if ok else EXIT_DAMAGE


def _follow(config: Config, args: argparse.Namespace, out: Output) -> int:
    from deedbook.pipeline.follow import follow

    followed = follow(config, threading.Event(), args.idle)
    failed = [one for one in followed if one.error is not None]
    if args.json:
        sources = {one.source: {"records": one.records, "error": one.error} for one in followed}
        out.emit({"ok": not failed, "sources": sources})
    else:
        out.talk(", ".join(f"{one.source} {one.records:,}" for one in followed) + " records")
    for one in failed:
        complain(f"{one.source}: {one.error}")
    return EXIT_DAMAGE if failed else EXIT_OK


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < 1e9:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds above 0")
    return found
