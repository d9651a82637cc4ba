"""The demo: a log that survives the death of its writer, and Spark that reads it.

``python -m deedbook demo`` writes events with a process that is killed twice, resumes the log each
time, lets Spark aggregate it, and proves that no acknowledged event was lost or doubled. Nothing is
simulated: the processes, the SIGKILLs, the log and the Spark session are real. With ``--small`` it
does without Spark (`deedbook.demo.small`).
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import deedbook
from deedbook._text import escape_steering
from deedbook.demo import small
from deedbook.demo.workspace import (
    Check,
    DemoError,
    Workspace,
    is_from_spark,
    prepare,
    put,
    put_json,
    reason,
    require,
    size,
)

if TYPE_CHECKING:
    from deedbook.demo.crash import Writing
    from deedbook.demo.generate import Source
    from deedbook.demo.pipeline import Summary

EVENTS = 200_000
SEED = 20260302
OUT = "demo-out"
MASTER = "local[*]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the demo to ``parser``."""
    parser.add_argument(
        "--small",
        action="store_true",
        help="without Spark, in seconds: kill a writer again and again, open its log, count; ends "
        "with a picture here and a page in DIR",
    )
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
        type=_positive,
        metavar="N",
        help=f"how many events to generate (default: {EVENTS}, with --small {small.EVENTS}), or to "
        "take from the input (default: all)",
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


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"not a number from 1 up: {text!r}")
    return number


def main(args: argparse.Namespace) -> int:
    """Run the demo.

    Returns 0 if every check passed, 1 if one failed or the demo could not go on, 2 if something
    that it needs is missing or an argument is of no use. Raises BrokenPipeError if the reader of
    standard output went away.
    """
    try:
        return _run(args)
    except DemoError as error:
        return _fail(str(error), error.code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # the command line reports it by its exit code alone
        raise
    except Exception as error:
        return _fail(_told(error, args.out), 1)


def _fail(text: str, code: int) -> int:
    print(escape_steering(f"deedbook demo: {text}"), file=sys.stderr)
    return code


def _told(error: Exception, out: Path) -> str:
    """The error in a line, if it is one that an environment can cause; else raise it again."""
    if isinstance(error, (deedbook.Error, OSError)):
        return str(error)
    if is_from_spark(error):
        return f"Spark: {reason(error)} (more in {Workspace(out).spark_log})"
    raise error


def _run(args: argparse.Namespace) -> int:
    say: Callable[[str], None] = (lambda _: None) if args.json else put
    if args.small:
        return small.run(args, say)
    require()
    if args.input is not None and not args.input.is_file():
        raise DemoError(f"no such file: {args.input}", 2)
    space = prepare(args.out, args.input)

    from deedbook.demo import crash, generate, report

    began = time.monotonic()
    seconds: dict[str, float] = {}
    with _timed(seconds, "input"):
        if args.input is None:
            generate.generate(space.generated, args.events or EVENTS, args.seed)
        path = args.input or space.generated
        source = generate.take_stock(path, args.input is None, args.events, space.hashes)
    say(f"input: {path}, {source.lines:,} lines, {size(source.bytes)}")

    with _timed(seconds, "write, kill, resume"):
        writing = crash.write_with_kills(space.log, source, args.seed, say)
    checks = crash.checks_of(writing, source)
    with _timed(seconds, "verify the log"):
        checks.append(crash.verified(space.log, source))
    summary, versions = _with_spark(args.master, space, source, writing, checks, seconds)

    result = report.Result(source, writing, summary, checks, seconds, versions)
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
    space: Workspace,
    source: Source,
    writing: Writing,
    checks: list[Check],
    seconds: dict[str, float],
) -> tuple[Summary | None, dict[str, str]]:
    """Do Spark's part: append to ``checks``, return the summary and the versions used."""
    from deedbook._spark_session import session
    from deedbook.demo import pipeline

    with ExitStack() as stack:
        with _timed(seconds, "start Spark"):
            begun = session("deedbook demo", space.spark_log, master, pipeline.SETTINGS)
            spark = stack.enter_context(begun)
        with _timed(seconds, "compare log and input in Spark"):
            checks += pipeline.check_log(spark, space, writing.acknowledged, source.lines)
        summary = None
        try:
            with _timed(seconds, "aggregate in Spark, write Parquet"):
                summary = pipeline.aggregate(spark, space)
            with _timed(seconds, "read Parquet back"):
                checks += pipeline.check_parquet(spark, space, source.lines, source.bytes)
        except Exception as error:
            if not is_from_spark(error):
                raise
            # A log that cannot be read shall still be reported on.
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
