"""How a job runs: in a thread of its own, watched from the one that gets signals."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from deedbook._spark_session import clear

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Tell", "watch"]

Tell = Callable[[int, "int | None", str], object]
"""Called with what is done, what there is in all (None: not known) and a note; bytes both."""

_LOOK_SECONDS = 0.2
T = TypeVar("T")


def watch(
    spark: SparkSession,
    name: str,
    work: Callable[[], T],
    look: Callable[[], tuple[int, int | None, str]] | None = None,
    progress: Tell | None = None,
    stop: Callable[[], object] | None = None,
) -> T:
    """Run ``work``, which runs Spark's jobs, and tell ``progress`` meanwhile what ``look`` sees.

    An exception that comes meanwhile, as of Ctrl-C or of ``progress``, cancels the jobs and calls
    ``stop``. Raises what the work raises, as `clear` gives it.
    """
    from pyspark import InheritableThread

    context = spark.sparkContext
    group = f"deedbook-{uuid.uuid4().hex[:12]}"
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(group, f"deedbook {name}")
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = InheritableThread(target=run, session=spark)
    thread.daemon = True
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_SECONDS)
            if progress is not None and look is not None:
                progress(*look())
    except BaseException:
        # The JVM may have ended: a service manager sends a signal to all processes.
        for end in (partial(context.cancelJobGroup, group), stop):
            with suppress(Exception):
                if end is not None:
                    end()
        thread.join(10)
        raise
    if errors:
        raise clear(errors[0]) from errors[0]
    return results[0]
