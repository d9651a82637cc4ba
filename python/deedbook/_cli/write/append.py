"""``deedbook append``: lines in, a log out, interruptible at every commit; books also resumable."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from deedbook import Durability, Error
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, details
from deedbook._cli.files.bad_lines import Bad, refuse_an_input, tell_bad
from deedbook._cli.files.lines import Batch, LineSource
from deedbook._cli.instead import instead_of
from deedbook._cli.signals import Stop
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._cli.write.append_formats import (
    Appender,
    Present,
    append_options,
    line_bytes_max,
    logs,
    open_appender,
)
from deedbook._cli.write.import_notes import Aside
from deedbook._formats import by_name, find
from deedbook._formats.info import FormatInfo
from deedbook._show.amounts import duration, size
from deedbook._show.json import JsonLines
from deedbook._show.text import count

RESUME_CHECK_DEEDS: Final = 1000
"""``--resume`` compares this many deeds at the end of the log with their lines."""
BAD_KEPT_MAX: Final = 100
"""``--json`` names at most this many bad lines."""


def run(args: argparse.Namespace, out: Output) -> int:
    """Append the lines of ``args.file`` to the log at ``args.path``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the log. Committed lines stay,
    and the JSON object counts the committed lines.
    """
    info = _format(args)
    limit = line_bytes_max(info) if args.line_bytes_max is None else args.line_bytes_max
    if args.aside is not None:
        refuse_an_input("append", args.aside, [args.file])
    with (
        LineSource.open(args.file, line_bytes_max=limit, option="--line-bytes-max") as source,
        open_appender(info, args.path, args.durability, vars(args)) as log,
    ):
        if any(map(source.is_file, log.files())):
            raise CliError(f"{source.name} is a file of {args.path} itself")
        for said in log.opening():
            out.talk(said)
        if source.is_terminal:
            out.talk("reading lines from the terminal; end with Ctrl-D")
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
            out.emit({"ok": not stop.requested and not job.bad_lines, **job.result()})
        else:
            job.tell_bad()
            out.talk(job.summary())
    if stop.requested:
        return 128 + stop.number
    return EXIT_DAMAGE if job.bad_lines else EXIT_OK


def _format(args: argparse.Namespace) -> FormatInfo:
    """The format of the log, or of the new log. Checks the options against the format."""
    found = find(args.path, **({} if args.base is None else {"base": args.base}))
    asked = None if args.format is None else by_name(args.format)
    if found is not None and found.format not in logs():
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
    if args.drop_oldest and args.max_bytes is None:
        raise CliError("append: --drop-oldest needs --max-bytes")
    return info


def epoch(text: str) -> int:
    """Parse the number of the last event before a book. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 2**64 - 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not an event number")
    return int(text)


def durability(text: str) -> str | timedelta | Durability:
    """The durability that an option names. Raises `argparse.ArgumentTypeError`."""
    kind, _, amount = text.partition(":")
    try:
        if text in ("always", "manual", "none"):
            return text
        if kind == "bytes" and (found := size(amount)):
            return Durability.bytes(found)
        if kind == "interval" and not amount.isdigit() and (seconds := duration(amount)) >= 0.001:
            return timedelta(seconds=seconds)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(
        f"{text[:40]!r} is not always, interval:TIME (100ms), bytes:SIZE (64m), manual or none"
    )


