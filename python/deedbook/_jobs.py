"""Names of jobs that stage records, and detection of dead jobs.

A job is named after the owner process, so other processes on the machine can see whether the owner
still runs: ``BOOT-SPACE-PID-START_NAME``, with the machine's boot, its space of process ids, and
the process by id and start. For an owner on another machine, only the age of the files counts.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deedbook._core import StagedJob, Transactions
from deedbook._system.process import status

__all__ = ["OLD_SECONDS", "Removed", "named", "owner", "vacuum"]

OLD_SECONDS = 7 * 24 * 3600.0
"""The time without a write after which staged files of an unreachable owner are dead."""
_BATCH = re.compile(r"(?P<query>.+)_(?P<batch>[0-9]+)")
_NOBODY = "0-0-0-0"


@dataclass(frozen=True)
class Removed:
    """A job with removed staged files, or with ``dry_run`` planned removals."""

    job: str
    files: int
    bytes: int
    why: str


def owner(process: str | None = None) -> str:
    """The owner's part of a job's name: this process, or its nearest ancestor of a name.

    Spark's JVM lives as long as a job; the Python processes of the JVM do not.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        space = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
        pid = os.getpid()
        while process is not None and status(pid).name != process:
            pid = status(pid).parent
        return f"{boot}-{space}-{pid}-{status(pid).start}"
    except (OSError, ValueError):  # no Linux, or no such ancestor
        return _NOBODY


def named(owner: str, *names: str) -> str:
    """The name of a job; any character of ``names`` except letters and digits becomes ``-``."""
    return "_".join([owner, *(re.sub(r"[^A-Za-z0-9-]", "-", name) for name in names)])


def vacuum(
    transactions: Transactions, older_than: float = OLD_SECONDS, dry_run: bool = False
) -> list[Removed]:
    """Remove the staged files of dead jobs, and no file of a live job.

    ``older_than`` in seconds is for jobs of unreachable owners. Returns the removed jobs, or with
    ``dry_run`` the jobs to remove.
    """
    removed = []
    for job, why in _dead(transactions, older_than):
        if dry_run or transactions.discard(job.job):
            removed.append(Removed(job.job, job.files, job.bytes, why))
    return removed


def _dead(transactions: Transactions, older_than: float) -> Iterator[tuple[StagedJob, str]]:
    committed = {of.query.lower(): of.version for of in transactions.committed() if of.query}
    for job in transactions.staged():
        if job.is_committing:
            continue
        owned, _, name = job.job.partition("_")
        batch = _BATCH.fullmatch(name)
        done = committed.get(batch["query"].lower()) if batch else None
        if batch and done is not None and int(batch["batch"]) <= done:
            yield job, f"batch {batch['batch']} of its query is committed"
            continue
        is_alive = _is_alive(owned)
        if is_alive is None:
            age = time.time() - (job.modified or 0.0)
            if age > older_than:
                yield job, f"nothing was written for {age / 3600:.0f} hours"
        elif not is_alive:
            yield job, "its owner is dead"


def _is_alive(owned: str) -> bool | None:
    """Whether the owner of a job runs; None if unknown on this machine."""
    parts = owned.split("-")
    here = owner().split("-")
    if len(parts) != 4 or parts[:2] != here[:2] or owned == _NOBODY:
        return None
    try:
        return status(int(parts[2])).start == parts[3]
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return None
