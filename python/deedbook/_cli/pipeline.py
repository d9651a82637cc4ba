"""``deedbook pipeline``: live sources through logs to tables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from deedbook._cli.arguments import Commands, add_json, add_quiet
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.output import Output, table
from deedbook._cli.pipeline_check import add_check, add_follow
from deedbook._cli.pipeline_generate import add_generate
from deedbook._cli.pipeline_report import add_chaos, add_report
from deedbook._cli.signals import Terminated
from deedbook._cli.spark import settings_of, shown_error
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.quarantine import in_words

if TYPE_CHECKING:
    from deedbook.pipeline.progress import Lag
    from deedbook.pipeline.run import Round

__all__ = ["add_arguments"]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pipeline",
        help="live sources through logs to tables: run, status, check, report, chaos",
        description="Read Nostr events from directories of files, WALs and ledgers into a log "
        "each, from there into one table, each event once, and count them. After a kill, a "
        "later run goes on where it was.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")
    _add_run(actions)
    _add_status(actions)
    add_check(actions, _load)
    add_follow(actions, _load)
    add_report(actions, _load)
    add_generate(actions)
    add_chaos(actions)


def _add_run(actions: Commands) -> None:
    parser = actions.add_parser(
        "run",
        help="run the pipeline that a file describes",
        description="Take what is at the sources through bronze, silver and gold; then again, each "
        "time the trigger says, until Ctrl-C or SIGTERM.",
        epilog="examples:\n"
        "  deedbook pipeline run pipeline.toml --once\n"
        "  deedbook pipeline run pipeline.toml --master spark://host:7077\n\n"
        "A pipeline takes Nostr events alone. What is none is put aside, and the exit code is 1.\n"
        "Other JSON lines: 'deedbook spark ingest' takes them into a log, 'deedbook spark export'\n"
        "from there into a table.\n\n"
        "The page 'A pipeline of Nostr events' of the documentation describes the file.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline's file, TOML")
    parser.add_argument("--once", action="store_true", help="end when what is there now is done")
    parser.add_argument("--master", metavar="URL", help="Spark's master (default: this machine)")
    parser.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of Spark; may be repeated",
    )
    add_json(parser, "a JSON object for each round")
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _add_status(actions: Commands) -> None:
    parser = actions.add_parser(
        "status",
        help="what a pipeline has done so far",
        description="Show runs, logs, tables and totals, without Spark, also while it runs.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline's file, TOML")
    add_json(parser)
    parser.set_defaults(run=_run_status)


def _load(path: str) -> Config:
    try:
        return load(path)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", path=path) from error


def _run(args: argparse.Namespace, out: Output) -> int:
    config = _load(args.file)
    try:
        from deedbook.pipeline.run import run
    except ImportError as error:
        raise CliError(
            f"a pipeline needs PySpark: pip install 'deedbook[pipeline]' ({error})"
        ) from error

    has_bad = False

    def tell(done: Round) -> None:
        nonlocal has_bad
        has_bad = has_bad or bool(done.quarantined)
        if done.quarantined:
            out.talk(f"{in_words(done.quarantined)}; {config.directory / 'quarantine'} has them")
        if args.json:
            out.emit({"ok": not done.quarantined, **done.to_dict()})
        elif not done.is_empty or args.once:
            read = ", ".join(f"{name} {rows:,}" for name, rows in done.rows.items())
            out.talk(f"{read}; {done.totals['events']:,} events in all, {done.seconds:.1f} s")

    settings = settings_of("pipeline", args.conf)
    try:
        run(config, once=args.once, master=args.master, settings=settings, tell=tell)
    except (KeyboardInterrupt, Terminated):
        out.talk("stopped; a later run goes on where this one was")
        raise
    except Exception as error:
        log = config.directory / "spark.log"
        shown = shown_error(f"pipeline {config.name}", error, log)
        if shown is error:
            raise
        raise shown from error
    return EXIT_DAMAGE if has_bad else EXIT_OK


def _run_status(args: argparse.Namespace, out: Output) -> int:
    from deedbook.pipeline.status import status

    found = status(_load(args.file))
    if args.json:
        out.emit({"ok": True, **found.to_dict()})
        return EXIT_OK
    rows: list[tuple[str, Any]] = [
        ("pipeline", found.name),
        ("state", f"{found.state}; {found.runs:,} runs, {found.killed:,} killed"),
    ]
    for source in found.sources:
        come = "" if source.has_come else ", not there yet"
        records = "no" if source.records is None else f"{source.records:,}"
        read = f", last read {source.last_read}{_lag(source.lag)}" if source.last_read else ""
        rows.append((source.name, f"{source.bronze}, {records} records{read}{come}"))
        if source.quarantined:
            rows.append(("", in_words(source.quarantined)))
    if found.totals:
        rows.append(("events", f"{found.totals['events']:,}, {found.totals['late']:,} late"))
        rows.append(("watermark", found.totals["watermark"] or "none"))
    last = f"{found.silver_at}{_lag(found.silver_lag)}" if found.silver_at else "none"
    rows.append(("last batch", last))
    if found.quarantined:
        rows.append(("silver", in_words(found.quarantined)))
    for line in table(rows):
        out.line(line)
    out.flush()
    return EXIT_OK


def _lag(lag: Lag | None) -> str:
    from deedbook.pipeline.status import lag_text

    return "" if lag is None else f", lag then {lag_text(lag)}"
