"""The part of a report's page about damage: place, lost records and next step."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from deedbook._report._figures import LogReport
from deedbook._show.charts import Bar, Piece, bars, strip
from deedbook._show.page import escaped, table
from deedbook._show.text import size

__all__ = ["damage", "lost_by_damage"]

_PARTS_MAX: Final = 150
"""Shown as rows."""
_DAMAGES_MAX: Final = 100
"""Shown in a table."""


def _details(checked: Any) -> Iterator[dict[str, Any]]:
    """The damages in the facts of a check, at any depth."""
    for name, value in checked.items():
        for one in value if isinstance(value, list) else [value]:
            if name == "damages" and isinstance(one, dict):
                yield one
            elif isinstance(one, dict):
                yield from _details(one)


def lost_by_damage(report: LogReport) -> int | None:
    """The number of lost records; None without damage, and if the number is not known."""
    lost = [one.get("records_lost") for one in _details(report.checked)]
    known = [one for one in lost if one is not None]
    return sum(known) if lost and len(known) == len(lost) else None


def _lost_text(found: dict[str, Any] | None) -> str:
    """The records lost to a damage, as text: ``2 from event 812 on``."""
    if found is None:
        return ""
    lost, first = found.get("records_lost"), found.get("first_lost")
    if lost == 0:
        return "none"
    number = "not known" if lost is None else f"{lost:,}"
    if first is None:
        return number
    if lost is None:
        return f"{number}, from event {first} on"
    return (
        f"{number}: event {first}" if lost == 1 else f"{number}: events {first}..{first + lost - 1}"
    )


def _next_step(report: LogReport) -> str:
    """The next step after damage, as text."""
    path = shlex.quote(report.path)
    salvage = f"Next: 'deedbook salvage {path} COPY' copies every intact {report.noun}"
    if report.format == "ledger":
        return f"{salvage}."
    return f"{salvage}; 'deedbook repair {path} --dry-run' says what a repair would remove."


def damage(report: LogReport) -> Iterator[str]:
    """The map of a log's bytes, its damages in a table, and what to do next."""
    if not report.parts:
        return
    yield "<h2>Bytes</h2>\n"
    length = max(part.end - part.begin for part in report.parts)
    rows = []
    for part in report.parts:
        pieces = [Piece(0, part.end - part.begin, "one", "intact")]
        pieces += [
            Piece(one.offset - part.begin, one.end - part.begin, "bad", f"{one.offset:,}: {one[2]}")
            for one in part.damages
        ]
        rows.append((part, pieces))
    if len(rows) == 1:
        part, pieces = rows[0]
        labels = [f"byte {part.begin:,}", f"byte {part.end:,}"]
        yield strip(pieces, length, labels, "Map of damage")
    else:
        # Each has a row of its own; without damage there may be too many to be seen.
        hurt = [row for row in rows if row[0].damages]
        shown = (hurt or rows)[:_PARTS_MAX]
        yield bars(
            (Bar(part.name, pieces, size(part.end - part.begin)) for part, pieces in shown),
            length,
            "Map of damage",
        )
        if len(shown) < len(rows):
            yield f'<p class="note">{len(rows) - len(shown):,} more without damage.</p>\n'
    damages = [(part, one) for part in report.parts for one in part.damages]
    if not damages:
        if report.ok:
            yield '<p class="note">Every checksum was checked: no damage.</p>\n'
        return
    details = {
        (one["offset"], one["end"], one["reason"]): one
        for one in _details(report.checked)
        if "offset" in one  # a fault of an event store has a location, and hides no known number
    }
    yield table(
        ["in", "from byte", "to byte", f"lost {report.noun}s", "what is wrong"],
        [
            [
                part.name,
                f"{one.offset:,}",
                f"{one.end:,}",
                _lost_text(details.get((one.offset, one.end, one.reason))),
                one.reason,
            ]
            for part, one in damages[:_DAMAGES_MAX]
        ],
        "damages",
    )
    if (more := report.damages - len(damages[:_DAMAGES_MAX])) > 0:
        yield f'<p class="note">And {more:,} more.</p>\n'
    yield f"<p>{escaped(_next_step(report))}</p>\n"
