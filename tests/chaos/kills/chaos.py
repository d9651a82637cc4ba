"""Kills parts of a running pipeline, at random and at dangerous moments, from a seed."""

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from chaos.kills.cluster import Cluster
from chaos.kills.moments import AT_RANDOM, MOMENTS, Watch
from chaos.kills.processes import is_jvm, is_python_worker, kill, kill_all, session
from chaos.kills.troubles import TROUBLES, Made, Troubles
from chaos.runs import Runs, TrialError

_ENDS: Final = ("all", "all", "jvm", "terminate")
"""The targets that end a run: the driver with JVM and workers, its JVM, the driver by SIGTERM."""
_OTHERS: Final = ("worker", "worker", "producer")
_OTHERS_OF_CLUSTER: Final = ("worker", "executor", "executor", "worker", "producer", "node")
_OTHERS_MAX: Final = 3
"""The most kills before the kill that ends the run."""
_BEGIN_SECONDS: Final = 90.0
_MOMENT_SECONDS: Final = 15.0
_MOMENT_BEGINS: Final = 2.0
"""The wait for a step: this many seconds, plus a multiple of Spark's time to start."""
_TARGET_SECONDS: Final = 8.0
_END_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.0005
_FAILED_MAX: Final = 5
"""The most runs in a row that may end without a kill."""


@dataclass(frozen=True)
class Kill:
    target: str
    moment: str
    seen: bool
    """Whether the moment came; otherwise the kill followed a wait. For one of `TROUBLES`, whether
    the run refused to continue, as required."""
    seconds: float
    """Seconds after the begin of the run; for one of `TROUBLES`, the duration."""

    @property
    def is_kill(self) -> bool:
        return self.target not in TROUBLES


