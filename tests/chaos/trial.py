"""A trial of a pipeline: producers, a follower and Spark at work, killed repeatedly."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from chaos.check import Check, check, input_of
from chaos.follow import Followed, follow
from chaos.home import Home
from chaos.inputs import generate
from chaos.kills.chaos import Chaos, Kill
from chaos.kills.cluster import SETTINGS, Cluster, standalone_cluster
from chaos.kills.troubles import Troubles
from chaos.runs import Runs, TrialError
from deedbook import Error, InvalidArgumentError

TROUBLES_FROM: Final = 10
"""The number of kills from which a trial also has faults."""
_KILL_SECONDS: Final = 90.0
"""Seconds of input for each kill, more than a kill takes on a slow machine."""
_INPUT_SECONDS: Final = 120.0


@dataclass(frozen=True)
class Ended:
    directory: str
    kills: tuple[Kill, ...]
    not_tried: tuple[str, ...]
    failed: int
    """Runs that ended without a kill, for example after too many deaths of workers."""
    generated: dict[str, Any]
    followed: tuple[Followed, ...]
    checks: tuple[Check, ...]
    seconds: float


class _Producers:
    def __init__(self, running: generate.Generation, directory: Path) -> None:
        self._running = running
        self._directory = directory
        self._ended: generate.Generated | None = None

    def kill(self) -> bool:
        """SIGKILL the producer of the WAL, and continue; returns whether it was at work."""
        process = self._running.processes["orders"]
        if process.poll() is not None:
            return False
        process.kill()
        self._running.stop()
        self._running.wait()
        self._running = generate.start(self._directory, resume=True)
        return True

    def end(self) -> generate.Generated:
        if self._ended is None:
            self._running.stop()
            self._ended = self._running.wait()
        return self._ended


class _Follower:
    """A follower of bronze. After a pause it compares the logs with all its notes."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._errors: dict[str, str] = {}
        self.found: tuple[Followed, ...] = ()
        """The notes up to the last `stop`; an error stays."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.stop()
        try:
            yield
        finally:
            self.start()

    def _run(self) -> None:
        found = follow(self._home, self._stop)
        for one in found:
            if one.error is not None:
                self._errors.setdefault(one.source, one.error)
        self.found = tuple(replace(one, error=self._errors.get(one.source)) for one in found)


@dataclass(frozen=True)
class Trial:
    directory: Path
    seed: int
    source: Path | None = None
    rate: float = 100.0
    cluster: bool = False
    """Start a standalone cluster of a master and two nodes, and also kill parts of the cluster."""
    troubles: bool = True

    def run(self, kills: int, tell: Callable[[Kill], object] | None = None) -> Ended:
        """Make ``kills`` kills, let all processes finish, and check the result."""
        begun = time.monotonic()
        home = self._begin()
        follower = _Follower(home)
        with ExitStack() as stack:
            started, runs = self._runs(home, stack)
            producers = self._producers(kills)
            stack.callback(producers.end)
            self._await_inputs(home)
            follower.start()
            stack.callback(follower.stop)
            troubles = None
            if self.troubles and kills >= TROUBLES_FROM:
                aside = self.directory / "aside"
                troubles = Troubles(runs, self.seed, kills, aside, follower.paused)
            chaos = Chaos(runs, self.seed, producers.kill, started, troubles, tell)
            chaos.run(kills)
            generated = producers.end()
            if generated.failures:
                raise TrialError(f"producers failed: {generated.failures}")
            chaos.settle()
            self._let_follow(home)
        checks = [*check(home, follower.found), *(troubles.checks() if troubles else ())]
        return Ended(
            str(self.directory),
            tuple(chaos.kills),
            tuple(troubles.not_tried() if troubles else ()),
            chaos.failed,
            asdict(generated),
            follower.found,
            tuple(checks),
            round(time.monotonic() - begun, 1),
        )

    def _runs(self, home: Home, stack: ExitStack) -> tuple[Cluster | None, Runs]:
        scratch = Path(
            stack.enter_context(TemporaryDirectory(prefix="deedbook-", ignore_cleanup_errors=True))
        )
        if not self.cluster:
            return None, Runs(home, "local[2,4]", (), scratch)
        directory = self.directory / "cluster"
        directory.mkdir()
        started = stack.enter_context(standalone_cluster(directory))
        settings = tuple(f"{key}={value}" for key, value in SETTINGS.items())
        return started, Runs(home, started.master, settings, scratch, started.environment)

    def _producers(self, kills: int) -> _Producers:
        events = None if self.source else int(self.rate * _KILL_SECONDS * kills)
        inputs = self.directory / "in"
        running = generate.start(
            inputs, events=events, seed=self.seed, rate=self.rate, source=self.source
        )
        return _Producers(running, inputs)

    def _let_follow(self, home: Home) -> None:
        sizes: list[int] = []
        for _ in range(60):
            before = sizes
            files = [home.follower(source.name) for source in home.sources]
            sizes = [file.stat().st_size if file.exists() else 0 for file in files]
            if sizes == before:
                return
            time.sleep(1.0)

    def _await_inputs(self, home: Home) -> None:
        """Wait for the logs that a pipeline reads: a WAL, and a finished file of a sender."""
        until = time.monotonic() + _INPUT_SECONDS
        while time.monotonic() < until:
            try:
                for source in home.sources:
                    next(input_of(source))
                return
            except (Error, OSError, StopIteration):
                time.sleep(0.1)
        raise TrialError("the producers bring nothing")

    def _begin(self) -> Home:
        if self.directory.exists() and any(self.directory.iterdir()):
            raise InvalidArgumentError(f"{self.directory} is not empty; a trial makes a new one")
        home = Home(self.directory)
        home.begin()
        return home
