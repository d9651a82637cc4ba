"""The counts of ``stats`` for an event store: by kind, author, day and tag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from deedbook import EventStore
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK
from deedbook._cli.read.query import passed_over
from deedbook._cli.terminal.output import Output, table
from deedbook._cli.terminal.progress import Progress
from deedbook._show.text import count

__all__ = ["show_census"]

_EPOCH: Final = date(1970, 1, 1)


def show_census(path: str, top: int | None, as_json: bool, quiet: bool, out: Output) -> int:
    """Count the events. Raises `deedbook.Error`."""
    with EventStore.open(path) as store:
        with Progress("stats", enabled=not quiet) as progress:
            census = store.census(
                on_corrupt="skip",
                progress=lambda events: progress.update(0, note=count(events, "event")),
            )
            # The store compacts no damaged segment before a repair.
            segments = (
                []
                if census.damages
                else store.fragmentation(progress=lambda done, total: progress.update(0))
            )
        path, ratio = store.path, store.compaction_ratio
    is_due = any(found.dead_bytes and found.share >= ratio for found in segments)
    days = {str(_EPOCH + timedelta(days=day)): number for day, number in census.days.items()}
    tables: dict[str, Mapping[Any, int]] = {
        "kinds": census.kinds,
        "authors": census.authors,
        "days": days,
        "tags": census.tags,
    }
    if as_json:
        facts: dict[str, Any] = {name: _most(numbers, 0) for name, numbers in tables.items()}
        facts["segments"] = None if census.damages else [found.to_dict() for found in segments]
        facts["compaction_due"] = None if census.damages else is_due
        facts["damages"] = [found.to_dict() for found in census.damages]
        ok = not census.damages
        out.emit({"ok": ok, "path": path, "events": census.events, **facts})
        return EXIT_OK if ok else EXIT_DAMAGE
    out.line(f"{path}: {count(census.events, 'event')}")
    for name, numbers in tables.items():
        shown = _most(numbers, 10 if top is None else top)
        of_all = f", the first {len(shown)}" if len(shown) < len(numbers) else ""
        out.line(f"{count(len(numbers), name[:-1])}{of_all}")
        for line in table([(key, f"{number:>12,}") for key, number in shown.items()]):
            out.line(f"  {line}")
    if census.damages:
        out.line("what a compaction would drop is not known: it needs a repair")
        return passed_over(len(census.damages), out)
    due = "a compaction is due" if is_due else "no compaction is due"
    out.line(f"{count(len(segments), 'segment')}, and what a compaction would drop; {due}")
    for line in table([(str(found.segment), f"{found.share:>12.1%}") for found in segments]):
        out.line(f"  {line}")
    return EXIT_OK


def _most(numbers: Mapping[Any, int], rows: int) -> dict[str, int]:
    """The most frequent ones first."""
    found = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    return {str(key): number for key, number in found[: rows or None]}
