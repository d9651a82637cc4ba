"""Inputs for a pipeline: three producers, each a process, at the same time."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chaos.inputs.events import OfFile
from chaos.inputs.plan import INPUTS, SETTINGS_FILE, Settings
from deedbook import InvalidArgumentError

_TESTS: Final = Path(__file__).absolute().parents[2]
_SYNTHETIC_BEGIN: Final = 1_767_312_000
"""2026-01-02. With a lateness of at most a day, all events are within three days."""
_SYNTHETIC_SECONDS: Final = 2 * 86400
_README: Final = """What the inputs beside this directory hold, a line of JSON for each of them.

n is its number, sha256 of its bytes, id the event's, where its file and line, fault what is wrong
with it: json, text, object, schema, key, time, empty; at when it was acknowledged, in seconds since
1970, null where a kill came before the note. A line is noted once it is durable in its input.

The events are {events}.
"""


@dataclass(frozen=True)
class Generated:
    directory: str
    events: str
    lines: dict[str, int]
    complete: bool
    failures: dict[str, str]
    seconds: float


class Generation:
    def __init__(self, directory: Path, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._begun = time.monotonic()
        self.processes = {name: _started(directory, name) for name in INPUTS}
        """The processes by source. A test may kill them; `start` with ``resume`` continues."""

    def stop(self) -> None:
        for process in self.processes.values():
            assert process.stdin is not None
            if not process.stdin.closed:
                process.stdin.close()

    def wait(self) -> Generated:
        try:
            for process in self.processes.values():
                process.wait()
        except BaseException:
            self.stop()
            for process in self.processes.values():
                process.wait()
            self._close()
            raise
        lines: dict[str, int] = {}
        failures: dict[str, str] = {}
        complete = True
        for name, process in self.processes.items():
            assert process.stdout is not None and process.stderr is not None
            said, failed = process.stdout.read(), process.stderr.read().strip()
            if process.returncode == 0:
                found = json.loads(said)
                lines[name] = found["lines"]
                complete = complete and found["complete"]
            elif process.returncode < 0:
                failures[name] = f"killed by signal {-process.returncode}"
            else:
                failures[name] = failed.splitlines()[-1] if failed else "failed"
        self._close()
        return Generated(
            str(self._directory),
            self._settings.source or "synthetic",
            lines,
            complete and not failures,
            failures,
            round(time.monotonic() - self._begun, 3),
        )

    def _close(self) -> None:
        for process in self.processes.values():
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()


def start(
    directory: Path,
    *,
    events: int | None = None,
    seed: int = 0,
    rate: float | None = None,
    source: Path | None = None,
    resume: bool = False,
) -> Generation:
    """Start producers for the inputs in a directory; `Generation.wait` waits for the end.

    The producers send ``events`` lines of the file ``source``, or synthetic ones. With ``rate``
    they send about ``rate`` a second, otherwise as fast as possible. ``resume`` continues after a
    kill with the earlier settings.

    Raises `InvalidArgumentError`, and OSError.
    """
    file = directory / "expected" / SETTINGS_FILE
    if resume:
        return Generation(directory, Settings.load(file))
    settings = _settings(events, seed, rate, source)
    file.parent.mkdir(parents=True, exist_ok=True)
    settings.save(file)
    of = f"those of {settings.source}" if settings.source else "synthetic: no one wrote them"
    readme = _README.format(events=of)
    (file.parent / "README").write_text(readme, encoding="utf-8")
    return Generation(directory, settings)


def _settings(events: int | None, seed: int, rate: float | None, source: Path | None) -> Settings:
    there = events or 0 if source is None else len(OfFile(source))
    count = there if events is None else events
    if count > there:
        raise InvalidArgumentError(f"{count} events are asked for; {source} has {there}")
    path = None if source is None else str(source.absolute())
    if rate is None:
        begin, seconds = _SYNTHETIC_BEGIN, float(_SYNTHETIC_SECONDS)
    else:
        begin, seconds = int(time.time()), count / rate
    return Settings(count, seed, rate, path, begin, seconds)


def _started(directory: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "chaos.inputs.produce", str(directory.absolute()), name]
    pipe = subprocess.PIPE
    # In a new group, because Ctrl-C must not end the child in the middle: `stop` ends the child.
    return subprocess.Popen(
        command, cwd=_TESTS, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
