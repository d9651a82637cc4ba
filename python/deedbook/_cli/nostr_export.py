"""``deedbook nostr export``: JSON lines out."""

from __future__ import annotations

import argparse
import codecs

from deedbook import Error, EventStore
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, PipeClosedError
from deedbook._cli.nostr_look import passed_over
from deedbook._cli.output import Output
from deedbook._cli.progress import Progress
from deedbook._text import count, escape_json


def run_export(args: argparse.Namespace, out: Output) -> int:
    """Write the events of a store as JSON lines; return the exit code.

    Raises `CliError` and `deedbook.Error`.
    """
    to_stdout = args.file == "-"
    if to_stdout and args.json:
        raise CliError("nostr export: --json needs FILE: standard output has the events")
    with EventStore.open(args.store, mapped_reads=args.mapped_reads) as store:
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
        faults = EventStore.verify(store.path, check="none").faults if args.skip_corrupt else 0
    if args.json:
        facts = {"path": store.path, "file": args.file, **report.to_dict(), "damages": faults}
        out.emit({"ok": not faults, **facts})
    else:
        out.talk(f"exported {count(report.events, 'event')}")
        if report.lossy:
            out.talk(f"{count(report.lossy, 'event')} of them without names of tags, lost before")
        passed_over(faults, out)
    return EXIT_DAMAGE if faults else EXIT_OK


class _Standard:
    """Standard output as a file, by way of `Output`, which knows of readers that go away."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, data: memoryview) -> None:
        """Write all of it. A character may come in two pieces."""
        self._out.data(escape_json(self._decoder.decode(bytes(data))).encode())
        self._out.flush()
