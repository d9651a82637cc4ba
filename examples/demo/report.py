"""Tables and files with the results of the demo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from aggregate import OTHER, Count, Summary
from picture import draw

from deedbook._cli import first_minute
from deedbook._cli.first_minute import (
    Rows,
    check_rows,
    is_number,
    put,
    save,
    size,
    tell_recovery,
    text_table,
)

# The table by time takes the next larger unit, to stay readable.
COARSER = {"hour": "day", "day": "month", "month": "year"}
TIME_FORMATS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
TIME_ROWS_MAX = 40


@dataclass(frozen=True)
class Result(first_minute.Result):
    """All that a run found."""

    summary: Summary | None
    """None if Spark could not read the log."""


def type_rows(summary: Summary) -> tuple[tuple[str, ...], Rows]:
    """Header and rows of the table by type; the last row is the total."""
    events = sum(count.events for count in summary.types)
    counts = [*summary.types, Count("total", None, events, sum(c.bytes for c in summary.types))]
    rows: Rows = [
        (
            count.type,
            f"{count.events:,}",
            f"{100 * count.events / max(1, events):.1f} %",
            size(count.bytes),
            f"{count.bytes / max(1, count.events):,.0f} B",
        )
        for count in counts
    ]
    return ("type", "events", "share", "bytes", "mean"), rows


def time_rows(summary: Summary) -> tuple[tuple[str, ...], Rows]:
    """Header and rows of the table by time, in larger units than in the picture."""
    unit = COARSER[summary.bucket]
    groups: dict[str, list[Count]] = {}
    for count in summary.series:
        label = count.time.strftime(TIME_FORMATS[unit]) if count.time else "(no time)"
        groups.setdefault(label, []).append(count)
    rows: Rows = []
    for label, counts in groups.items():
        events = sum(count.events for count in counts)
        by_type: dict[str, int] = {}
        for count in counts:
            by_type[count.type] = by_type.get(count.type, 0) + count.events
        top = max(by_type, key=lambda name: (name != OTHER, by_type[name]))
        share = f"{top} {100 * by_type[top] / events:.0f} %"
        rows.append((label, f"{events:,}", size(sum(count.bytes for count in counts)), share))
    if len(rows) > TIME_ROWS_MAX:
        left = f"({len(rows) - TIME_ROWS_MAX} more in the Parquet files)"
        rows = [*rows[:TIME_ROWS_MAX], (left, "", "", "")]
    return (unit, "events", "bytes", "most frequent type"), rows


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a table in Markdown."""
    rule = ["--:" if is_number(rows, i) else ":--" for i in range(len(header))]
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show(result: Result) -> None:
    """Print the tables."""
    if result.summary:
        for table in (type_rows(result.summary), time_rows(result.summary)):
            put("\n" + text_table(*table))
    put("\n" + text_table(*check_rows(result.checks)))
    put(f"\n{result.verdict}")


def as_json(result: Result) -> str:
    """The text of the JSON report."""
    return json.dumps(as_dict(result), indent=2, ensure_ascii=False)


def as_dict(result: Result) -> dict[str, Any]:
    """The result as plain values, ready for JSON."""
    summary = result.summary
    plain = first_minute.as_dict(result)
    if summary:
        plain["fields"] = {"type": summary.type_fields, "time": summary.time_fields}
        plain["by_type"] = [_count(count) for count in summary.types]
        plain["by_type_and_time"] = {
            "unit": summary.bucket,
            "rows": [_count(count) | {"time": _iso(count.time)} for count in summary.series],
        }
    return plain


def _count(count: Count) -> dict[str, Any]:
    return {"type": count.type, "events": count.events, "bytes": count.bytes}


def _iso(time: datetime | None) -> str | None:
    return time.isoformat().replace("+00:00", "Z") if time else None


def write_files(result: Result, path: Path) -> list[Path]:
    """Write ``path`` with `.json`, `.md` and, with a summary, `.png`."""
    save(path.with_suffix(".json"), as_json(result) + "\n")
    save(path.with_suffix(".md"), _markdown(result))
    written = [path.with_suffix(".md"), path.with_suffix(".json")]
    if result.summary:
        draw(result.summary, result.title, result.ok, path.with_suffix(".png"))
        written.append(path.with_suffix(".png"))
    return written


def _markdown(result: Result) -> str:
    source, writing, summary = result.source, result.writing, result.summary
    origin = "generated" if source.generated else "given"
    kills = [
        (
            str(kill.number),
            f"{kill.acknowledged:,}",
            f"{kill.last:,}",
            str(kill.returncode),
            tell_recovery(kill.recovery),
        )
        for kill in writing.kills
    ]
    header = ("kill", "acknowledged", "in the log", "exit code", "recovery report")
    parts = [
        "# Deedbook demo",
        f"{source.lines:,} events ({size(source.bytes)}, {origin}: `{source.path.name}`), "
        f"{len(kills)} kills, {result.verdict}.",
        "## Kills",
        f"Written and synced {writing.batch:,} events at a time; attempt {writing.attempts}.",
        markdown_table(header, kills),
        "## Checks",
        markdown_table(*check_rows(result.checks)),
    ]
    if summary:
        parts += [
            "## Events",
            "![events by time, bytes by type](report.png)",
            markdown_table(*type_rows(summary)),
            markdown_table(*time_rows(summary)),
            f"Type from {_fields(summary.type_fields)}; time from {_fields(summary.time_fields)}.",
        ]
    seconds = [(name, f"{value:.1f}") for name, value in result.seconds.items()]
    parts += ["## Timings", markdown_table(("step", "seconds"), seconds)]
    parts.append(", ".join(f"{name} {version}" for name, version in result.versions.items()))
    return "\n\n".join(parts) + "\n"


def _fields(fields: dict[str, int]) -> str:
    named = sorted(fields.items(), key=lambda item: -item[1])
    return ", ".join(f"{f'`{name}`' if name else 'none'} ({n:,} events)" for name, n in named)
