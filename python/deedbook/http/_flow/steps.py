"""The steps of a flow for its driver, and the steps that any thread can carry out."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from deedbook._errors import Error
from deedbook.http._flow.encode import Prepared, prepare
from deedbook.http._flow.plan import Part, plan
from deedbook.http._settings import Settings, shown_url
from deedbook.transient import Batch


@dataclass(frozen=True)
class Fetch:
    """Fetch the oldest ``count`` batches; the outcome is a `DataResult` or None."""

    count: int


@dataclass(frozen=True)
class Plan:
    """Divide a batch into parts; the outcome is a list of `Part`."""

    batch: Batch


@dataclass(frozen=True)
class Prepare:
    """Make the body of a part; the outcome is a `Prepared`."""

    part: Part
    coding: str | None


@dataclass(frozen=True)
class Send:
    """Send a body; the outcome is an `Answer`, also if there was none. Errors are the body's."""

    prepared: Prepared
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Bury:
    """Write the events of a part to the dead letters, durably."""

    part: Part
    reason: str
    status: int | None
    attempts: int


@dataclass(frozen=True)
class Remove:
    """Close a batch and remove it from the store."""

    batch: Batch
    removable: Any


@dataclass(frozen=True)
class Release:
    """Close a batch and leave the batch in the store, for the next sender."""

    batch: Batch
    removable: Any


@dataclass(frozen=True)
class Wait:
    """Wait so many seconds (None: forever), or until a change."""

    seconds: float | None


Step: TypeAlias = Fetch | Plan | Prepare | Send | Bury | Remove | Release | Wait
Worker: TypeAlias = Generator[Step, Any, bool]
"""Returns whether the worker finished the job, without a stop."""


def perform(settings: Settings, step: Step) -> Any:
    """Carry out a step that is neither a request nor a wait; may block on a disk."""
    if isinstance(step, Fetch):
        return settings.store.fetch(step.count)
    if isinstance(step, Plan):
        return plan(step.batch, settings.envelope, settings.limits)
    if isinstance(step, Prepare):
        return prepare(step.part, settings.envelope, step.coding)
    if isinstance(step, Bury):
        part = step.part
        return settings.dead_letters.write(
            part.id,
            enumerate(part.batch.records(part.start, part.stop), part.start),
            reason=step.reason,
            status=step.status,
            attempts=step.attempts,
            now=settings.clock.time(),
            url=shown_url(settings.url),
        )
    if isinstance(step, Remove):
        step.batch.close()  # some systems do not remove a file that is open
        return settings.store.remove([step.removable])
    if isinstance(step, Release):
        step.batch.close()
        release = getattr(settings.store, "release", None)
        if release is not None:
            with contextlib.suppress(Error):  # a closed store has given all back
                release([step.removable])
        return None
    raise AssertionError(f"{step!r} is the driver's own")
