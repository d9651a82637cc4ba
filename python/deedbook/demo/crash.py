"""Write the log with a process that is killed, and resume it until all is written.

What is checked after each kill: every event that the writer acknowledged is in the log, and every
event that is in the log is, byte for byte, the input line of its number.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import deedbook
from deedbook.demo.generate import Source, read_lines
from deedbook.demo.workspace import Check, DemoError, remove

KILLS = 2
BATCH_LINES_MAX = 500
BATCHES_MIN = 100
LINES_MIN = 100
ATTEMPTS = 6
# Each kill comes after a count drawn from its part of this stretch of the input.
KILL_FROM, KILL_TO = 1 / 3, 2 / 3

Say = Callable[[str], None]


@dataclass(frozen=True)
class Kill:
    """One SIGKILL in the middle of writing, and the state of the log after it."""

    number: int
    after_events: int
    """The count of acknowledged events that was waited for."""
    delay_ms: float
    """Wait after that count, a random part of the time that a batch takes."""
    returncode: int
    resumed_at: int
    """Last event that this writer found when it began."""
    acknowledged: int
    """Last event that it acknowledged before it died."""
    last: int
    """Last event in the log when it was opened again."""
    equal: bool
    """Whether all events found are byte-equal to their lines."""
    recovery: dict[str, Any]
    """The report of opening the log for writing."""

    @property
    def kept(self) -> bool:
        """Whether every acknowledged event is there."""
        return self.last >= self.acknowledged


@dataclass(frozen=True)
class Writing:
    """The whole of the writing, from the first event to the close."""

    batch: int
    attempts: int
    kills: list[Kill]
    acknowledged: int
    seconds: float


class Missed(Exception):
    """The writer was done before the kill reached it."""


def write_with_kills(log: Path, source: Source, seed: int, say: Say, kills: int = KILLS) -> Writing:
    """Write the whole input; kill the writer ``kills`` times on the way.

    An input so small that a writer is done before the kill lands is written again from the
    start, in smaller batches. Raises `DemoError` where that does not help either.
    """
    if source.lines < LINES_MIN:
        raise DemoError(
            f"the input has {source.lines} lines; at least {LINES_MIN} are needed to kill a "
            "writer in the middle of them",
            2,
        )
    batch = max(1, min(BATCH_LINES_MAX, source.lines // BATCHES_MIN))
    # What each recovery found is printed below; Python would print it a second time where nothing
    # handles its log records.
    logging.getLogger("deedbook").addHandler(logging.NullHandler())
    for attempt in range(1, ATTEMPTS + 1):
        remove(log)
        # Not before the result is sure: what a failed attempt says would only confuse.
        words: list[str] = []
        try:
            writing = _attempt(log, source, batch, attempt, Random(seed), kills, words.append)
        except Missed:
            batch = max(1, batch // 2)
            continue
        for word in words:
            say(word)
        return writing
    raise DemoError(f"the writer was done before the kill landed, {ATTEMPTS} times in a row")


def _attempt(
    log: Path, source: Source, batch: int, attempt: int, random: Random, kills: int, say: Say
) -> Writing:
    began = time.monotonic()
    done: list[Kill] = []
    part = source.lines * (KILL_TO - KILL_FROM) / max(1, kills)
    for number in range(1, kills + 1):
        low = source.lines * KILL_FROM + part * (number - 1)
        target = random.randrange(int(low), max(int(low) + 1, int(low + part)))
        kill = _kill_once(log, source, batch, number, target, random.random())
        done.append(kill)
        say(
            f"kill {number}: SIGKILL with {kill.acknowledged:,} events acknowledged, "
            f"exit code {kill.returncode}"
        )
        say(f"  reopened: {tell_recovery(kill.recovery)}")
        say(
            f"  last event {kill.last:,}, {kill.last - kill.acknowledged:+,} to the acknowledged; "
            f"{'every event equals its line' if kill.equal else 'EVENTS DIFFER FROM THE INPUT'}"
        )
    acknowledged = _finish(log, source, batch)
    say(f"writer {kills + 1}: went on and closed the log at event {acknowledged:,}")
    return Writing(batch, attempt, done, acknowledged, time.monotonic() - began)


def _start(log: Path, source: Source, batch: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deedbook.demo.writer"]
    arguments = [str(log), str(source.path), str(source.lines), str(batch)]
    return subprocess.Popen(
        command + arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _kill_once(
    log: Path, source: Source, batch: int, number: int, target: int, part: float
) -> Kill:
    """Start the writer, wait for ``target`` acknowledged events and a bit, kill it, look."""
    with _start(log, source, batch) as writer:
        try:
            assert writer.stdout is not None
            if not (line := writer.stdout.readline()):
                writer.wait()
                raise DemoError(f"the writer failed: {_last_words(writer)}")
            resumed_at = acknowledged = int(line)
            began = time.monotonic()
            batches = 0
            while acknowledged < target and (line := writer.stdout.readline()).strip().isdigit():
                acknowledged = int(line)
                batches += 1
            # A part of the time of a batch, so that the kill meets appending as well as syncing.
            delay = part * (time.monotonic() - began) / max(1, batches)
            time.sleep(delay)
            if writer.poll() is None:
                writer.send_signal(signal.SIGKILL)
            # What it said before it died counts: it acknowledged that, too.
            words = writer.stdout.read().split()
            returncode = writer.wait()
        finally:
            writer.kill()  # does nothing to a process that is gone
        if returncode == 0:
            raise Missed
        if returncode != -signal.SIGKILL:
            raise DemoError(f"the writer failed: {_last_words(writer)}")
    if words and words[-1] == b"closed":
        raise Missed
    acknowledged = int(words[-1]) if words else acknowledged
    if acknowledged >= source.lines:
        raise Missed
    last, equal, recovery = look(log, source)
    return Kill(
        number, target, delay * 1e3, returncode, resumed_at, acknowledged, last, equal, recovery
    )


def _finish(log: Path, source: Source, batch: int) -> int:
    """Let a writer do the rest undisturbed; return the last event it acknowledged."""
    with _start(log, source, batch) as writer:
        try:
            assert writer.stdout is not None
            words = writer.stdout.read().split()
            returncode = writer.wait()
        finally:
            writer.kill()
        if returncode != 0 or words[-1:] != [b"closed"]:
            raise DemoError(f"the writer failed: {_last_words(writer)}")
    return int(words[-2])


def _last_words(writer: subprocess.Popen[bytes]) -> str:
    """The last line of the writer's standard error."""
    assert writer.stderr is not None
    lines = writer.stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {writer.returncode}"


