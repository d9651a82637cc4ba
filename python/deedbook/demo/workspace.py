"""What the parts of the demo share: its errors, its checks and its output directory."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deedbook._text import escape_steering

JAVA_MIN = 17
MODULES = ("pyspark", "pyarrow", "matplotlib")

MARKER = ".deedbook-demo"
MARKER_TEXT = "Made by `python -m deedbook demo`, which may remove it again.\n"


class DemoError(Exception):
    """The demo cannot go on; the text is all that the user needs. ``code`` is the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Check:
    """One statement about the log that was put to the test."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Workspace:
    """The output directory and the places in it."""

    root: Path

    @property
    def generated(self) -> Path:
        """The generated input, where none is given."""
        return self.root / "input.jsonl"

    @property
    def hashes(self) -> Path:
        """Parquet file with number, length and SHA-256 of every input line."""
        return self.root / "input-hashes.parquet"

    @property
    def log(self) -> Path:
        """The book."""
        return self.root / "log"

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
        """What the JVM and its workers wrote to their standard error."""
        return self.root / "spark.log"

    @property
    def report(self) -> Path:
        """The report; `.json`, `.md`, `.png`, `.html` are appended by ``with_suffix``."""
        return self.root / "report"

    def made(self) -> list[Path]:
        """Everything that a run makes: the only names that are ever removed."""
        return [
            self.generated,
            self.hashes,
            self.log,
            self.by_type,
            self.by_type_and_time,
            self.spark_log,
            *(self.report.with_suffix(suffix) for suffix in (".json", ".md", ".png", ".html")),
        ]


def prepare(root: Path, source: Path | None) -> Workspace:
    """Make the output directory, or clear the output of a former run.

    Raises `DemoError` where the directory holds anything but a former output, or where the input
    is one of the files that would be cleared.
    """
    space = Workspace(root)
    if root.exists() and not root.is_dir():
        raise DemoError(f"{root} is not a directory", 2)
    if root.is_dir() and any(root.iterdir()) and not (root / MARKER).is_file():
        raise DemoError(f"{root} is not a former output of the demo; choose another --out", 2)
    if source is not None:
        real = source.resolve()
        for path in space.made():
            if path.exists() and (real == path.resolve() or path.resolve() in real.parents):
                raise DemoError(f"the input {source} is in what a new run clears", 2)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARKER).write_text(MARKER_TEXT)
    for path in space.made():
        remove(path)
    return space


def remove(path: Path) -> None:
    """Remove a file, a link or a tree, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require(modules: Sequence[str] = MODULES) -> None:
    """Raise `DemoError` (exit code 2) unless all that the demo needs is installed."""
    require_kill()
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise DemoError(f"missing: {', '.join(missing)} (pip install 'deedbook[demo]')", 2)
    version = java_version()
    if version is None:
        raise DemoError(f"missing: java, version {JAVA_MIN} or newer (Spark runs on it)", 2)
    if version < JAVA_MIN:
        raise DemoError(f"Spark needs Java {JAVA_MIN} or newer, this one is {version}", 2)


def require_kill() -> None:
    """Raise `DemoError` (exit code 2) where a process cannot be killed without a warning."""
    if not hasattr(signal, "SIGKILL"):
        raise DemoError("this system has no SIGKILL, and the demo is about surviving it", 2)


def java_version() -> int | None:
    """Major version of the Java that Spark will take (0 where it does not say), or None."""
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


def put(text: str, end: str = "\n") -> None:
    """Print at once. What cannot be printed is escaped: the name of a file need not be UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = escape_steering(text).encode(encoding, "backslashreplace")
    print(shown.decode(encoding), end=end, flush=True)


def put_json(text: str) -> None:
    """Print an object as it is, or with JSON's own escapes where the output cannot have it so."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=1) + "\n"
    put(text, end="")


def save(path: Path, text: str) -> None:
    """Write a file of the report; of a name in it, what is not UTF-8 is escaped."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def size(nbytes: int) -> str:
    """Bytes with a decimal unit and three digits or so."""
    value, unit = float(nbytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(value, 1) < 1000:  # as it is shown
            break
        value, unit = value / 1000, larger
    return f"{nbytes:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def is_from_spark(error: Exception) -> bool:
    """Whether an error comes from Spark or from its bridge to Python, which has no types."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def reason(error: Exception) -> str:
    """The line of an error of Spark, or of its Python worker, that says what is wrong."""
    lines = [line.strip(" :").removeprefix("Caused by: ") for line in str(error).splitlines()]
    named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (named[-1] if named else next(filter(None, lines), type(error).__name__))[:400]
