"""``deedbook append``: lines in, a log out, interruptible at every commit; books also resumable."""

from __future__ import annotations

import argparse
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final

from deedbook import Book, Error, Wal
from deedbook.cli.failure import EXIT_INTERRUPTED, EXIT_OK, CliError, details
from deedbook.cli.lines import Batch, LineSource, why_not_json
from deedbook.cli.output import Output, count
from deedbook.cli.progress import Progress
from deedbook.cli.signals import Stop
from deedbook.formats import Format, detect

RESUME_CHECK_DEEDS: Final = 1000
"""``--resume`` compares this many deeds at the end of the log with their lines."""
INVALID_SHOWN_MAX: Final = 100
"""``--skip-invalid --json`` names at most this many line numbers."""


def run(args: argparse.Namespace, out: Output) -> int:
    """Append the lines of ``args.file`` to the log at ``args.path``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the log; whatever was
    committed before stays, and is told in the JSON object.
    """
    log_format = _format(args)
    with (
        LineSource.open(args.file, line_bytes_max=args.line_bytes_max) as source,
        _open(args, log_format) as log,
    ):
        files = log.segment_paths if isinstance(log, Wal) else [os.path.join(log.path, "book.log")]
        if any(map(source.is_file, files)):
            raise CliError(f"{source.name} is a file of {log.path} itself")
        _tell_opening(log, source, out)
        job = (
            _WalJob(args, out, log, source)
            if isinstance(log, Wal)
            else _BookJob(args, out, log, source)
        )
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


def _format(args: argparse.Namespace) -> Format:
    """The format of what is there, else the one asked for. Checks the options against it."""
    there: Format | None = detect(args.path)
    asked: Format | None = args.log
    if there is not None and asked is not None and there != asked:
        raise CliError(f"append: {args.path} holds a {there}, --log says {asked}", path=args.path)
    found = there or asked or "book"
    if found == "book" and (args.segment_bytes is not None or args.single_file):
        raise CliError("append: --segment-bytes and --single-file are for --log wal")
    if found == "wal" and args.epoch is not None:
        raise CliError("append: --epoch is for books")
    if found == "wal" and args.resume:
        raise CliError(
            "append: --resume is for books, which number their events. A WAL tells how many records"
            " it has in 'deedbook info --json', and --acks the byte up to which they are durable"
        )
    return found


def _open(args: argparse.Namespace, log_format: Format) -> Book | Wal:
    if log_format == "wal":
        return Wal.open(
            args.path,
            "a",
            durability=args.durability,
            recovery=args.recovery,
            segment_bytes=args.segment_bytes,
            single_file=args.single_file,
        )
    return Book.open(
        args.path,
        "a",
        durability=args.durability,
        recovery=args.recovery,
        epoch=args.epoch,
    )


def _tell_opening(log: Book | Wal, source: LineSource, out: Output) -> None:
    """Say what opening cut, and that a terminal is read."""
    recovery = log.recovery
    if isinstance(log, Wal):
        cut = count(log.recovery.cut_records, "unacknowledged record")
        any_cut = log.recovery.cut_records > 0
    else:
        cut = count(log.recovery.cut_deeds, "unacknowledged deed")
        any_cut = log.recovery.cut_deeds > 0
    if any_cut:
        out.talk(f"cut {cut}")
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


class _Job(ABC):
    """One run of ``append``: what was left out, appended, and acknowledged."""

    noun: str
    """What a line becomes."""

    def __init__(
        self, args: argparse.Namespace, out: Output, log: Book | Wal, source: LineSource
    ) -> None:
        self._args = args
        self._out = out
        self._log = log
        self._source = source
        self._acked = self._durable()
        self._interrupted = False
        self._invalid_lines: list[int] = []
        self._invalid = 0
        self.appended = 0
        """Lines appended in this run."""

    def append_all(self, stop: Stop) -> None:
        """Append every line, a commit for each batch; return at an edge after a stop."""
        source = self._source
        with Progress("append", source.total_bytes, enabled=not self._args.quiet) as progress:
            for batch in source.batches(self._args.batch, stop):
                self._take(batch)
                progress.update(source.bytes_read, note=count(self.appended, self.noun))
        self._interrupted = stop.requested
        if not stop.requested and (problem := self._end_problem()) is not None:
            raise problem
        if self._args.durability not in ("always", "none"):
            self._log.sync()
            self._acknowledge()

    def result(self) -> dict[str, Any]:
        """The run in numbers, ready for JSON."""
        return {
            "path": self._log.path,
            "appended": self.appended,
            "invalid_lines": self._invalid,
            "invalid_at": self._invalid_lines,
            "interrupted": self._interrupted,
            **self._positions(),
        }

    def summary(self) -> str:
        """The run in one line for people."""
        text = "interrupted; " if self._interrupted else ""
        text += f"appended {count(self.appended, self.noun)}{self._where()}"
        if self._invalid:
            shown = ", ".join(map(str, self._invalid_lines[:5]))
            more = ", ..." if self._invalid > 5 else ""
            text += f", skipped {count(self._invalid, 'invalid line')} ({shown}{more})"
        return f"{text}; {self._how_durable()}"

    def _take(self, batch: Batch) -> None:
        lines: list[bytes] = []
        problem: CliError | None = None
        for number, line in enumerate(batch.lines, batch.first_line):
            present = self._is_present()
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
                self._skip(number, line)
            else:
                lines.append(line)
        if lines:
            self._commit(lines)
            self.appended += len(lines)
            self._acknowledge()
        if problem is not None:
            raise problem

    def _acknowledge(self) -> None:
        durable = self._durable()
        if self._args.acks and durable is not None and durable != self._acked:
            self._out.line(str(durable))
            self._out.flush()
        self._acked = durable

    def _note_invalid(self, number: int) -> None:
        self._invalid += 1
        if len(self._invalid_lines) < INVALID_SHOWN_MAX:
            self._invalid_lines.append(number)

    @abstractmethod
    def _commit(self, lines: list[bytes]) -> None:
        """Append lines as one batch: all of them, or an error."""

    @abstractmethod
    def _durable(self) -> int | None:
        """What ``--acks`` tells: up to where the log is durable."""

    @abstractmethod
    def _positions(self) -> dict[str, Any]: ...

    @abstractmethod
    def _where(self) -> str:
        """For the summary: where the lines are."""

    @abstractmethod
    def _how_durable(self) -> str: ...

    def _is_present(self) -> bool:
        """Whether the next line is in the log already."""
        return False

    def _skip(self, number: int, line: bytes) -> None:
        """Pass over a line that is there, or `CliError` if another one is."""
        raise AssertionError("no line is present")

    def _end_problem(self) -> CliError | None:
        """What is wrong with an input that ended here."""
        return None