@dataclass
class Chaos:
    runs: Runs
    seed: int
    producer: Callable[[], bool] | None = None
    """Kills and restarts a producer of the inputs; False without a producer."""
    cluster: Cluster | None = None
    troubles: Troubles | None = None
    tell: Callable[[Kill], object] | None = None
    kills: list[Kill] = field(default_factory=list)
    failed: int = 0
    """Runs that ended without a kill, for example after too many deaths of workers."""

    def run(self, count: int) -> None:
        """Make ``count`` kills. Afterwards the pipeline does not run."""
        order = random.Random(self.seed)
        moments, ends = _shuffled(order, MOMENTS), _shuffled(order, _ENDS)
        others = _shuffled(order, _OTHERS_OF_CLUSTER if self.cluster else _OTHERS)
        failed = 0
        while (left := count - self._killed) > 0:
            if self.troubles is not None:
                self._note_troubles(self.troubles.due(self._killed))
            meanwhile = [next(others) for _ in range(order.randint(1, _OTHERS_MAX))]
            if self._one(next(ends), next(moments), meanwhile[: left - 1], order):
                failed = 0
                continue
            self.failed += 1
            failed += 1
            if failed == _FAILED_MAX:
                text = self.runs.log.read_text(encoding="utf-8", errors="replace")
                raise TrialError(f"{failed} runs in a row ended by themselves: {text[-4000:]}")
        if self.troubles is not None:
            self._note_troubles(self.troubles.rest())

    def settle(self, timeout_seconds: float = 600.0) -> None:
        """Run undisturbed until a round finds no new rows. Raises `TrialError` if a run fails."""
        until = time.monotonic() + timeout_seconds
        while time.monotonic() < until:
            done = self.runs.once()
            if done.code != 0:
                raise TrialError(f"the pipeline failed: {done.said[-4000:]}")
            if not any(done.rows.values()):
                return
        raise TrialError(f"the pipeline found something new for {timeout_seconds:.0f} s")

    @property
    def _killed(self) -> int:
        return sum(kill.is_kill for kill in self.kills)

    def _add(self, kill: Kill) -> None:
        self.kills.append(kill)
        if self.tell is not None:
            self.tell(kill)

    def _note_troubles(self, made: Iterator[Made]) -> None:
        for one in made:
            self._add(Kill(one.name, one.moment, one.wrong is None, round(one.seconds, 3)))

    def _one(self, end: str, moment: str, others: list[str], order: random.Random) -> bool:
        begun = time.monotonic()
        self._begun_at = self.runs.begun()
        process = self.runs.start()
        try:
            self._await_begin(process)
            patience = _MOMENT_SECONDS + _MOMENT_BEGINS * (time.monotonic() - begun)
            for target in others:
                _sleep(process, order.uniform(0.2, 2.0))
                if self._kill_other(process, target, order):
                    seconds = round(time.monotonic() - begun, 3)
                    self._add(Kill(target, AT_RANDOM, True, seconds))
            wait = order.uniform(0.0, 4.0) if moment == AT_RANDOM else patience
            seen, known = self._await(process, moment, wait)
            is_killed = _end(process, end, known)
            if is_killed:
                self._add(Kill(end, moment, seen, round(time.monotonic() - begun, 3)))
            # The rest of the run ends, too: a driver without its JVM fails.
            _sleep(process, _END_SECONDS)
        finally:
            kill_all(process.pid)
            process.wait()
        self.runs.tidy()
        # Otherwise executors would hold the cores of the next run.
        if self.cluster is not None and not self.cluster.await_idle(_END_SECONDS):
            raise TrialError("executors live on after the end of their driver")
        return is_killed

    def _await_begin(self, process: subprocess.Popen[bytes]) -> None:
        before = self._begun_at
        until = time.monotonic() + _BEGIN_SECONDS
        while self.runs.begun() == before and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)

    def _kill_other(
        self, process: subprocess.Popen[bytes], target: str, order: random.Random
    ) -> bool:
        """Kill a target that does not end the run, as soon as there is one; whether there was."""
        if target == "producer":
            return self.producer is not None and self.producer()
        if target == "node":
            assert self.cluster is not None
            self.cluster.kill_node(order.randrange(self.cluster.nodes))
            return True
        until = time.monotonic() + _TARGET_SECONDS
        while time.monotonic() < until and process.poll() is None:
            found = self._found(process, target)
            if found and kill(*order.choice(found)):
                return True
            time.sleep(0.05)
        return False

    def _found(self, process: subprocess.Popen[bytes], target: str) -> list[tuple[int, int]]:
        """Python workers, or executors, each with the leader of the session."""
        if target == "executor":
            assert self.cluster is not None
            return self.cluster.executors()
        # On a cluster, the driver's Python workers only plan and commit; the executors' workers
        # work.
        if self.cluster is not None and (found := self.cluster.python_workers()):
            return found
        leader = process.pid
        return [(pid, leader) for pid in session(leader) if is_python_worker(pid)]

    def _await(
        self, process: subprocess.Popen[bytes], moment: str, wait_seconds: float
    ) -> tuple[bool, list[int]]:
        """Wait for the moment, at most ``wait_seconds``: whether it came, and the processes."""
        if moment == AT_RANDOM:
            _sleep(process, wait_seconds)
            return True, session(process.pid)
        watch = Watch(self.runs.home, moment)
        until = time.monotonic() + wait_seconds
        known, looked = session(process.pid), time.monotonic()
        while (now := time.monotonic()) < until and process.poll() is None:
            if watch.sees():
                return True, known
            if now - looked > 0.1:  # not when it is seen: a step is short
                known, looked = session(process.pid), now
            time.sleep(_LOOK_SECONDS)
        return False, known


def _shuffled(order: random.Random, names: tuple[str, ...]) -> Iterator[str]:
    while True:
        yield from order.sample(names, len(names))


def _sleep(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)


def _end(process: subprocess.Popen[bytes], target: str, known: list[int]) -> bool:
    """Kill a target that ends a run; returns whether the run was still running."""
    if process.poll() is not None:
        return False
    if target == "terminate":
        process.terminate()
        return True
    found = [pid for pid in known if target == "all" or is_jvm(pid)]
    # One after the other, within less than a millisecond.
    return any([kill(pid, process.pid) for pid in found])
