"""Runs of a pipeline, each in a process, as in production."""

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

_ONCE_SECONDS: Final = 600.0
_LINE_MAX: Final = 400
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A run lives for seconds, too short for a slow compiler."""


class TrialError(Exception):
    """The pipeline or a producer failed without a kill."""


@dataclass(frozen=True)
class Once:
    code: int
    said: str
    rows: Mapping[str, int]
    """Rows read, by source, and of ``silver``; empty after a failure."""

    @property
    def line(self) -> str:
        lines = self.said.split("\n")
        return next((line.strip()[-_LINE_MAX:] for line in reversed(lines) if line.strip()), "")


@dataclass(frozen=True)
class Runs:
    home: Home
    master: str
    settings: tuple[str, ...]
    """Settings of Spark, ``KEY=VALUE``."""
    scratch: Path
    """Spark's directory for temporary files. The directory exists, and its path is short enough for
    sockets. `tidy` deletes the files of killed runs."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.home.log

    def begun(self) -> int:
        return self.log.read_bytes().count(b" queries run") if self.log.exists() else 0

    def start(self) -> subprocess.Popen[bytes]:
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
        """Run until all present input is read. Raises `TrialError` if the run does not end."""
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
        # A run with quarantined lines exits with 1, but has read all input.
        has_run = done.returncode in (0, 1) and done.stdout.startswith("{")
        rows: dict[str, Any] = json.loads(done.stdout) if has_run else {}
        return Once(0 if has_run else done.returncode or 3, said, rows)

    def tidy(self) -> None:
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
        # For all processes on this machine, also with a remote master.
        own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        shared = {**own, **os.environ, "SPARK_LOCAL_DIRS": str(self.scratch)}
        return {**shared, **self.environment}
