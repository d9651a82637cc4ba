"""Seeded bugs of the Python package, each under a story's name (tests/stories.txt).

``DEEDBOOK_SEEDED`` names the active bug. scripts/stories.py puts the directory of the module into
PYTHONPATH, and each Python process begins with the module. Spark plans, reads and writes in new
processes, and no fixture reaches those.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def takes_live_jobs(jobs: Any) -> None:
    jobs._is_alive = lambda owned: False


def reads_what_is_not_durable(steps: Any) -> None:
    advance = steps.Steps.advance

    def wrong(self: Any, log: Any, place: Any, limits: Any, options: Any) -> Any:
        return advance(self, log, place, limits, replace(options, read_until="written"))

    steps.Steps.advance = wrong


def passes_over_lost_records(stream: Any) -> None:
    stream.DeedbookStreamReader._lost = lambda self, path, place, resumed, why: None


def takes_another_log_for_its_own(steps: Any) -> None:
    del steps._KEYS["first"], steps._KEYS["before"]


def trusts_numbers(staging: Any) -> None:
    staging._Numbers.check = lambda self, batch: None


def forgets_transactions(writer: Any) -> None:
    commit = writer.Target.commit

    def wrong(self: Any, job: Any, messages: Any, app: Any, version: Any, query: Any) -> Any:
        return commit(self, job, messages, None, None, None)

    writer.Target.commit = wrong


def appends_before_the_plan(writer: Any) -> None:
    commit = writer.StreamWriter.commit

    def wrong(self: Any, messages: Any, batch: int) -> None:
        self._checkpoint = None
        commit(self, messages, batch)

    writer.StreamWriter.commit = wrong


def goes_on_with_any_checkpoint(stream: Any) -> None:
    stream.Checkpoint.check = lambda self, committed, again=None: None


STORIES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "vacuum-takes-live-jobs": ("deedbook._jobs", takes_live_jobs),
    "stream-beyond-the-durable": ("deedbook.spark._logs.steps", reads_what_is_not_durable),
    "lost-records-passed-over": ("deedbook.spark._read.stream", passes_over_lost_records),
    "another-log-of-its-length": ("deedbook.spark._logs.steps", takes_another_log_for_its_own),
    "numbers-trusted": ("deedbook.spark._write.staging", trusts_numbers),
    "repeated-batch-appended": ("deedbook.spark._write.writer", forgets_transactions),
    "batch-before-its-plan": ("deedbook.spark._write.writer", appends_before_the_plan),
    "checkpoint-not-compared": ("deedbook.spark.jobs._input.stream", goes_on_with_any_checkpoint),
}


class Seeding(MetaPathFinder):
    """Finds one module as usual, and adds the bug after the load."""

    def __init__(self, name: str, put_in: Callable[[Any], None]) -> None:
        self.name, self.put_in = name, put_in

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            self.put_in(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if (story := os.environ.get("DEEDBOOK_SEEDED")) in STORIES:
    sys.meta_path.insert(0, Seeding(*STORIES[story]))
