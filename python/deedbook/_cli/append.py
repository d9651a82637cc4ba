"""``deedbook append``: lines in, a log out, interruptible at every commit; books also resumable."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from deedbook import Durability, Error
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, details
from deedbook._cli.formats import instead_of
from deedbook._cli.formats.append import Present, append_options, appender_of, create_options, logs
from deedbook._cli.lines import Batch, LineSource
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._cli.signals import Stop
from deedbook._formats import by_name, find
from deedbook._formats.log import LogInfo
from deedbook._json import JsonLines
from deedbook._text import count

RESUME_CHECK_DEEDS: Final = 1000
"""``--resume`` compares this many deeds at the end of the log with their lines."""
INVALID_SHOWN_MAX: Final = 100
"""``--skip-invalid --json`` names at most this many line numbers."""


def run(args: argparse.Namespace, out: Output) -> int:
    """Append the lines of ``args.file`` to the log at ``args.path``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the log; whatever was
    committed before stays, and the JSON object has it.
    """
    info = _format(args)
    with (
        LineSource.open(
            args.file, line_bytes_max=args.line_bytes_max, option="--line-bytes-max"
        ) as source,
        _open(args, info) as log,
    ):
        if any(map(source.is_file, info.files(log))):
            raise CliError(f"{source.name} is a file of {log.path} itself")
        _tell_opening(info, log, source, out)
        job = _Job(args, out, info, log, source)
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
            out.emit({"ok": not stop.requested and not job.invalid_lines, **job.result()})
        else:
            out.talk(job.summary())
    if stop.requested:
        return 128 + stop.number
    return EXIT_DAMAGE if job.invalid_lines else EXIT_OK


def _format(args: argparse.Namespace) -> LogInfo[Any]:
    """The format of what is there, else the one asked for. Checks the options against it."""
    found = find(args.path)
    asked = None if args.format is None else by_name(args.format)
    if found is not None and not isinstance(found.format, LogInfo):
        title, instead = found.format.title, instead_of(found.format)["append"]
        raise CliError(f"append: {args.path} holds a {title}; {instead}", path=args.path)
    if found is not None and found.saved:
        title = found.format.title
        raise CliError(
            f"append: {args.path} is what was cut off a {title} and saved; salvage copies it to a"
            " new log",
            path=args.path,
        )
    if found is not None and asked is not None and found.format is not asked:
        raise CliError(
            f"append: {args.path} holds a {found.format.title}, --format says {asked.name}",
            path=args.path,
        )
    info = found.format if found is not None else asked or logs()[0]
    assert isinstance(info, LogInfo)  # --format offers no other
    allowed = append_options(info)
    for other in logs():
        for option in append_options(other):
            if option not in allowed and getattr(args, option) not in (None, False):
                flag = option.replace("_", "-")
                why = instead_of(info).get(option)
                raise CliError(
                    f"append: --{flag} is for {other.title}s (--format {other.name})"
                    + (f"; {why}" if why else "")
                )
    return info


def _open(args: argparse.Namespace, info: LogInfo[Any]) -> Any:
    options = {name: getattr(args, name) for name in create_options(info)}
    return info.log.open(
        args.path,
        "a",
        durability=args.durability,
        recovery=args.recovery,
        lock_timeout=args.lock_timeout,
        **options,
    )


def _tell_opening(info: LogInfo[Any], log: Any, source: LineSource, out: Output) -> None:
    """Say what opening cut, and that a terminal is read."""
    recovery = log.recovery
    cut_records = recovery.cut_records
    if cut_records > 0:
        out.talk(f"cut {count(cut_records, f'unacknowledged {info.noun}')}")
    elif recovery.cut_bytes and recovery.torn_bytes:
        out.talk(
            f"cut a torn tail of {count(recovery.torn_bytes, 'byte')} "
            f"after byte {recovery.valid_end:,}"
        )
    if recovery.saved_to is not None:
        out.talk(f"what was cut is in {recovery.saved_to}")
    for path in recovery.set_aside:
        out.talk(f"a segment after a gap is set aside as {path}")
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


def durability(text: str) -> str | timedelta | Durability:
    """The durability that an option names. Raises `argparse.ArgumentTypeError`."""
    if not re.fullmatch(r"always|manual|none|(interval|bytes):[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not always, interval:MS, bytes:N, manual or none"
        )
    name, _, number = text.partition(":")
    if name == "interval":
        return timedelta(milliseconds=int(number))
    return Durability.bytes(int(number)) if name == "bytes" else text


class _Job:
    """One run of ``append``: what was left out, appended, and acknowledged."""

    def __init__(
        self,
        args: argparse.Namespace,
        out: Output,
        info: LogInfo[Any],
        log: Any,
        source: LineSource,
    ) -> None:
        self._args = args
        self._out = out
        self._info = info
        self._log = log
        self._appender = appender_of(log)
        self._source = source
        present = self._appender.present()
        self._present = None if present is None else _Compared(info, present, log.path, args)
        self._acked = self._appender.durable()
        self._interrupted = False
        self._invalid_at: list[int] = []
        self.invalid_lines = 0
        self.appended = 0
        """Lines appended in this run."""

    def append_all(self, stop: Stop) -> None:
        """Append every line, a commit for each batch; return at an edge after a stop."""
        source = self._source
        with Progress("append", source.total_bytes, enabled=not self._args.quiet) as progress:
            for batch in source.batches(self._args.batch, stop):
                self._take(batch)
                progress.update(source.bytes_read, note=count(self.appended, self._info.noun))
        self._interrupted = stop.requested
        if not stop.requested and self._present is not None:
            self._present.check_end(self._source)
        if self._args.durability not in ("always", "none"):
            self._log.sync()
            self._acknowledge()

    def result(self) -> dict[str, Any]:
        """The run in numbers, ready for JSON."""
        return {
            "path": self._log.path,
            "appended": self.appended,
            **({} if self._present is None else {"skipped": self._present.skipped}),
            "invalid_lines": self.invalid_lines,
            "invalid_at": self._invalid_at,
            "interrupted": self._interrupted,
            **self._appender.positions(),
        }

    def summary(self) -> str:
        """The run in one line for people."""
        text = "interrupted; " if self._interrupted else ""
        text += (
            f"appended {count(self.appended, self._info.noun)}{self._appender.where(self.appended)}"
        )
        if self._present is not None and self._present.skipped:
            text += f", {count(self._present.skipped, 'line')} already there"
        if self.invalid_lines:
            shown = ", ".join(map(str, self._invalid_at[:5]))
            more = ", ..." if self.invalid_lines > 5 else ""
            text += f", skipped {count(self.invalid_lines, 'invalid line')} ({shown}{more})"
        return f"{text}; {self._appender.how_durable()}"

    def _take(self, batch: Batch) -> None:
        lines: list[bytes] = []
        problem: CliError | None = None
        json = JsonLines(batch.lines if self._args.validate else [])
        for index, line in enumerate(batch.lines):
            number = batch.first_line + index
            present = self._present is not None and self._present.has_more()
            # A line that is in the log was checked when it got there, unless such are not counted.
            if self._args.validate and (not present or self._args.skip_invalid):
                reason = json.why_not(index)
                if reason is not None and self._args.skip_invalid:
                    self._note_invalid(number)
                    continue
                if reason is not None:
                    problem = CliError(
                        f"line {number} of {self._source.name} is not JSON: {reason}",
                        line=number,
                    )
                    break
            if present and self._present is not None:
                self._present.skip(self._source, number, line)
            else:
                lines.append(line)
        if lines:
            self._appender.commit(lines)
            self.appended += len(lines)
            self._acknowledge()
        if problem is not None:
            raise problem

    def _acknowledge(self) -> None:
        durable = self._appender.durable()
        if self._args.acks and durable is not None and durable != self._acked:
            self._out.line(str(durable))
            self._out.flush()
        self._acked = durable

    def _note_invalid(self, number: int) -> None:
        self.invalid_lines += 1
        if len(self._invalid_at) < INVALID_SHOWN_MAX:
            self._invalid_at.append(number)


class _Compared:
    """The records that are there already, and how many lines were found to be them."""

    def __init__(
        self, info: LogInfo[Any], present: Present, path: str, args: argparse.Namespace
    ) -> None:
        self._info = info
        self._first = present.first
        self._count = present.length if args.resume else 0
        self._path = path
        self._expected = self._to_compare(present)
        self.skipped = 0
        """Lines passed over."""

    def has_more(self) -> bool:
        """Whether the next line must be there already."""
        return self.skipped < self._count

    def skip(self, source: LineSource, number: int, line: bytes) -> None:
        """Pass over a line that is there, or `CliError` if another one is."""
        at = self.skipped
        if at >= self._count - RESUME_CHECK_DEEDS and next(self._expected, None) != (at, line):
            raise CliError(
                f"line {number} of {source.name} differs from {self._info.position} "
                f"{self._first + at} of {self._path}: it was not made from this input",
                line=number,
                **{self._info.position: self._first + at},
            )
        self.skipped += 1

    def check_end(self, source: LineSource) -> None:
        """`CliError` if the input ended before what is there."""
        if self.has_more():
            raise CliError(
                f"{source.name} has {count(self.skipped, 'line')}, but "
                f"{self._path} already holds {count(self._count, self._info.noun)}: "
                "it was not made from this input"
            )

    def _to_compare(self, present: Present) -> Iterator[tuple[int, bytes]]:
        """The last records, with their places from 0 on."""
        if self._count > 0:
            start = max(self._count - RESUME_CHECK_DEEDS, 0)
            payloads = present.payloads(self._first + start, self._first + self._count)
            yield from enumerate(payloads, start)
