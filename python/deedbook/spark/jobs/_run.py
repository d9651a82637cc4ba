"""How a job runs: in a thread of its own, watched from the one that gets signals."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import deedbook
from deedbook import Error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["JobFailedError", "Tell", "clear", "watch"]

Tell = Callable[[int, "int | None", str], object]
"""Called with what is done, what there is in all (None: not known) and a note; bytes both."""

_LOOK_SECONDS = 0.2
# The last line of a traceback: an error, by its module if it has another name, and what it says.
# An error of the JVM follows a colon, on the line after the Python call.
_LAST_LINE = re.compile(
    r"^(?:: )?(?:[A-Za-z_]\w*\.)*"
    r"([A-Za-z_]\w*(?:Error|Exception|Interrupt)|(?<=\.)[A-Z]\w*(?=: ))"
    r"(?:: (?!Traceback \()(.+))?$",
    re.M,
)
T = TypeVar("T")


class JobFailedError(RuntimeError):
    """Spark could not do its part: an executor died too often, a file could not be read."""


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


def clear(error: BaseException) -> BaseException:
    """An error of Spark as the one of Deedbook that caused it, without Spark's tracebacks.

    `JobFailedError` where Spark itself failed; errors of others stay what they are.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException | Py4JError):
        return error
    text = str(error)
    if "JAVA_GATEWAY_EXITED" in text:
        return JobFailedError("Spark does not start; it needs Java 17 or newer")
    found: list[tuple[str, str]] = _LAST_LINE.findall(text)
    for name, message in reversed(found):
        kind: Any = getattr(deedbook, name, None)
        if isinstance(kind, type) and issubclass(kind, Error):
            cause: Error = kind(message)
            return cause
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    caused = found[-1][1] or found[-1][0] if found else first
    return JobFailedError(caused.strip())
