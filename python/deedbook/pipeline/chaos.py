"""Kills parts of a running pipeline, at random and at its dangerous moments, from a seed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import SILVER, Layout

__all__ = ["MOMENTS", "TARGETS", "Chaos", "Kill", "TrialError"]

MOMENTS: Final = (
    "at random",
    "staged",
    "intent",
    "recorded",
    "table staged",
    "table intent",
    "delta commit",
    "checkpoint offsets",
    "checkpoint commit",
)
"""When something is killed: after a random wait, or as soon as a step of a commit is seen."""

TARGETS: Final = ("all", "jvm", "terminate")
"""What ends a run: SIGKILL of driver, JVM and workers; of the JVM; SIGTERM to the driver.

Before it, a Python worker is killed, which Spark makes good by itself.
"""

_WAIT_SECONDS: Final = 45.0
_LOOK_SECONDS: Final = 0.002


class TrialError(Exception):
    """The pipeline or a producer failed, and not because it was killed."""


@dataclass(frozen=True)
class Kill:
    """One kill."""

    target: str
    moment: str
    seen: bool
    """Whether the moment was seen; else it was killed after a wait."""
    seconds: float
    """After the run began."""


@dataclass
class Chaos:
    """Runs a pipeline again and again, and kills it.

    The order of targets and moments follows from the seed; when a step is seen does not.
    """

    config: Config
    seed: int
    settings: tuple[str, ...] = ()
    """Of Spark, ``KEY=VALUE``."""
    master: str = "local[2,4]"
    producer: Callable[[], bool] | None = None
    """Kills a producer of the inputs and has it go on; returns whether there was one."""
    kills: list[Kill] = field(default_factory=list)

    def run(self, count: int, tell: Callable[[Kill], object] | None = None) -> None:
        """Kill so often, or once or twice more. The pipeline does not run any more afterwards."""
        order = random.Random(self.seed)
        moments = _shuffled(order, MOMENTS)
        while len(self.kills) < count:
            before = len(self.kills)
            target = order.choice(TARGETS) if order.random() < 0.6 else "all"
            self._one(target, next(moments), order, is_last=len(self.kills) + 1 == count)
            if tell is not None:
                for kill in self.kills[before:]:
                    tell(kill)

    def settle(self, timeout_seconds: float = 600.0) -> None:
        """Run it undisturbed until a round finds nothing new. Raises `TrialError` if it fails."""
        until = time.monotonic() + timeout_seconds
        while time.monotonic() < until:
            done = subprocess.run(
                [*self._command(), "--once", "--json"],
                capture_output=True,
                text=True,
                timeout=timeout_seconds,
                check=False,
            )
            if done.returncode != 0:
                raise TrialError(f"the pipeline failed: {done.stdout}{done.stderr[-4000:]}")
            if not any(json.loads(done.stdout)["rows"].values()):
                return
        raise TrialError(f"the pipeline found something new for {timeout_seconds:.0f} s")

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "deedbook", "pipeline", "run", str(self.config.file)]
        command += ["--master", self.master]
        for setting in self.settings:
            command += ["--conf", setting]
        return command

    def _one(self, target: str, moment: str, order: random.Random, is_last: bool) -> None:
        """One run: a worker and perhaps a producer are killed, then what ends the run."""
        begun = time.monotonic()
        log = self.config.directory / "chaos.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._await_begin(process)
            if not is_last:
                self._kill_others(process, order, begun)
            seen = self._await(process, moment, order.uniform(0.0, 6.0))
            _kill(process, target)
            self.kills.append(Kill(target, moment, seen, round(time.monotonic() - begun, 3)))
        finally:
            # What is left of the run ends with it: a driver without its JVM fails by itself.
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20.0)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _await_begin(self, process: subprocess.Popen[bytes]) -> None:
        """Until Spark has started, or for a while."""
        layout = Layout(self.config.directory)
        before = len(_marks(layout))
        until = time.monotonic() + 2 * _WAIT_SECONDS
        while len(_marks(layout)) == before and process.poll() is None:
            if time.monotonic() > until:
                return
            time.sleep(0.05)

    def _kill_others(
        self, process: subprocess.Popen[bytes], order: random.Random, begun: float
    ) -> None:
        """A Python worker, as soon as there is one, and by chance a producer."""
        wait = order.uniform(0.0, 4.0)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=wait)
        until = time.monotonic() + _WAIT_SECONDS / 3
        while time.monotonic() < until and process.poll() is None:
            if _kill(process, "worker"):
                seconds = round(time.monotonic() - begun, 3)
                self.kills.append(Kill("worker", "at random", True, seconds))
                break
            time.sleep(0.05)
        if self.producer is not None and order.random() < 0.4 and self.producer():
            seconds = round(time.monotonic() - begun, 3)
            self.kills.append(Kill("producer", "at random", True, seconds))

    def _await(self, process: subprocess.Popen[bytes], moment: str, wait_seconds: float) -> bool:
        """Until the moment, or for a while; returns whether the moment was seen."""
        layout = Layout(self.config.directory)
        if moment == "at random":
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=wait_seconds)
            return True
        before = set(_traces(layout, self.config, moment))
        until = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < until and process.poll() is None:
            if not before.issuperset(_traces(layout, self.config, moment)):
                return True
            time.sleep(_LOOK_SECONDS)
        return False


def _shuffled(order: random.Random, names: tuple[str, ...]) -> Iterator[str]:
    """All names in some order, then all in another."""
    while True:
        yield from order.sample(names, len(names))


def _marks(layout: Layout) -> list[bytes]:
    """The begins and ends of runs."""
    with suppress(FileNotFoundError):
        return layout.progress("run").read_bytes().splitlines()
    return []


def _traces(layout: Layout, config: Config, moment: str) -> Iterator[tuple[str, int]]:
    """The files that a step of a commit leaves, with when they changed."""
    bronze = [layout.bronze(source.name) for source in config.sources]
    checkpoints = [
        layout.checkpoint(name) for name in (SILVER, *(one.name for one in config.sources))
    ]
    tables = layout.directory / "work"
    patterns: dict[str, list[tuple[Path, str]]] = {
        "staged": [(log, ".deedbook/**/staged/*") for log in bronze],
        "intent": [(log, ".deedbook/**/transaction") for log in bronze],
        "recorded": [(log, ".deedbook/**/transactions") for log in bronze],
        "table staged": [(tables, "*/staged")],
        "table intent": [(tables, "*/intent.json")],
        "delta commit": [(layout.silver("delta"), "_delta_log/*.json")],
        "checkpoint offsets": [(one, "offsets/[0-9]*") for one in checkpoints],
        "checkpoint commit": [(one, "commits/[0-9]*") for one in checkpoints],
    }
    for folder, pattern in patterns[moment]:
        for path in folder.glob(pattern):
            with suppress(FileNotFoundError):
                yield str(path), path.stat().st_mtime_ns


def _kill(process: subprocess.Popen[bytes], target: str) -> bool:
    """Returns whether there was such a process."""
    with suppress(ProcessLookupError):
        if target == "all":
            os.killpg(process.pid, signal.SIGKILL)
            return True
        if target == "terminate":
            process.terminate()
            return True
        for pid in _group(process.pid):
            is_jvm = _name(pid) == "java"
            if (target == "jvm") == is_jvm and (is_jvm or _is_worker(pid)):
                os.kill(pid, signal.SIGKILL)
                return True
    return False


def _group(leader: int) -> Iterator[int]:
    """The other processes of a group, the youngest first."""
    pids = sorted((int(one) for one in os.listdir("/proc") if one.isdecimal()), reverse=True)
    for pid in pids:
        with suppress(OSError):
            if pid != leader and os.getpgid(pid) == leader:
                yield pid


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


def _is_worker(pid: int) -> bool:
    """Whether a process is a Python worker, or the daemon that forks them."""
    with suppress(OSError):
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
