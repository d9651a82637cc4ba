"""A producer: the process that fills one input of a pipeline, and notes the lines.

Run as ``python -m chaos.inputs.produce DIRECTORY NAME``. A producer ends after its last line. If
standard input closes, as after the death of the parent, a producer ends after the current group. On
standard output it prints a line of JSON: lines sent by this run, and whether all are sent.

The note of a line follows the acknowledgement, so a note without a line means a loss. After a kill,
the next run notes the lines without a note, and compares every line with the plan.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from chaos.inputs.events import Line
from chaos.inputs.notes import JsonLines, Note, digest, expected_file, lines_of_files, notes_of
from chaos.inputs.plan import INPUTS, SETTINGS_FILE, Settings, plan
from deedbook import Error, Ledger, LockedError, MissingError, Wal
from deedbook._show.text import escape_steering
from deedbook._system.durable import sync_folder

Due = tuple[int, Line]

_LOCKED_SECONDS: Final = 10.0
_FINISH_SECONDS: Final = 2.0


class ProducerError(Exception):
    """An input lacks an acknowledged record, or has another one."""


class Input(Protocol):
    group_max: int
    linger_seconds: float
    """In a live run, the wait for more lines after the first."""

    def held(self) -> Iterator[tuple[bytes, str | None]]:
        """The lines of the input, in order, each with its place. Only before the first `add`."""

    def add(self, lines: Sequence[bytes]) -> list[str | None]:
        """Append durably; returns the places."""

    def close(self) -> None:
        """Finish the input."""


class Files:
    group_max = 1000
    linger_seconds = 0.5

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        for left in path.glob(".*.new"):
            left.unlink()
        self._path = path
        self._last = max((int(one.name.partition(".")[0]) for one in path.iterdir()), default=0)

    def held(self) -> Iterator[tuple[bytes, str | None]]:
        return ((line, where) for where, line in lines_of_files(self._path))

    def add(self, lines: Sequence[bytes]) -> list[str | None]:
        self._last += 1
        name = f"{self._last:06}.jsonl"
        data = b"".join(line + b"\n" for line in lines)
        new = self._path / f".{name}.new"
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._path / name)
        sync_folder(self._path)
        return [f"{name}:{number}" for number in range(1, len(lines) + 1)]

    def close(self) -> None:
        pass


class Application:
    group_max = 100
    linger_seconds = 0.05

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        ends = time.monotonic() + _LOCKED_SECONDS
        while True:
            try:
                self._wal = Wal.open(path, "a", durability="always", segment_bytes=8 << 20)
                break
            except LockedError:  # held by a process that is about to die
                if time.monotonic() > ends:
                    raise
                time.sleep(0.1)

    def held(self) -> Iterator[tuple[bytes, str | None]]:
        return ((payload, None) for payload in self._wal.payloads())

    def add(self, lines: Sequence[bytes]) -> list[str | None]:
        self._wal.append_many(lines)
        return [None] * len(lines)

    def close(self) -> None:
        self._wal.close()


class Sender:
    """A sender's ledger. No record is removed, because a check must read all of them."""

    group_max = 50
    linger_seconds = 0.02

    def __init__(self, path: Path) -> None:
        # Opened first, because a reader opened later would not read the files of this process.
        try:
            self._before: Ledger | None = Ledger.open(path, base="events")
        except MissingError:
            self._before = None
        self._ledger = Ledger.open(path, "a", durability="always", batch_bytes=200_000)
        self._finished = time.monotonic()

    def held(self) -> Iterator[tuple[bytes, str | None]]:
        if self._before is not None:
            yield from ((payload, None) for payload in self._before.payloads())

    def add(self, lines: Sequence[bytes]) -> list[str | None]:
        self._ledger.append_many(lines, atomic=True)
        if time.monotonic() - self._finished > _FINISH_SECONDS:
            # A sender does the same: a fetch finishes the file, and then others can read the file.
            self._ledger.fetch(count=1)
            self._finished = time.monotonic()
        return [None] * len(lines)

    def close(self) -> None:
        self._ledger.close()


_OPENERS: Final[dict[str, Callable[[Path], Input]]] = {
    "files": Files,
    "orders": Application,
    "spool": Sender,
}


def produce(directory: Path, name: str, stop: threading.Event) -> tuple[int, bool]:
    """Fill an input; returns the number of added lines, and whether all are sent.

    Raises `ProducerError` for an input without its acknowledged records, `deedbook.Error`, OSError.
    """
    settings = Settings.load(directory / "expected" / SETTINGS_FILE)
    expected = expected_file(directory, name)
    target: Input = _OPENERS[name](directory / INPUTS[name])
    try:
        with JsonLines(expected) as notes:
            rest = plan(settings, name)
            there = _settle(target, rest, expected, notes)
            added = 0
            for group in _groups(rest, target, settings.rate, stop):
                places = target.add([line.data for line in group])
                acknowledged = round(time.time(), 3)
                first = there + added + 1
                added += len(group)
                notes.add_notes(
                    [
                        Note.of(first + more, line, where, acknowledged)
                        for more, (line, where) in enumerate(zip(group, places, strict=True))
                    ]
                )
    finally:
        target.close()
    return added, next(rest, None) is None and not stop.is_set()


def _settle(target: Input, rest: Iterator[Due], expected: Path, notes: JsonLines) -> int:
    """Note the lines without a note; returns the number of lines in the input."""
    noted = list(notes_of(expected))
    there = 0
    without: list[Note] = []
    for data, where in target.held():
        _, line = next(rest, (0, None))
        if line is None or line.data != data:
            raise ProducerError(f"{expected}: record {there + 1} is not the one that was sent")
        there += 1
        if there > len(noted):
            without.append(Note.of(there, line, where, None))
        elif (noted[there - 1].sha256, noted[there - 1].n) != (digest(data), there):
            raise ProducerError(f"{expected}: line {there} is not of the record that was sent")
    if there < len(noted):
        lost = len(noted) - there
        raise ProducerError(f"{expected}: {lost} records were acknowledged and are not there")
    notes.add_notes(without)
    return there


def _groups(
    rest: Iterator[Due], target: Input, rate: float | None, stop: threading.Event
) -> Iterator[list[Line]]:
    """Groups of lines, one per append. In a live run a line is due with its event."""
    group: list[Line] = []
    begun: float | None = None
    ends = 0.0
    for number, line in rest:
        if rate is not None:
            begun = time.monotonic() - number / rate if begun is None else begun
            due = begun + number / rate
            if group and (due > ends or len(group) == target.group_max):
                yield group
                group = []
            stop.wait(max(0.0, due - time.monotonic()))
            ends = ends if group else time.monotonic() + target.linger_seconds
        elif len(group) == target.group_max:
            yield group
            group = []
        if stop.is_set():
            return
        group.append(line)
    if group:
        yield group


def _watch_parent(stop: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    stop.set()


def main(arguments: list[str]) -> int:
    directory, name = arguments
    stop = threading.Event()
    threading.Thread(target=_watch_parent, args=(stop,), daemon=True).start()
    try:
        lines, complete = produce(Path(directory), name, stop)
    except (ProducerError, Error, OSError) as error:
        print(escape_steering(f"{name}: {error}"), file=sys.stderr)
        return 1
    print(json.dumps({"lines": lines, "complete": complete}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
