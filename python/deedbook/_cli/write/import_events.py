"""``deedbook import``: store Nostr events, and continue interrupted imports."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from typing import Any, Final

from deedbook import Error, EventStore
from deedbook._cli.arguments import Commands, add_bad_lines, add_json, add_lock_timeout, add_quiet
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, details
from deedbook._cli.files.bad_lines import Bad, refuse_an_input, tell_bad
from deedbook._cli.files.lines import open_input
from deedbook._cli.signals import Stop
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._cli.write.append import durability
from deedbook._cli.write.import_notes import Aside, Notes
from deedbook._formats import find
from deedbook._show.text import count
from deedbook.reports import ImportReport

CHECKS: Final = ("none", "id", "signature")
NOTE_SECONDS: Final = 0.5
"""Seconds between two commits, each with a note of the progress."""


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "import",
        help="store the events of JSON lines in an event store",
        description="Store the Nostr events of JSON lines. The command creates a missing store, "
        "and skips events already in the store. If a signal or a crash interrupts an import, the "
        "next import of the same files continues after the stored lines.",
        epilog="examples:\n"
        "  deedbook import store events.jsonl\n"
        "  deedbook import store 2026-*.jsonl.zst --check signature\n"
        "  zcat dump.gz | deedbook import store --aside bad.jsonl\n\n"
        "The command detects gzip and zstd by the first bytes. For a bad line (no event, a\n"
        "wrong event or a too large event), the command reports the number and the reason, and\n"
        "continues. The exit code is then 1. Ctrl-C and SIGTERM stop the command between two\n"
        "commits. A second signal stops the command at once.\n\n"
        "The store keeps a note of the progress in each FILE, renewed twice a second. The\n"
        "command deletes the note after the last file. The import begins a FILE again if the\n"
        "size, the time or the beginning of FILE changed. Standard input has no note. No FILE\n"
        "has a note if the file of --aside ends with .gz or .zst.",
    )
    parser.add_argument("store", metavar="STORE", help="directory of the event store")
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="input files; - (default) reads standard input"
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="begin each FILE again, without the noted progress"
    )
    parser.add_argument(
        "--check",
        choices=CHECKS,
        default="id",
        help="check the form and the id of each event (default), also the signature, or only the "
        "form",
    )
    add_bad_lines(parser)
    parser.add_argument(
        "--durability",
        metavar="WHEN",
        type=durability,
        help="sync at these times: always, interval:100ms, bytes:64m, manual (at the end), none "
        "(default: within 100 ms)",
    )
    parser.add_argument(
        "--history",
        choices=("drop", "keep"),
        help="from now on, drop or keep replaced events (default: the setting of the store; drop "
        "for a new store)",
    )
    add_lock_timeout(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run_import)


class _Stopped(BaseException):
    """A signal came. The core passes the exception on unchanged, as KeyboardInterrupt."""


class _Input:
    """A file or standard input, whose reads end with `_Stopped` after a signal."""

    def __init__(self, file: str, stop: Stop) -> None:
        self._stop = stop
        self.bytes_read = 0
        """Bytes read from the file, maybe compressed."""
        with stop.raising(_Stopped()):  # a pipe opens once something writes to it
            self._fd, self.name = open_input(file)
        self._owned = file != "-"
        self.size = os.fstat(self._fd).st_size if self._owned else None

    def read(self, size: int) -> bytes:
        """Read as from a file."""
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
    """Store the events of ``args.files``; return the exit code.

    Raises `CliError` for unusable input and `deedbook.Error` from the store. Stored events stay.
    """
    found = find(args.store)
    if found is not None and found.format.name != "nostr":
        raise CliError(
            f"import: {args.store} holds a {found.format.title}; 'deedbook append' appends lines"
            " to it",
            path=args.store,
        )
    run = _Run(args, out)
    # Open all files before storing the first event.
    for file in run.files:
        if not _is_pipe(file):
            _Input(file, run.stop).close()
    if args.aside is not None:
        refuse_an_input("import", args.aside, run.files)
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
            run.stop,
        ):
            run.import_all(store)
    except _Stopped:
        run.tell(interrupted=True)
        return 128 + run.stop.number
    except (CliError, Error) as error:
        if args.json:
            out.emit({"ok": False, **run.facts(interrupted=True), "error": details(error)})
        elif run.done:
            out.talk(run.summary())
        raise
    run.tell(interrupted=False)
    return EXIT_DAMAGE if run.total("bad") else EXIT_OK


def _is_pipe(file: str) -> bool:
    """Whether a file can be opened only once: closing a pipe ends the writer."""
    return os.path.exists(file) and not (os.path.isfile(file) or os.path.isdir(file))


class _Run:
    """A run of ``import`` over all inputs."""

    def __init__(self, args: argparse.Namespace, out: Output) -> None:
        self._args = args
        self._out = out
        self.files: list[str] = args.files or ["-"]
        self.stop = Stop()
        self.done: dict[str, ImportReport] = {}
        """The latest report of each input."""
        self._skipped = 0
        self._notes: Notes | None = None

    def import_all(self, store: EventStore) -> None:
        """Import one file after the other. Raises `_Stopped`, `CliError` and `Error`."""
        args = self._args
        aside = None if args.aside is None else os.path.abspath(args.aside)
        # A compressed file of bad lines is whole only at its end.
        if aside is None or not aside.endswith((".gz", ".zst")):
            settings = {"check": args.check, "history": store.history, "aside": aside}
            self._notes = Notes(store.path, settings)
        for file in self.files:
            self._import(store, file)
        if self._notes is not None:
            store.sync()
            self._notes.clear()

    def _import(self, store: EventStore, file: str) -> None:
        notes = self._notes if file != "-" and os.path.isfile(file) else None
        found = None if notes is None or self._args.no_resume else notes.find(file)
        after, noted_bytes = (None, None) if found is None else found
        if after is not None:
            self.done[file] = after
            self._skipped += after.lines
        aside: Any = self._args.aside
        if aside is not None and self._notes is not None:
            aside = Aside(aside, noted_bytes)
        source = _Input(file, self.stop)

        def keep() -> None:
            if notes is not None and file in self.done:
                if isinstance(aside, Aside):
                    aside.sync()
                store.sync()
                notes.keep(file, self.done[file], aside_bytes)

        # The size at the report: later bad lines come again in the next import.
        aside_bytes = aside.end() if isinstance(aside, Aside) else 0
        next_note = time.monotonic() + NOTE_SECONDS
        try:
            with Progress("import", source.size, enabled=not self._args.quiet) as progress:

                def tell(report: ImportReport) -> None:
                    nonlocal next_note, aside_bytes
                    self.done[file] = report
                    aside_bytes = aside.end() if isinstance(aside, Aside) else 0
                    progress.update(source.bytes_read, note=count(report.stored, "event"))
                    if self.stop.requested:
                        raise _Stopped
                    if time.monotonic() >= next_note:
                        keep()
                        next_note = time.monotonic() + NOTE_SECONDS

                self.done[file] = store.import_json(
                    source,
                    check=self._args.check,
                    aside=aside,
                    stop_at_bad=self._args.stop_at_bad,
                    after=after,
                    progress=tell,
                )
            if isinstance(aside, Aside):
                aside.sync()
            if len(self.files) > 1:
                keep()
        except ImportError as error:
            raise CliError(str(error)) from error
        except BaseException:
            with contextlib.suppress(Error, OSError):
                keep()
            raise
        finally:
            source.close()
            if isinstance(aside, Aside):
                aside.close()

    def total(self, name: str) -> int:
        """The sum of a number of all reports."""
        return sum(getattr(report, name) for report in self.done.values())

    def facts(self, *, interrupted: bool) -> dict[str, Any]:
        """The facts for JSON."""
        path = os.path.abspath(self._args.store)
        facts: dict[str, Any] = {"path": path, "interrupted": interrupted}
        reports = {file: report.to_dict() for file, report in self.done.items()}
        for file, report in reports.items():
            for name, value in report.items():
                facts[name] = facts[name] + value if name in facts else value
            if len(self.files) > 1:
                facts.setdefault("files", []).append({"file": file, **report})
        if self._skipped:
            facts["resumed_lines"] = self._skipped
        return facts

    def tell(self, *, interrupted: bool) -> None:
        """Print the result."""
        if self._args.json:
            ok = not interrupted and not self.total("bad")
            self._out.emit({"ok": ok, **self.facts(interrupted=interrupted)})
            return
        named = [
            (file, Bad(bad.line, bad.reason))
            for file, report in self.done.items()
            for bad in report.bad_lines
        ]
        tell_bad(self._out, named, self.total("bad"))
        text = self.summary() if self.done else "nothing was stored"
        self._out.talk(f"interrupted; {text}" if interrupted else text)

    def summary(self) -> str:
        """The result in a line."""
        total = self.total
        text = f"stored {count(total('stored'), 'event')} of {count(total('lines'), 'line')}"
        parts = [
            (total("superseded"), "of them superseded"),
            (total("duplicates"), "there already"),
            (total("deleted"), "deleted by the author"),
            (total("expired"), "expired"),
            (total("ephemeral"), "ephemeral"),
            (total("bad"), "bad"),
            (self._skipped, "of the lines by an earlier import"),
        ]
        return "".join([text, *(f", {number:,} {what}" for number, what in parts if number)])
