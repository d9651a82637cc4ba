"""Runs of a pipeline, each a process of its own, as in real life."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from chaos.home import EXAMPLES, Home

__all__ = ["Once", "Runs", "TrialError"]

_ONCE_SECONDS: Final = 600.0
_LINE_MAX: Final = 400
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A run lives for seconds: a compiler that thinks for long does not pay."""


class TrialError(Exception):
    """The pipeline or a producer failed, and not because it was killed."""


@dataclass(frozen=True)
class Once:
    """A run that took what was there, or failed."""

    code: int
    said: str
    """On standard output and standard error."""
    rows: Mapping[str, int]
    """Rows read, by source, and of ``silver``; nothing if it failed."""

    @property
    def line(self) -> str:
        """The last line that it said; of a long one, the end."""
        lines = self.said.split("\n")
        return next((line.strip()[-_LINE_MAX:] for line in reversed(lines) if line.strip()), "")


@dataclass(frozen=True)
class Runs:
    """How a pipeline is run."""

    home: Home
    master: str
    settings: tuple[str, ...]
    """Of Spark, ``KEY=VALUE``."""
    scratch: Path
    """Where Spark puts what a kill leaves; it is there, and its path is short enough for
    sockets. `tidy` empties it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables of a run."""

    @property
    def log(self) -> Path:
        """What runs print that are killed."""
        return self.home.log

    def begun(self) -> int:
        """How many of these runs have started all their queries."""
        return self.log.read_bytes().count(b" queries run") if self.log.exists() else 0

    def start(self) -> subprocess.Popen[bytes]:
        """Start a run that goes on until it is stopped, in a session of its own."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self._command(),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def once(self) -> Once:
        """Run it for what is there now. Raises `TrialError` if that does not end."""
        try:
            done = subprocess.run(
                [*self._command(), "--once"],
                env=self._environment(),
                capture_output=True,
                text=True,
                timeout=_ONCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TrialError(f"a run did not end in {_ONCE_SECONDS:.0f} s") from error
        said = f"{done.stdout}{done.stderr}"
        # Lines that are put aside make it 1: what there was is read.
        has_run = done.returncode in (0, 1) and done.stdout.startswith("{")
        rows: dict[str, Any] = json.loads(done.stdout) if has_run else {}
        return Once(0 if has_run else done.returncode or 3, said, rows)

    def tidy(self) -> None:
        """Remove what runs that were killed left; none may be running."""
        for left in self.scratch.iterdir():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

    def _command(self) -> list[str]:
        command = [
            sys.executable,
            str(EXAMPLES / "streaming" / "pipeline.py"),
            str(self.home.folder),
        ]
        command += ["--master", self.master, "--every", "1"]
        java = f"{_JAVA} -Djava.io.tmpdir={self.scratch}"
        own = [f"spark.{name}.extraJavaOptions={java}" for name in ("driver", "executor")]
        # The check reads the plans of all batches.
        own.append("spark.sql.streaming.minBatchesToRetain=100000")
        own.append("spark.sql.shuffle.partitions=2")
        for setting in (*own, *self.settings):
            command += ["--conf", setting]
        return command

    def _environment(self) -> dict[str, str]:
        # For all that runs on this machine, also where the master is no local one.
        own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        shared = {**own, **os.environ, "SPARK_LOCAL_DIRS": str(self.scratch)}
        return {**shared, **self.environment}
