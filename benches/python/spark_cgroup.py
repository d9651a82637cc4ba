"""CPU quotas for processes, by the control groups of Linux, version 1 or 2."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PERIOD_US = 100_000
_ROOTS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))


class Group:
    """A control group: the processes, and the children after `add`, share a quota."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self._path = path
        self._is_old = (path / "cpu.cfs_quota_us").exists()

    def add(self, pid: int) -> None:
        """Move a process into the group. Raises OSError."""
        (self._path / "cgroup.procs").write_text(str(pid))

    def limit(self, cores: float | None) -> None:
        """`cores` for all processes together; None for no limit. Raises OSError."""
        quota = None if cores is None else int(cores * PERIOD_US)
        if self._is_old:
            (self._path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self._path / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))
        else:
            (self._path / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")

    def remove(self) -> None:
        """Remove the group after its processes have ended."""
        for _ in range(100):
            with suppress(OSError):
                self._path.rmdir()
                return
            time.sleep(0.1)


@contextmanager
def groups(count: int) -> Iterator[list[Group]]:
    """Make `count` groups. Raises OSError if the system forbids groups; root may make them."""
    made: list[Group] = []
    root = next(one for one in _ROOTS if (one / "cgroup.procs").exists())
    try:
        for number in range(count):
            made.append(Group(root / f"deedbook-{os.getpid()}-{number}"))
        yield made
    finally:
        for group in made:
            group.remove()
