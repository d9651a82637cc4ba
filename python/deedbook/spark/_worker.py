"""A setup that a Python worker of an executor runs once."""

from __future__ import annotations

import functools
import gc

from pyspark import TaskContext

__all__ = ["settle"]


def settle() -> None:
    """Hide the worker's imports from the garbage collector, once per worker.

    Spark's daemon collects garbage after each task, in all objects. The collection takes nine
    tenths of a small task's Python time, nearly all for modules that never become garbage. Does
    nothing on the driver, because the objects there belong to the user's program.
    """
    if TaskContext.get() is not None:
        _freeze()


@functools.cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