class _Job:
    """A run of ``append``: the bad, the appended, and the acknowledged lines."""

    def __init__(
        self,
        args: argparse.Namespace,
        out: Output,
        info: FormatInfo,
        log: Appender,
        source: LineSource,
    ) -> None:
        self._args = args
        self._out = out
        self._info = info
        self._log = log
        self._source = source
        present = log.present()
        self._present = None if present is None else _Compared(info, present, args)
        self._acked = log.durable()
        self._interrupted = False
        self._aside = None if args.aside is None else Aside(args.aside)
        self._bad: list[Bad] = []
        """The first bad lines."""
        self.bad_lines = 0
        self.appended = 0
        """Lines appended in this run."""

    def append_all(self, stop: Stop) -> None:
        """Append every line, a commit for each batch; return at an edge after a stop."""
        source = self._source
        try:
            with Progress("append", source.total_bytes, enabled=not self._args.quiet) as progress:
                for batch in source.batches(self._args.batch, stop):
                    self._take(batch)
                    progress.update(source.bytes_read, note=count(self.appended, self._info.noun))
        finally:
            if self._aside is not None:
                self._aside.sync()
                self._aside.close()
        self._interrupted = stop.requested
        if not stop.requested and self._present is not None:
            self._present.check_end(self._source)
        if self._args.durability not in ("always", "none"):
            self._log.sync()
            self._acknowledge()

    def result(self) -> dict[str, Any]:
        """The run in numbers, ready for JSON."""
        return {
            "path": os.path.abspath(self._args.path),
            "appended": self.appended,
            **({} if self._present is None else {"skipped": self._present.skipped}),
            "bad": self.bad_lines,
            "bad_lines": [bad._asdict() for bad in self._bad],
            "interrupted": self._interrupted,
            **self._log.positions(),
        }

    def tell_bad(self) -> None:
        """Name the first bad lines."""
        tell_bad(self._out, [(self._args.file, bad) for bad in self._bad], self.bad_lines)

    def summary(self) -> str:
        """The run in one line for people."""
        text = "interrupted; " if self._interrupted else ""
        text += f"appended {count(self.appended, self._info.noun)}{self._log.where(self.appended)}"
        if self._present is not None and self._present.skipped:
            text += f", {count(self._present.skipped, 'line')} already there"
        if self.bad_lines:
            text += f", {self.bad_lines:,} bad"
        return f"{text}; {self._log.how_durable()}"

    def _take(self, batch: Batch) -> None:
        lines: list[bytes] = []
        problem: CliError | None = None
        json = JsonLines(batch.lines if self._args.validate else [])
        for index, line in enumerate(batch.lines):
            number = batch.first_line + index
            if self._args.validate:
                if not line.strip():
                    continue
                reason = json.why_not(index)
                if reason is not None and self._args.stop_at_bad:
                    problem = CliError(
                        f"line {number} of {self._source.name} is not JSON: {reason}",
                        line=number,
                    )
                    break
                if reason is not None:
                    self._note_bad(Bad(number, f"not JSON: {reason}"), line)
                    continue
            elif not line and not self._log.takes_empty:
                continue
            if self._present is not None and self._present.has_more():
                self._present.skip(self._source, number, line)
            else:
                lines.append(line)
        if lines:
            self._log.commit(lines)
            self.appended += len(lines)
            self._acknowledge()
        if problem is not None:
            raise problem

    def _acknowledge(self) -> None:
        durable = self._log.durable()
        if self._args.acks and durable is not None and durable != self._acked:
            self._out.line(str(durable))
            self._out.flush()
        self._acked = durable

    def _note_bad(self, bad: Bad, line: bytes) -> None:
        self.bad_lines += 1
        if len(self._bad) < BAD_KEPT_MAX:
            self._bad.append(bad)
        if self._aside is not None:
            self._aside.write(line + b"\n")


class _Compared:
    """The records already in the log, and the number of lines found equal to records."""

    def __init__(self, info: FormatInfo, present: Present, args: argparse.Namespace) -> None:
        self._info = info
        self._first = present.first
        self._count = present.length if args.resume else 0
        self._path = args.path
        self._expected = self._to_compare(present)
        self.skipped = 0
        """Lines passed over."""

    def has_more(self) -> bool:
        """Whether the next line must be there already."""
        return self.skipped < self._count

    def skip(self, source: LineSource, number: int, line: bytes) -> None:
        """Skip a line that is in the log. `CliError` if the log has another record there."""
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
        """`CliError` if the input has fewer lines than the log has records."""
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
