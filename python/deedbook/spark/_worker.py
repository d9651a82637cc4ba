"""What a Python worker of an executor does once."""

from __future__ import annotations

import functools
import gc

from pyspark import TaskContext

__all__ = ["settle"]


def settle() -> None:
    """Take what the worker has imported out of the garbage collector's sight, once per worker.

    Spark's daemon collects garbage after each task, in all objects: of a small task that takes nine
    tenths of the Python time, nearly all of it for modules that never become garbage. Does nothing
    on the driver, whose objects belong to the user's program.
    """
    if TaskContext.get() is not None:
        _freeze()


@functools.cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