class _BookJob(_Job):
    """Lines as deeds, which have numbers: what is there can be skipped."""

    noun = "deed"

    def __init__(
        self, args: argparse.Namespace, out: Output, book: Book, source: LineSource
    ) -> None:
        self._book = book
        self._first = book.epoch + 1
        self._last = book.last
        self._to_skip = len(book) if args.resume else 0
        self._skipped = 0
        self._expected = self._deeds_to_compare()
        super().__init__(args, out, book, source)

    def _commit(self, lines: list[bytes]) -> None:
        self._last = self._book.append_batch(lines, event=self._last + 1)[-1]

    def _durable(self) -> int | None:
        return self._book.durable_last

    def _positions(self) -> dict[str, Any]:
        return {
            "skipped": self._skipped,
            "last_event": self._last,
            "durable_event": self._book.durable_last,
        }

    def _where(self) -> str:
        text = f" (events {self._last - self.appended + 1}..{self._last})" if self.appended else ""
        if self._skipped:
            text += f", {count(self._skipped, 'line')} already there"
        return text

    def _how_durable(self) -> str:
        durable = self._book.durable_last
        if durable is not None and durable == self._last:
            return "all durable"
        return f"durable through event {durable or self._first - 1}"

    def _is_present(self) -> bool:
        return self._skipped < self._to_skip

    def _end_problem(self) -> CliError | None:
        if self._skipped >= self._to_skip:
            return None
        return CliError(
            f"{self._source.name} has {count(self._skipped, 'line')}, but "
            f"{self._book.path} already holds {count(self._to_skip, 'deed')}: "
            "it was not made from this input"
        )

    def _deeds_to_compare(self) -> Iterator[tuple[int, bytes]]:
        """The deeds at the end of the log that ``--resume`` compares, with their positions."""
        if self._to_skip == 0:
            return
        start = max(self._to_skip - RESUME_CHECK_DEEDS, 0)
        jams = self._book.jams(self._first + start, self._first + self._to_skip)
        yield from enumerate(jams, start)

    def _skip(self, number: int, line: bytes) -> None:
        position = self._skipped
        if position >= self._to_skip - RESUME_CHECK_DEEDS:
            found = next(self._expected, None)
            if found != (position, line):
                raise CliError(
                    f"line {number} of {self._source.name} differs from event "
                    f"{self._first + position} of {self._book.path}: "
                    "it was not made from this input",
                    line=number,
                    event=self._first + position,
                )
        self._skipped += 1


class _WalJob(_Job):
    """Lines as records, which are known by the byte at which they begin."""

    noun = "record"

    def __init__(self, args: argparse.Namespace, out: Output, wal: Wal, source: LineSource) -> None:
        self._wal = wal
        self._first_lsn: int | None = None
        super().__init__(args, out, wal, source)

    def _commit(self, lines: list[bytes]) -> None:
        lsns = self._wal.append_batch(lines)
        if self._first_lsn is None:
            self._first_lsn = lsns[0]

    def _durable(self) -> int | None:
        return self._wal.durable_end

    def _positions(self) -> dict[str, Any]:
        return {
            "first_lsn": self._first_lsn,
            "end": self._wal.end,
            "durable_end": self._wal.durable_end,
        }

    def _where(self) -> str:
        if self._first_lsn is None:
            return ""
        return f" (bytes {self._first_lsn:,} to {self._wal.end:,})"

    def _how_durable(self) -> str:
        durable = self._wal.durable_end
        return "all durable" if durable == self._wal.end else f"durable to byte {durable or 0:,}"
