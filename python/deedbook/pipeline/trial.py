"""A trial of a pipeline: producers, a follower and Spark at work, killed again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from deedbook import InvalidArgumentError
from deedbook.pipeline import generate
from deedbook.pipeline.chaos import Chaos, Kill, TrialError
from deedbook.pipeline.check import Check, check
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.follow import Followed, follow
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.report import write_report

__all__ = ["Ended", "Trial"]

EVENTS: Final = 20_000
"""Of synthetic producers."""
_FILE: Final = "pipeline.toml"


@dataclass(frozen=True)
class Ended:
    """What a trial found."""

    directory: str
    kills: tuple[Kill, ...]
    generated: dict[str, Any]
    followed: tuple[Followed, ...]
    checks: tuple[Check, ...]
    page: str
    """The report."""

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


@dataclass(frozen=True)
class Trial:
    """A pipeline made of the example that ships, in a directory of its own."""

    directory: Path
    seed: int
    events: int | None = None
    source: Path | None = None
    """Real events; else they are synthetic."""
    rate: float = 200.0
    """Events a second, of the three producers together."""
    master: str = "local[2,4]"
    settings: tuple[str, ...] = ()
    """Of Spark, ``KEY=VALUE``."""

    def run(self, kills: int, tell: Callable[[Kill], object] | None = None) -> Ended:
        """Kill so often, let everything come to its end, check it, and write the report.

        Raises `InvalidArgumentError` where the directory is not empty, and `TrialError` where the
        pipeline or a producer fails without being killed.
        """
        config = self._begin()
        stop = threading.Event()
        followed: list[Followed] = []
        follower = threading.Thread(target=lambda: followed.extend(follow(config, stop)))
        producers = _Producers(
            generate.start(
                self.directory / "in",
                events=self.events or (None if self.source else EVENTS),
                seed=self.seed,
                rate=self.rate,
                source=self.source,
            ),
            self.directory / "in",
        )
        follower.start()
        try:
            chaos = Chaos(config, self.seed, self.settings, self.master, producers.kill)
            chaos.run(kills, tell)
            generated = producers.end()
            if generated.failures:
                raise TrialError(f"producers failed: {generated.failures}")
            chaos.settle()
            self._let_follow(config)
        finally:
            producers.end()
            stop.set()
            follower.join()
        checks = check(config)
        page = write_report(config, checks)
        return Ended(
            str(self.directory),
            tuple(chaos.kills),
            generated.to_dict(),
            tuple(followed),
            tuple(checks),
            str(page),
        )

    def _let_follow(self, config: Config) -> None:
        """Give the follower the time to see the end of the logs."""
        layout = Layout(config.directory)
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
