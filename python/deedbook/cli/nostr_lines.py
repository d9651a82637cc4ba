"""``deedbook nostr import`` and ``export``: JSON lines in, JSON lines out."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Final

from deedbook import Error, EventStore, ImportReport
from deedbook._text import count
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, PipeClosedError, details
from deedbook.cli.output import Output
from deedbook.cli.progress import Progress
from deedbook.cli.signals import Stop

BAD_SHOWN_MAX: Final = 20
"""At most this many bad lines are named, without ``--json``."""


class _Stopped(BaseException):
    """A signal came. As KeyboardInterrupt, the core passes it on as it is."""


class _Input:
    """A file or standard input, whose reads end with `_Stopped` after a signal."""

    def __init__(self, file: str, stop: Stop) -> None:
        self._stop = stop
        self.bytes_read = 0
        """Of the file, which may be compressed."""
        if file == "-":
            if sys.stdin is None:
                raise CliError("standard input is closed")
            self._fd, self._owned, self.size = 0, False, None
            return
        try:
            self._fd = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self._owned = True
            self.size = os.fstat(self._fd).st_size
        except OSError as error:
            raise CliError(f"{file}: {error.strerror}", path=file) from error

    def read(self, size: int) -> bytes:
        """As of a file."""
        if not self._stop.wait(self._fd, None):
            raise _Stopped
        data = os.read(self._fd, size)
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Close a file that was opened here."""
        if self._owned:
            os.close(self._fd)


def run_import(args: argparse.Namespace, out: Output) -> int:
    """Store the events of ``args.file``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the store; what was stored before
    stays.
    """
    so_far: list[ImportReport] = []
    report: ImportReport | None = None
    stop = Stop()
    source = _Input(args.file, stop)
    try:
        with (
            # Not yet under `stop`: a signal ends the wait for another writer.
            EventStore.open(
                args.store,
                "a",
                durability=args.durability,
                history=args.history,
                lock_timeout=args.lock_timeout,
            ) as store,
            stop,
            Progress("import", source.size, enabled=not args.quiet) as progress,
        ):

            def tell(report: ImportReport) -> None:
                so_far[:] = [report]
                progress.update(source.bytes_read, note=count(report.stored, "event"))
                if stop.requested:
                    raise _Stopped

            try:
                report = store.import_json(
                    source,
                    check=args.check,
                    aside=args.aside,
                    stop_at_bad=args.stop_at_bad,
                    progress=tell,
                )
            except _Stopped:
                pass
            except ImportError as error:
                raise CliError(str(error)) from error
    except (CliError, Error) as error:
        if args.json:
            out.emit({"ok": False, **_result(args, so_far, True), "error": details(error)})
        elif so_far:
            out.talk(_summary(so_far[0]))
        raise
    finally:
        source.close()
    stopped = report is None
    so_far = so_far if report is None else [report]
    if args.json:
        ok = report is not None and not report.bad
        out.emit({"ok": ok, **_result(args, so_far, stopped)})
    else:
        for each in so_far:
            _tell_bad(each, out)
        text = _summary(so_far[0]) if so_far else "nothing was stored"
        out.talk(f"interrupted; {text}" if stopped else text)
    if report is None:
        return 128 + stop.number
    return EXIT_DAMAGE if report.bad else EXIT_OK


def _result(
    args: argparse.Namespace, so_far: list[ImportReport], interrupted: bool
) -> dict[str, Any]:
    facts = so_far[0].to_dict() if so_far else {}
    return {"path": os.path.abspath(args.store), "interrupted": interrupted, **facts}


def _tell_bad(report: ImportReport, out: Output) -> None:
    for bad in report.bad_lines[:BAD_SHOWN_MAX]:
        out.talk(f"line {bad.line}: {bad.reason}")
    if report.bad > BAD_SHOWN_MAX:
        out.talk(f"and {count(report.bad - BAD_SHOWN_MAX, 'more bad line')}")


def _summary(report: ImportReport) -> str:
    text = f"stored {count(report.stored, 'event')} of {count(report.lines, 'line')}"
    parts = [
        (report.superseded, "of them superseded"),
        (report.duplicates, "there already"),
        (report.deleted, "deleted by the author"),
        (report.expired, "expired"),
        (report.ephemeral, "ephemeral"),
        (report.bad, "bad"),
    ]
    return "".join([text, *(f", {number:,} {what}" for number, what in parts if number)])


def run_export(args: argparse.Namespace, out: Output) -> int:
    """Write the events of a store as JSON lines; return the exit code.

    Raises `CliError` and `deedbook.Error`.
    """
    to_stdout = args.file == "-"
    if to_stdout and args.json:
        raise CliError("nostr export: --json needs FILE: standard output has the events")
    with EventStore.open(args.store) as store:
        with Progress("export", enabled=not args.quiet and not to_stdout) as progress:
            try:
                report = store.export_json(
                    _Standard(out) if to_stdout else args.file,
                    include="all" if args.all else "live",
                    on_corrupt="skip" if args.skip_corrupt else "raise",
                    progress=lambda events: progress.update(0, note=count(events, "event")),
                )
            except ImportError as error:
                raise CliError(str(error)) from error
            except Error as error:
                if isinstance(error.__cause__, CliError | PipeClosedError):
                    raise error.__cause__ from None
                raise
        faults = store.verify(check="none").faults if args.skip_corrupt else 0
    if args.json:
        facts = {"path": store.path, "file": args.file, **report.to_dict(), "damages": faults}
        out.emit({"ok": not faults, **facts})
    else:
        out.talk(f"exported {count(report.events, 'event')}")
        if report.lossy:
            out.talk(f"{count(report.lossy, 'event')} of them without names of tags, lost before")
        if faults:
            out.talk(f"passed over {count(faults, 'damaged place')}; verify names them")
    return EXIT_DAMAGE if faults else EXIT_OK


class _Standard:
    """Standard output as a file, by way of `Output`, which knows of readers that go away."""

    def __init__(self, out: Output) -> None:
        self._out = out

    def write(self, data: memoryview) -> None:
        """Write all of it."""
        self._out.data(bytes(data))
        self._out.flush()
