"""The demo with Spark: a log survives crashes of the writer, and Spark reads the log.

``python examples/demo`` writes events, kills the writing process twice, resumes the log each time,
lets Spark aggregate the log, and proves that no acknowledged event was lost or doubled. Nothing is
simulated: the processes, the SIGKILLs, the log and the Spark session are real. The demo needs ``pip
install 'deedbook[spark]' matplotlib`` and Java 17. ``deedbook demo --small`` needs no Spark.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aggregate
import generate
import report
from workspace import Places, is_from_spark, reason, require

import deedbook
from deedbook._cli import first_minute
from deedbook._cli.arguments import positive
from deedbook._cli.first_minute import Check, DemoError, Say, Source, Writing, put, put_json, size

EVENTS = 200_000
KILLS = 2
SEED = 20260302
OUT = "demo-out"
MASTER = "local[*]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the demo to ``parser``."""
    parser.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="JSON lines to write into the log (default: generated analytics events)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(OUT),
        metavar="DIR",
        help="where everything goes; a former output there is replaced (default: %(default)s)",
    )
    parser.add_argument(
        "--events",
        type=positive,
        metavar="N",
        help=f"how many events to generate (default: {EVENTS}), or to take from the input "
        "(default: all)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=SEED,
        metavar="N",
        help="for the generated events and the moments of the kills (default: %(default)s)",
    )
    parser.add_argument(
        "--master",
        default=MASTER,
        metavar="URL",
        help="Spark master; other than a local one it must see DIR (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print report.json and nothing else")


def main(args: argparse.Namespace) -> int:
    """Run the demo.

    Returns 0 if every check passed, 1 if a check or the demo failed, 2 for a missing program or
    package or a bad argument.
    """

    def work() -> int:
        try:
            return _run(args)
        except Exception as error:
            if not is_from_spark(error):
                raise
            told = f"Spark: {reason(error)} (more in {Places(args.out).spark_log})"
            raise DemoError(told) from error

    return first_minute.guarded(work)


def _run(args: argparse.Namespace) -> int:
    say: Say = (lambda _: None) if args.json else put
    first_minute.require(args.input)
    require()
    space = Places(args.out)
    space.prepare(args.input)

    began = time.monotonic()
    seconds: dict[str, float] = {}
    with _timed(seconds, "input"):
        if args.input is None:
            generate.generate(space.generated, args.events or EVENTS, args.seed)
        path = args.input or space.generated
        source = generate.take_stock(path, args.input is None, args.events, space.hashes)
    say(f"input: {path}, {source.lines:,} lines, {size(source.bytes)}")

    with _timed(seconds, "write, kill, resume"):
        writing = first_minute.write_with_kills(space.log, source, args.seed, say, KILLS)
    checks = first_minute.checks_of(writing, source)
    with _timed(seconds, "verify the log"):
        checks.append(first_minute.verified(space.log, source))
    summary, versions = _with_spark(args.master, space, source, writing, checks, seconds)

    result = report.Result(source, writing, checks, seconds, versions, summary)
    with _timed(seconds, "report"):
        written = report.write_files(result, space.report)
    if args.json:
        put_json(space.report.with_suffix(".json").read_text(encoding="utf-8"))
    else:
        report.show(result)
        put(f"\nwrote {', '.join(map(str, written))} in {time.monotonic() - began:.0f} s")
    return 0 if result.ok else 1


def _with_spark(
    master: str,
    space: Places,
    source: Source,
    writing: Writing,
    checks: list[Check],
    seconds: dict[str, float],
) -> tuple[aggregate.Summary | None, dict[str, str]]:
    """Do Spark's part: append to ``checks``, return the summary and the versions used."""
    from deedbook._spark_session import session

    with ExitStack() as stack:
        with _timed(seconds, "start Spark"):
            begun = session("deedbook demo", space.spark_log, master, aggregate.SETTINGS)
            spark = stack.enter_context(begun)
        with _timed(seconds, "compare log and input in Spark"):
            checks += aggregate.check_log(spark, space, writing.acknowledged, source.lines)
        summary = None
        try:
            with _timed(seconds, "aggregate in Spark, write Parquet"):
                summary = aggregate.aggregate(spark, space)
            with _timed(seconds, "read Parquet back"):
                checks += aggregate.check_parquet(spark, space, source.lines, source.bytes)
        except Exception as error:
            if not is_from_spark(error):
                raise
            # The report must cover an unreadable log, too.
            checks.append(Check("Spark aggregates the log", False, reason(error)))
        return summary, {
            "deedbook": deedbook.__version__,
            "Python": platform.python_version(),
            "Spark": spark.version,
        }


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[name] = time.monotonic() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="demo", description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    sys.exit(main(parser.parse_args()))
