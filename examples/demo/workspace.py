"""The needs of the demo, and the places of the demo's files."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deedbook._cli import first_minute
from deedbook._cli.first_minute import DemoError

JAVA_MIN = 17
MODULES = ("pyspark", "pyarrow", "matplotlib")


@dataclass(frozen=True)
class Places(first_minute.Workspace):
    """The output directory and the places in it."""

    @property
    def hashes(self) -> Path:
        """Parquet file with number, length and SHA-256 of every input line."""
        return self.root / "input-hashes.parquet"

    @property
    def by_type(self) -> Path:
        """Parquet directory: events and bytes by type."""
        return self.root / "by-type.parquet"

    @property
    def by_type_and_time(self) -> Path:
        """Parquet directory: events and bytes by type and by time."""
        return self.root / "by-type-and-time.parquet"

    @property
    def spark_log(self) -> Path:
        """The standard error of the JVM and the workers."""
        return self.root / "spark.log"

    def made(self) -> list[Path]:
        """All files made by a run: the demo removes no other names."""
        pictures = (self.report.with_suffix(suffix) for suffix in (".md", ".png"))
        spark = [self.hashes, self.by_type, self.by_type_and_time, self.spark_log]
        return [*super().made(), *spark, *pictures]


def require(modules: Sequence[str] = MODULES) -> None:
    """Raise `DemoError` (exit code 2) if a package or Java is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise DemoError(
            f"missing: {', '.join(missing)} (pip install 'deedbook[spark]' matplotlib)", 2
        )
    version = java_version()
    if version is None:
        raise DemoError(f"missing: java, version {JAVA_MIN} or newer (Spark runs on it)", 2)
    if version < JAVA_MIN:
        raise DemoError(f"Spark needs Java {JAVA_MIN} or newer, this one is {version}", 2)


def java_version() -> int | None:
    """Major version of Spark's Java (0 if unknown), or None without Java."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    try:
        run = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Before Java 9 the major version was the second number: 1.8.
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    if run.returncode != 0:
        return None
    return int(found[1]) if found else 0


def is_from_spark(error: Exception) -> bool:
    """Whether an error comes from Spark or from the untyped bridge to Python."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def reason(error: Exception) -> str:
    """The line with the reason, in an error of Spark or of a Python worker."""
    lines = [line.strip(" :").removeprefix("Caused by: ") for line in str(error).splitlines()]
    named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (named[-1] if named else next(filter(None, lines), type(error).__name__))[:400]
