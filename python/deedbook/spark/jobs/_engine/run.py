"""Running a job in its own thread, watched from the thread that gets signals."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

from deedbook import UnsupportedError
from deedbook._spark_session import clear
from deedbook.spark.jobs._engine.sail import is_sail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Tell", "runs_on", "watch"]

Tell = Callable[[int, "int | None", str], object]
"""Called with bytes done, bytes in all (None: unknown) and a note."""

_LOOK_SECONDS = 0.2
T = TypeVar("T")
P = ParamSpec("P")


def runs_on(
    *engines: Literal["spark", "sail"],
) -> Callable[
    [Callable[Concatenate[SparkSession, P], T]], Callable[Concatenate[SparkSession, P], T]
]:
    """Refuse a session that cannot run the job. A job opens logs, so its driver must be here."""

    def take(
        job: Callable[Concatenate[SparkSession, P], T],
    ) -> Callable[Concatenate[SparkSession, P], T]:
        @wraps(job)
        def run(spark: SparkSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if is_sail(spark):
                if "sail" not in engines:
                    raise UnsupportedError(f"the job {job.__name__!r} needs Spark, not Sail")
            elif type(spark).__module__.startswith("pyspark.sql.connect"):
                raise UnsupportedError(
                    f"the job {job.__name__!r} needs the driver in its own process, and this is a "
                    "session of Spark Connect: run it where the server runs, by 'deedbook spark'"
                )
            return job(spark, *args, **kwargs)

        return run

    return take


def watch(
    spark: SparkSession,
    name: str,
    work: Callable[[], T],
    look: Callable[[], tuple[int, int | None, str]] | None = None,
    progress: Tell | None = None,
    stop: Callable[[], object] | None = None,
) -> T:
    """Run ``work`` in a thread, and pass the result of ``look`` to ``progress`` meanwhile.

    An exception meanwhile, such as Ctrl-C or an error of ``progress``, cancels the jobs and calls
    ``stop``. Raises the errors of the work, converted by `clear`.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run(begin: Callable[[], object] = lambda: None) -> None:
        try:
            begin()
            results.append(work())
        except BaseException as error:
            errors.append(error)

    cancel: Callable[[], object]
    if is_sail(spark):
        thread = threading.Thread(target=run)
        cancel = spark.interruptAll
    else:
        from pyspark import InheritableThread

        context, group = spark.sparkContext, f"deedbook-{uuid.uuid4().hex[:12]}"
        begin = partial(context.setJobGroup, group, f"deedbook {name}")
        thread = InheritableThread(target=partial(run, begin), session=spark)
        cancel = partial(context.cancelJobGroup, group)
    thread.daemon = True
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if progress is not None and look is not None:
                progress(*look())
    except BaseException:
        # The JVM may have ended: a service manager sends a signal to all processes.
        for end in (cancel, stop):
            with suppress(Exception):
                if end is not None:
                    end()
        thread.join(10)
        raise
    if errors:
        raise clear(errors[0]) from errors[0]
    return results[0]
