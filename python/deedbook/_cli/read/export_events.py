"""``export`` of an event store to JSON lines: the events themselves."""

from __future__ import annotations

import argparse
import codecs
from typing import Any, BinaryIO

from deedbook import Error, EventStore
from deedbook._cli.failure import CliError, PipeClosedError
from deedbook._cli.read.query import passed_over
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count, escape_json

__all__ = ["Standard", "export_events"]


class Standard:
    """Standard output as a file, by way of `Output`, which knows of readers that go away."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, data: Any) -> int:
        """Write all of it. A character may come in two pieces."""
        self._out.data(escape_json(self._decoder.decode(bytes(data))).encode())
        self._out.flush()
        return len(data)


def export_events(args: argparse.Namespace, file: BinaryIO, out: Output) -> dict[str, Any]:
    """Write the events of a store, each as NIP-01 has it.

    Raises `CliError` and `deedbook.Error`.
    """
    shown = not args.quiet and args.output != "-"
    with EventStore.open(args.path) as store:
        with Progress("export", enabled=shown) as progress:
            try:
                report = store.export_json(
                    file,
                    include=args.include or "live",
                    on_corrupt="skip" if args.skip_corrupt else "raise",
                    progress=lambda events: progress.update(0, note=count(events, "event")),
                )
            except Error as error:
                if isinstance(error.__cause__, CliError | PipeClosedError | OSError):
                    raise error.__cause__ from None
                raise
        faults = EventStore.verify(store.path, check="none").faults if args.skip_corrupt else 0
    if report.lossy:
        out.talk(f"{count(report.lossy, 'event')} of them without names of tags, lost before")
    passed_over(faults, out)
    return {"records": report.events, "lossy": report.lossy, "damages": faults}
