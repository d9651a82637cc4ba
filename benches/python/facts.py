"""Facts about the machine that a reader of figures needs, without names of hosts or directories."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
HERE = Path(__file__).resolve().parent


def filesystem(path: Path) -> str:
    """Type of the file system of a path, `unknown` outside Linux."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return "unknown"
    best, kind = Path(), "unknown"
    for line in mounts:
        _, where, found, *_ = line.split(" ")
        point = Path(where.encode("latin-1").decode("unicode_escape"))
        inside = path.resolve().is_relative_to(point)
        # The later of two mounts on one point hides the earlier.
        if inside and len(point.parts) >= len(best.parts):
            best, kind = point, found
    return kind


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None


def load() -> float | None:
    """Processes that were ready to run in the last minute."""
    try:
        return round(os.getloadavg()[0], 1)
    except (AttributeError, OSError):
        return None


def provisional(load_before: float | None) -> list[str]:
    """A paragraph for a page whose figures were measured next to other work; empty otherwise."""
    if (load_before or 0) <= 1:
        return []
    return ["**The load was above 1 when it began: provisional figures.**", ""]


def loads(machine: Mapping[str, Any]) -> str:
    """The load around a run, for the head of a page; older results have only the load before."""
    after = machine.get("load_after")
    return f"load {machine['load_before']} before" + (
        "" if after is None else f" and {after} after"
    )


def compared(machine: Mapping[str, Any], rows: Iterable[str], *, quick: bool) -> list[str]:
    """Warnings about a run, and a table of figures and peers."""
    warning = ["**A quick run: too small to judge by.**", ""] if quick else []
    head = ["| what | ours | beside | ratio | required | met |", "|---|---|---|---|---|---|"]
    return [*warning, *provisional(machine["load_before"]), *head, *rows]


def on_machine(machine: Mapping[str, Any]) -> str:
    """The machine and its load in a page."""
    return (
        f"{machine['processors']} x {machine['processor']}, {machine['memory_gib']} GiB,"
        f" {machine['kernel']}, {machine['filesystem']}, {machine['python']}; {loads(machine)}"
    )


def commit() -> str:
    """The commit that is measured; `-dirty` if files differ from the commit."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def occasion() -> dict[str, str]:
    """Day and commit of a run that begins now."""
    return {"began": time.strftime("%Y-%m-%d", time.gmtime()), "commit": commit()}


def when(run: Mapping[str, Any]) -> str:
    """Day and commit of a run, if its results have them, as the end of a sentence."""
    day, commit = run.get("began", run.get("date")), run.get("commit")
    return (f" on {day}" if day else "") + (f" at {commit}" if commit else "")


def facts(place: Path) -> dict[str, Any]:
    """The machine and the place of the data."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory_gib": memory_gib(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "threads_free": not getattr(sys, "_is_gil_enabled", lambda: True)(),
        "filesystem": filesystem(place),
        "load_before": load(),
    }
