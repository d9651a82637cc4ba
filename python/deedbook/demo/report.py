"""Tables and files that tell what the demo did."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deedbook.demo.crash import Writing, tell_recovery
from deedbook.demo.generate import Source
from deedbook.demo.picture import draw
from deedbook.demo.pipeline import OTHER, Count, Summary
from deedbook.demo.workspace import Check, put, save, size

# The table by time takes the next larger unit, so that it stays readable.
COARSER = {"hour": "day", "day": "month", "month": "year"}
TIME_FORMATS = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
TIME_ROWS_MAX = 40
Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Result:
    """All that a run found."""

    source: Source
    writing: Writing
    summary: Summary | None
    """None where Spark could not read the log."""
    checks: list[Check]
    seconds: dict[str, float]
    versions: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in a line."""
        failed = sum(not check.ok for check in self.checks)
        if failed:
            return f"{failed} of {len(self.checks)} checks FAILED"
        return f"all {len(self.checks)} checks passed"

    @property
    def title(self) -> str:
        """What was done, and the outcome."""
        kills = len(self.writing.kills)
        return f"{self.source.lines:,} events, writer killed {kills} times, {self.verdict}"


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
    """Header and rows of the table by time, in units larger than those of the picture."""
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


def check_rows(checks: Iterable[Check]) -> tuple[tuple[str, ...], Rows]:
    """Header and rows of the table of checks."""
    rows: Rows = [("ok" if check.ok else "FAILED", check.name, check.detail) for check in checks]
    return ("", "check", "found"), rows


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal: columns of numbers to the right, others to the left."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = [_is_number(rows, i) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a table in Markdown."""
    rule = ["--:" if _is_number(rows, i) else ":--" for i in range(len(header))]
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_number(rows: Sequence[Sequence[str]], column: int) -> bool:
    cells = [row[column] for row in rows if row[column]]
    units = ("", "%", "B", "kB", "MB", "GB", "TB")
    parts = (cell.partition(" ") for cell in cells)
    return bool(cells) and all(p[0][0].isdigit() and p[2] in units for p in parts if p[0])


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
    plain: dict[str, Any] = {
        "ok": result.ok,
        "versions": result.versions,
        "input": {
            "name": result.source.path.name,
            "generated": result.source.generated,
            "lines": result.source.lines,
            "bytes": result.source.bytes,
        },
        "writing": asdict(result.writing),
        "checks": [asdict(check) for check in result.checks],
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
    }
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
    """Write ``path`` with `.json`, `.md` and, where there is something to see, `.png`."""
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