def look(log: Path, source: Source) -> tuple[int, bool, dict[str, Any]]:
    """Open the log for writing, as its next writer would, and compare it with the input.

    Returns the last event, whether all events equal their lines, and the recovery report.
    """
    with deedbook.Book.open(log, "a", durability="manual") as book:
        last = book.last
        equal = book.bounds in ((1, last), None) and last <= source.lines
        compared = 0
        # Unequal lengths show in `compared`: strict=True would raise instead.
        for jam, line in zip(book.jams(), read_lines(source.path, 1, last + 1), strict=False):
            equal = equal and jam == line
            compared += 1
        return last, equal and compared == last, book.recovery.to_dict()


def tell_recovery(report: dict[str, Any]) -> str:
    """The recovery report in a line."""
    read = f"{report['scanned_bytes']:,} bytes read ({report['source']}, mark {report['mark']})"
    torn, unwritten = report["torn_bytes"], report["cut_bytes"] - report["torn_bytes"]
    return f"{report['verdict']}; {read}; cut {torn:,} torn and {unwritten:,} unwritten bytes"


def checks_of(writing: Writing, source: Source) -> list[Check]:
    """The checks that the writing itself allows; Spark makes the others."""
    checks = []
    for kill in writing.kills:
        name = f"kill {kill.number}"
        checks += [
            Check(
                f"{name} landed while the writer worked",
                kill.returncode == -9 and kill.acknowledged < source.lines,
                f"exit code {kill.returncode} at {kill.acknowledged:,} of {source.lines:,}",
            ),
            Check(
                f"{name} lost nothing acknowledged",
                kill.kept,
                f"acknowledged {kill.acknowledged:,}, in the log {kill.last:,}",
            ),
            Check(
                f"{name} left only whole input lines",
                kill.equal,
                f"{kill.last:,} events compared byte by byte",
            ),
        ]
    return [
        *checks,
        Check(
            "the writer acknowledged all lines",
            writing.acknowledged == source.lines,
            f"{writing.acknowledged:,} of {source.lines:,}",
        ),
    ]


def verified(log: Path, source: Source) -> Check:
    """The core's own full check of the finished log."""
    found = deedbook.Book.verify(log)
    good = found.ok and found.bounds == (1, source.lines) and not found.lost_acknowledged
    detail = f"{found.verdict}, {found.records:,} deeds in {found.bytes:,} bytes"
    return Check("deedbook verify finds the log intact", good, detail)
