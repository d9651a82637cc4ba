"""``deedbook spark JOB``: distributed jobs."""

from __future__ import annotations

import argparse
import atexit
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deedbook._cli.arguments import Commands, add_dry_run, add_json, add_quiet
from deedbook._cli.failure import CliError, exit_code
from deedbook._cli.spark import compact as spark_compact
from deedbook._cli.spark import export as spark_export
from deedbook._cli.spark import import_ as spark_import
from deedbook._cli.spark import ingest as spark_ingest
from deedbook._cli.spark import migrate as spark_migrate
from deedbook._cli.spark import verify as spark_verify
from deedbook._cli.terminal.output import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_arguments", "settings_of", "shown_error"]


_JOBS: dict[str, Any] = {
    "ingest": spark_ingest,
    "import": spark_import,
    "export": spark_export,
    "migrate": spark_migrate,
    "compact": spark_compact,
    "verify": spark_verify,
}
_ON_SAIL: Final = ("export", "verify")
_NEEDS: Final = {"spark": ("pyspark",), "sail": ("pysail", "pyspark")}
"""The packages of an engine; both also need pyarrow and pandas."""


def add_arguments(commands: Commands) -> None:
    """Add the command and its jobs."""
    parser = commands.add_parser(
        "spark",
        help=f"run a job with Spark or Sail: {', '.join(_JOBS)}",
        description="Process logs that are too large for one process. Every node must see sources "
        "and logs under the same paths, and have Deedbook, PySpark and pyarrow. Start a killed "
        "job again: the job continues the work, and appends nothing twice.",
    )
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True, title="jobs")
    for name, job in _JOBS.items():
        job.add_arguments(_add_job(jobs, name, job.run, **job.TEXTS))


def _add_job(jobs: Commands, name: str, run: Callable[..., int], **texts: Any) -> Any:
    """The parser of a job, with the arguments of all jobs."""
    parser = jobs.add_parser(name, **texts)
    if name in _ON_SAIL:
        parser.add_argument(
            "--engine",
            choices=tuple(_NEEDS),
            default="spark",
            help="run on Spark (default), or on Sail, an engine without a JVM, on this machine",
        )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="master of Spark, for example spark://host:7077 or local[4] (default: the master of "
        "spark-submit, else all local cores)",
    )
    parser.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a configuration value of the engine; may be repeated",
    )
    add_dry_run(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=lambda args, out: _run(args, out, run))
    return parser


def _run(args: argparse.Namespace, out: Output, job: Callable[..., int]) -> int:
    """Run a job in a new session. Raises `CliError` if Spark fails."""
    with _session(args) as spark:
        return job(args, out, spark, importlib.import_module("deedbook.spark.jobs"))


def settings_of(command: str, given: list[str]) -> dict[str, str]:
    """The settings of ``--conf``. Raises `CliError`."""
    settings = {}
    for setting in given:
        key, is_one, value = setting.partition("=")
        if not (key and is_one):
            raise CliError(f"{command}: --conf {setting!r} is not KEY=VALUE")
        settings[key] = value
    return settings


@contextmanager
def _session(args: argparse.Namespace) -> Iterator[SparkSession]:
    """The session of a job. The log of Spark is kept only if the job fails."""
    engine = getattr(args, "engine", "spark")
    try:
        # Spark asks for pandas where Arrow batches go through a function.
        for name in (*_NEEDS[engine], "pyarrow", "pandas"):
            importlib.import_module(name)
        from deedbook._spark_session import session
    except ImportError as error:
        needs = ", ".join(_NEEDS[engine])
        raise CliError(
            f"{engine} needs {needs}, pyarrow and pandas: pip install 'deedbook[{engine}]'"
            f" ({error})"
        ) from error
    settings = settings_of(f"spark {args.job}", args.conf)
    if engine == "sail":
        with _sail(args, settings) as begun_on_sail:
            yield begun_on_sail
        return
    fd, name = tempfile.mkstemp(prefix=f"deedbook-spark-{args.job}-", suffix=".log")
    os.close(fd)
    log = Path(name)
    is_named = False
    try:
        with ExitStack() as stack:
            begun = session(f"deedbook {args.job}", log, args.master, settings)
            try:
                yield stack.enter_context(begun)
            except Exception as error:
                # Before the session ends: the JVM has the text of its errors.
                shown = shown_error(f"spark {args.job}", error, log)
                if shown is error:
                    raise
                is_named = isinstance(shown, CliError)
                raise shown from error
    finally:
        if not is_named:
            log.unlink(missing_ok=True)


@contextmanager
def _sail(args: argparse.Namespace, settings: dict[str, str]) -> Iterator[SparkSession]:
    from deedbook._spark_session import JobFailedError, clear
    from deedbook.spark.jobs import sail_session

    command = f"spark {args.job}"
    if args.master is not None:
        raise CliError(f"{command}: --master {args.master} is for Spark; Sail runs here")
    try:
        with sail_session(settings) as begun:
            yield begun
    except BaseException as error:
        shown = clear(error)
        if isinstance(shown, JobFailedError):
            shown = CliError(f"{command}: {shown}")
        # Other tasks may still run in this process, and the interpreter's exit would wait for them.
        atexit.register(_end, exit_code(shown))
        if shown is error:
            raise
        raise shown from error


def _end(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def shown_error(command: str, error: Exception, log: Path) -> BaseException:
    """The error to show for a job, or for the start of Spark: a line if Spark failed."""
    from deedbook._spark_session import JobFailedError, clear

    cleared = clear(error)
    if isinstance(cleared, JobFailedError):
        return CliError(f"{command}: {cleared}; see {log}")
    return cleared
