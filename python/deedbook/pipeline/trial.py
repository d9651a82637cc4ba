"""A trial of a pipeline: producers, a follower and Spark at work, killed again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from deedbook import InvalidArgumentError
from deedbook.pipeline import generate
from deedbook.pipeline.chaos import Chaos, Kill
from deedbook.pipeline.check import Check, check
from deedbook.pipeline.cluster import SETTINGS, Cluster, standalone_cluster
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.follow import Followed, follow
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.report import write_report
from deedbook.pipeline.runs import Runs, TrialError
from deedbook.pipeline.troubles import Troubles

__all__ = ["Ended", "Trial"]

TROUBLES_FROM: Final = 10
"""With so many kills there are troubles besides."""
_KILL_SECONDS: Final = 90.0
"""What is generated lasts for so long for each kill, longer than a kill takes on a slow machine."""
_FILE: Final = "pipeline.toml"


@dataclass(frozen=True)
class Ended:
    """What a trial found."""

    directory: str
    kills: tuple[Kill, ...]
    """With the troubles among them."""
    not_tried: tuple[str, ...]
    """Troubles that could not be made, each with the reason."""
    failed: int
    """Runs that ended by themselves, as after too many deaths of workers."""
    generated: dict[str, Any]
    followed: tuple[Followed, ...]
    checks: tuple[Check, ...]
    page: str
    """The report."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


class _Producers:
    """The producers, of which one may be killed, whereupon all go on."""

    def __init__(self, running: generate.Generation, directory: Path) -> None:
        self._running = running
        self._directory = directory
        self._ended: generate.Generated | None = None

    def kill(self) -> bool:
        """SIGKILL the one that appends to the WAL, and go on; whether it was at work."""
        process = self._running.processes["orders"]
        if process.poll() is not None:
            return False
        process.kill()
        self._running.stop()
        self._running.wait()
        self._running = generate.start(self._directory, resume=True)
        return True

    def end(self) -> generate.Generated:
        """Stop them, and wait for them."""
        if self._ended is None:
            self._running.stop()
            self._ended = self._running.wait()
        return self._ended


class _Follower:
    """A follower of bronze, which may rest; then it compares all that it noted."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._errors: dict[str, str] = {}
        self.found: tuple[Followed, ...] = ()
        """What was seen up to the last `stop`; an error stays."""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Follow."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Close the logs."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Have the logs closed meanwhile."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def _run(self) -> None:
        found = follow(self._config, self._stop)
        for one in found:
            if one.error is not None:
                self._errors.setdefault(one.source, one.error)
        self.found = tuple(replace(one, error=self._errors.get(one.source)) for one in found)


@dataclass(frozen=True)
class Trial:
    """A pipeline made of the example that ships, in a directory of its own."""

    directory: Path
    seed: int
    events: int | None = None
    """None: as many as last for the kills, or all of ``source``."""
    source: Path | None = None
    """Real events; else they are synthetic."""
    rate: float = 100.0
    """Events a second, of the three producers together."""
    master: str = "local[2,4]"
    settings: tuple[str, ...] = ()
    """Of Spark, ``KEY=VALUE``."""
    cluster: bool = False
    """Start a standalone cluster of a master and two nodes instead, and kill its parts, too."""
    troubles: bool = True
    """Make `troubles` besides, with ten kills or more."""

    def run(self, kills: int, tell: Callable[[Kill], object] | None = None) -> Ended:
        """Kill so often, let everything come to its end, check it, and write the report.

        Raises `InvalidArgumentError` where the directory is not empty, and `TrialError` where the
        pipeline or a producer fails without being killed.
        """
        begun = time.monotonic()
        config = self._begin()
        follower = _Follower(config)
        with ExitStack() as stack:
            started, runs = self._runs(config, stack)
            producers = self._producers(kills)
            stack.callback(producers.end)
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
            self._let_follow(config)
        checks = [*check(config, follower.found), *(troubles.checks() if troubles else ())]
        page = write_report(config, checks)
        return Ended(
            str(self.directory),
            tuple(chaos.kills),
            tuple(troubles.not_tried() if troubles else ()),
            chaos.failed,
            generated.to_dict(),
            follower.found,
            tuple(checks),
            str(page),
            round(time.monotonic() - begun, 1),
        )

    def _runs(self, config: Config, stack: ExitStack) -> tuple[Cluster | None, Runs]:
        """How the pipeline is run; starts the cluster that it is run on."""
        scratch = Path(
            stack.enter_context(TemporaryDirectory(prefix="deedbook-", ignore_cleanup_errors=True))
        )
        if not self.cluster:
            return None, Runs(config, self.master, self.settings, scratch)
        directory = self.directory / "cluster"
        directory.mkdir()
        started = stack.enter_context(standalone_cluster(directory))
        own = tuple(f"{key}={value}" for key, value in SETTINGS.items())
        settings = (*own, *self.settings)
        return started, Runs(config, started.master, settings, scratch, started.environment)

    def _producers(self, kills: int) -> _Producers:
        events = self.events
        if events is None and self.source is None:
            events = int(self.rate * _KILL_SECONDS * kills)
        inputs = self.directory / "in"
        running = generate.start(
            inputs, events=events, seed=self.seed, rate=self.rate, source=self.source
        )
        return _Producers(running, inputs)

    def _let_follow(self, config: Config) -> None:
        """Give the follower the time to see the end of the logs."""
        layout = Layout(config)
        sizes: list[int] = []
        for _ in range(60):
            before = sizes
            files = [layout.follower(source.name) for source in config.sources]
            sizes = [file.stat().st_size if file.exists() else 0 for file in files]
            if sizes == before:
                return
            time.sleep(1.0)

    def _begin(self) -> Config:
        if self.directory.exists() and any(self.directory.iterdir()):
            raise InvalidArgumentError(f"{self.directory} is not empty; a trial makes a new one")
        (self.directory / "in").mkdir(parents=True)
        example = resources.files("deedbook.pipeline") / "example.toml"
        file = self.directory / _FILE
        file.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
        return load(file)
