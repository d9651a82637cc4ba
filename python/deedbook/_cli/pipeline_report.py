"""``deedbook pipeline report`` and ``chaos``: a page about a pipeline, and a trial of one."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deedbook._cli.arguments import Commands, add_json, add_quiet, positive
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.output import Output
from deedbook._cli.spark import settings_of
from deedbook.pipeline.config import Config

if TYPE_CHECKING:
    from deedbook.pipeline.chaos import Kill

__all__ = ["add_chaos", "add_report"]

Load = Callable[[str], Config]


def add_report(actions: Commands, load: Load) -> None:
    """Add the action ``report``."""
    parser = actions.add_parser(
        "report",
        help="write a page with pictures: events, batches, quarantine, checks",
        description="Check the pipeline, and write report/index.html and its pictures in the "
        "pipeline's directory. The exit code is 1 if a check failed.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline's file, TOML")
    parser.add_argument(
        "--no-check", action="store_true", help="leave the checks out, as while the pipeline runs"
    )
    add_json(parser)
    parser.set_defaults(run=lambda args, out: _report(load(args.file), args, out))


def add_chaos(actions: Commands) -> None:
    """Add the action ``chaos``."""
    parser = actions.add_parser(
        "chaos",
        help="try a pipeline: three live sources, kills, then the check and the report",
        description="Make a pipeline in the new directory DIR, with three producers, a follower, "
        "and Spark; kill parts of it again and again, at random and at the steps of its commits; "
        "then let it come to its end, check that each event came through once, and write the "
        "report. With ten kills or more it also loses a checkpoint, fills a disk and cuts a log, "
        "and checks that the pipeline refuses to go on meanwhile.",
        epilog="examples:\n"
        "  deedbook pipeline chaos /tmp/trial --kills 3\n"
        "  deedbook pipeline chaos /tmp/trial --kills 20 --cluster    a master, 2 nodes\n"
        "  deedbook pipeline chaos /tmp/trial --kills 200 --seed 7 --from events.jsonl\n\n"
        "The exit code is 1 if anything was lost, doubled or changed. It needs Linux; the full "
        "disk\nneeds root, and is left out without.",
    )
    parser.add_argument("directory", metavar="DIR", help="where all of it is made")
    parser.add_argument("--kills", metavar="N", type=positive, default=10, help="so many (10)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of what is killed when")
    parser.add_argument(
        "--events",
        metavar="N",
        type=positive,
        help="of the producers (as many as last for the kills, or all of --from)",
    )
    parser.add_argument(
        "--from", metavar="FILE", dest="source", help="real events, JSON lines (else synthetic)"
    )
    parser.add_argument(
        "--rate", metavar="N", type=positive, default=100, help="events a second (100)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--master", metavar="URL", default="local[2,4]", help="Spark's master (local[2,4])"
    )
    where.add_argument(
        "--cluster",
        action="store_true",
        help="start a standalone cluster, a master and two nodes of one core, with speculation; "
        "executors and nodes are killed, too",
    )
    parser.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of Spark"
    )
    parser.add_argument("--no-troubles", action="store_true", help="kill only")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_chaos)


def _report(config: Config, args: argparse.Namespace, out: Output) -> int:
    try:
        from deedbook.pipeline.check import check
        from deedbook.pipeline.report import verdict_of, write_report

        checks = [] if args.no_check else check(config)
        page = write_report(config, checks)
    except ImportError as error:
        raise CliError(
            f"a report needs matplotlib: pip install 'deedbook[pipeline]' ({error})"
        ) from error
    failed = [one.name for one in checks if one.ok is False]
    if args.json:
        facts = {"page": str(page), "checks": [one.to_dict() for one in checks]}
        out.emit({"ok": not failed, **facts})
    else:
        for name in failed:
            out.talk(f"FAILED: {name}")
        out.talk(f"wrote {page}: {verdict_of(checks)}")
    return EXIT_DAMAGE if failed else EXIT_OK


def _chaos(args: argparse.Namespace, out: Output) -> int:
    try:
        from deedbook.pipeline.runs import TrialError
        from deedbook.pipeline.trial import Trial
    except ImportError as error:
        raise CliError(
            f"a trial needs matplotlib: pip install 'deedbook[pipeline]' ({error})"
        ) from error
    if not sys.platform.startswith("linux"):
        raise CliError("a trial finds what it kills in /proc: it needs Linux")
    settings_of("pipeline", args.conf)  # refuses what is no setting, before anything is made
    trial = Trial(
        Path(args.directory).absolute(),
        args.seed,
        args.events,
        None if args.source is None else Path(args.source).absolute(),
        float(args.rate),
        args.master,
        tuple(args.conf),
        cluster=args.cluster,
        troubles=not args.no_troubles,
    )
    try:
        ended = trial.run(args.kills, lambda kill: out.talk(_told(kill)))
    except TrialError as error:
        raise CliError(f"{trial.directory}: {error}") from error
    failed = [one for one in ended.checks if one.ok is False]
    if args.json:
        facts: dict[str, Any] = ended.to_dict()
        out.emit({"ok": not failed, **facts})
        return EXIT_DAMAGE if failed else EXIT_OK
    for check in ended.checks:
        verdict = "FAILED" if check.ok is False else "ok" if check.ok else "not checked"
        out.line(f"{verdict:<6}  {check.name}: expected {check.expected}, found {check.found}")
    for trouble in ended.not_tried:
        out.line(f"not tried: {trouble}")
    killed = Counter(one.target for one in ended.kills if one.is_kill)
    troubles = len(ended.kills) - killed.total()
    parts = ", ".join(f"{name} {count}" for name, count in killed.most_common())
    left = sum(one.ok is None for one in ended.checks)
    out.line(
        f"{killed.total()} kills ({parts}) and {troubles} troubles in {ended.seconds:.0f} s;"
        f" {len(failed)} of {len(ended.checks)} checks failed"
        + (f", {left} not checked" if left else "")
    )
    out.line(f"report: {ended.page}")
    out.flush()
    return EXIT_DAMAGE if failed else EXIT_OK


def _told(kill: Kill) -> str:
    if not kill.is_kill:
        refused = "refused" if kill.seen else "NOT refused as it must be"
        return f"trouble {kill.moment}: {kill.target}, {refused}, in {kill.seconds:.0f} s"
    seen = "" if kill.seen else ", which was not seen in time"
    moment = kill.moment if kill.moment == "at random" else f"at {kill.moment}"
    return f"killed {kill.target} {moment}{seen}, after {kill.seconds:.0f} s"
