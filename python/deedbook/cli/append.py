"""``deedbook append``: lines in, deeds out, resumable and interruptible at every commit."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from typing import Any, Final

from deedbook import Book, Error
from deedbook.cli import wal
from deedbook.cli.failure import EXIT_INTERRUPTED, EXIT_OK, CliError, details
from deedbook.cli.lines import Batch, LineSource, why_not_json
from deedbook.cli.output import Output, count
from deedbook.cli.progress import Progress
from deedbook.cli.signals import Stop
from deedbook.formats import detect

RESUME_CHECK_DEEDS: Final = 1000
"""``--resume`` compares this many deeds at the end of the log with their lines."""
INVALID_SHOWN_MAX: Final = 100
"""``--skip-invalid --json`` names at most this many line numbers."""


def run(args: argparse.Namespace, out: Output) -> int:
    """Append the lines of ``args.file`` to the book at ``args.path``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the book; whatever was
    committed before stays, and is told in the JSON object.
    """
    if args.log == "wal" or (args.log is None and detect(args.path) == "wal"):
        return wal.run_append(args, out)
    if args.segment_bytes is not None or args.single_file:
        raise CliError("append: --segment-bytes and --single-file are for --log wal")
    with (
        LineSource.open(args.file, line_bytes_max=args.line_bytes_max) as source,
        Book.open(
            args.path,
            "a",
            durability=args.durability,
            recovery=args.recovery,
            epoch=args.epoch,
        ) as book,
    ):
        if source.is_file(os.path.join(book.path, "book.log")):
            raise CliError(f"{source.name} is the log of {book.path} itself")
        _tell_opening(book, source, out)
        job = _Job(args, out, book, source)
        try:
            with Stop() as stop:
                job.append_all(stop)
        except (CliError, Error) as error:
            if args.json:
                out.emit({"ok": False, **job.result(), "error": details(error)})
            elif job.appended:
                out.talk(job.summary())
            raise
        if args.json:
            out.emit({"ok": not stop.requested, **job.result()})
        else:
            out.talk(job.summary())
    return EXIT_INTERRUPTED if stop.requested else EXIT_OK


def _tell_opening(book: Book, source: LineSource, out: Output) -> None:
    """Say what opening cut, and that a terminal is read."""
    recovery = book.recovery
    if recovery.cut_deeds:
        out.talk(f"cut {count(recovery.cut_deeds, 'unacknowledged deed')}")
    elif recovery.cut_bytes and recovery.torn_bytes:
        out.talk(
            f"cut a torn tail of {count(recovery.torn_bytes, 'byte')} "
            f"behind byte {recovery.valid_end:,}"
        )
    if recovery.saved_to is not None:
        out.talk(f"what was cut is in {recovery.saved_to}")
    if source.is_terminal:
        out.talk("reading lines from the terminal; end with Ctrl-D")


def positive(text: str) -> int:
    """Parse a number from 1 up. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def epoch(text: str) -> int:
    """Parse the number of the last event before a book. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64 - 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not an event number")
    return int(text)


def durability(text: str) -> str:
    """Check a durability option. Raises `argparse.ArgumentTypeError`."""
    if not re.fullmatch(r"always|manual|none|(interval|bytes):[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not always, interval:MS, bytes:N, manual or none"
        )
    return text


class _Job:
    """One run of ``append``: what was skipped, appended, and acknowledged."""

    def __init__(
        self, args: argparse.Namespace, out: Output, book: Book, source: LineSource
    ) -> None:
        self._args = args
        self._out = out
        self._book = book
        self._source = source
        self._first = book.epoch + 1
        self._last = book.last
        self._to_skip = len(book) if args.resume else 0
        self._skipped = 0
        self._acked = book.durable_last
        self._interrupted = False
        self._invalid_lines: list[int] = []
        self._invalid = 0
        self.appended = 0
        """Deeds appended in this run."""

    def append_all(self, stop: Stop) -> None:
        """Append every line, a commit for each batch; return at an edge after a stop."""
        source = self._source
        with Progress("append", source.total_bytes, enabled=not self._args.quiet) as progress:
            expected = self._deeds_to_compare()
            for batch in source.batches(self._args.batch, stop):
                self._take(batch, expected)
                progress.update(source.bytes_read, note=count(self.appended, "deed"))
        self._interrupted = stop.requested
        if not stop.requested and self._skipped < self._to_skip:
            raise CliError(
                f"{source.name} has {count(self._skipped, 'line')}, but "
                f"{self._book.path} already holds {count(self._to_skip, 'deed')}: "
                "it was not made from this input"
            )
        if self._args.durability not in ("always", "none"):
            self._book.sync()
            self._acknowledge()

    def result(self) -> dict[str, Any]:
        """The run in numbers, ready for JSON."""
        return {
            "path": self._book.path,
            "appended": self.appended,
            "skipped": self._skipped,
            "invalid_lines": self._invalid,
            "invalid_at": self._invalid_lines,
            "last_event": self._last,
            "durable_event": self._book.durable_last,
            "interrupted": self._interrupted,
        }

    def summary(self) -> str:
        """The run in one line for people."""
        text = "interrupted; " if self._interrupted else ""
        text += f"appended {count(self.appended, 'deed')}"
        if self.appended:
            text += f" (events {self._last - self.appended + 1}..{self._last})"
        if self._skipped:
            text += f", {count(self._skipped, 'line')} already there"
        if self._invalid:
            shown = ", ".join(map(str, self._invalid_lines[:5]))
            more = ", ..." if self._invalid > 5 else ""
            text += f", skipped {count(self._invalid, 'invalid line')} ({shown}{more})"
        durable = self._book.durable_last
        if durable is not None and durable == self._last:
            return f"{text}; all durable"
        return f"{text}; durable through event {durable or self._first - 1}"

    def _take(self, batch: Batch, expected: Iterator[tuple[int, bytes]]) -> None:
        lines: list[bytes] = []
        problem: CliError | None = None
        for number, line in enumerate(batch.lines, batch.first_line):
            present = self._skipped < self._to_skip
            # A line that is in the log was checked when it got there, unless such are not counted.
            if self._args.validate and (not present or self._args.skip_invalid):
                reason = why_not_json(line)
                if reason is not None and self._args.skip_invalid:
                    self._note_invalid(number)
                    continue
                if reason is not None:
                    problem = CliError(
                        f"line {number} of {self._source.name} is not JSON: {reason}",
                        line=number,
                    )
                    break
            if present:
                self._skip(number, line, expected)
            else:
                lines.append(line)
        if lines:
            self._commit(lines)
        if problem is not None:
            raise problem

    def _commit(self, lines: list[bytes]) -> None:
        """Append lines as one batch: all of them, or an error."""
        events = self._book.append_batch(lines, event=self._last + 1)
        self._last = events[-1]
        self.appended += len(lines)
        self._acknowledge()

    def _acknowledge(self) -> None:
        durable = self._book.durable_last
        if self._args.acks and durable is not None and durable != self._acked:
            self._out.line(str(durable))
            self._out.flush()
        self._acked = durable

    def _note_invalid(self, number: int) -> None:
        self._invalid += 1
        if len(self._invalid_lines) < INVALID_SHOWN_MAX:
            self._invalid_lines.append(number)

    def _deeds_to_compare(self) -> Iterator[tuple[int, bytes]]:
        """The deeds at the end of the log that ``--resume`` compares, with their positions."""
        if self._to_skip == 0:
            return
        start = max(self._to_skip - RESUME_CHECK_DEEDS, 0)
        jams = self._book.jams(self._first + start, self._first + self._to_skip)
        yield from enumerate(jams, start)

    def _skip(self, number: int, line: bytes, expected: Iterator[tuple[int, bytes]]) -> None:
        position = self._skipped
        if position >= self._to_skip - RESUME_CHECK_DEEDS:
            found = next(expected, None)
            if found != (position, line):
                raise CliError(
                    f"line {number} of {self._source.name} differs from event "
                    f"{self._first + position} of {self._book.path}: "
                    "it was not made from this input",
                    line=number,
                    event=self._first + position,
                )
        self._skipped += 1
