"""What a pipeline did, as one HTML file and its pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from deedbook._page import escaped, page, table
from deedbook.pipeline.check import Check, text_of
from deedbook.pipeline.config import Config
from deedbook.pipeline.latency import Latency, Spread, latency_of
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.pictures import draw_events, draw_latency, draw_quarantine, draw_run
from deedbook.pipeline.progress import batches_of, kills_of
from deedbook.pipeline.quarantine import reasons_of
from deedbook.pipeline.status import Status, lag_text, status

__all__ = ["verdict_of", "write_report"]


def write_report(config: Config, checks: Sequence[Check]) -> Path:
    """Write ``report/index.html`` and its pictures in the pipeline's directory; returns the file.

    ``checks`` are shown as a table; it may be empty.
    """
    layout = Layout(config)
    layout.report.mkdir(parents=True, exist_ok=True)
    found = status(config)
    names = [SILVER, *(source.name for source in config.sources)]
    batches = [batch for name in names for batch in batches_of(layout, name)]
    kills = kills_of(layout)
    latency = latency_of(config)
    reasons = reasons_of(layout)
    window = timedelta(seconds=config.window_seconds)
    draw_events(_windows(layout), window, layout.report / "events.png")
    draw_run(batches, kills, layout.report / "run.png")
    draw_latency(latency, kills, layout.report / "latency.png")
    draw_quarantine(reasons, layout.report / "quarantine.png")
    file = layout.report / "index.html"
    new = file.with_name(".index.html.new")
    body = _body(found, checks, reasons, latency)
    ok = not any(check.ok is False for check in checks)
    text = page(_title(found, len(kills), checks), body, ok=ok, images="data: 'self' file:")
    new.write_text(text, encoding="utf-8")
    new.replace(file)
    return file


def verdict_of(checks: Sequence[Check]) -> str:
    """How many checks failed and passed; one that had nothing to hold against did neither."""
    failed = sum(check.ok is False for check in checks)
    left = sum(check.ok is None for check in checks)
    if not checks:
        return "not checked"
    if not failed and not left:
        return f"all {len(checks)} checks passed"
    found = f"{failed} of {len(checks)} checks FAILED" if failed else f"{len(checks) - left} passed"
    return f"{found}, {left} not checked" if left else found


def _title(found: Status, kills: int, checks: Sequence[Check]) -> str:
    events = found.totals.get("events", 0)
    broken = "1 run" if kills == 1 else f"{kills:,} runs"
    return f"{found.name}: {events:,} events, {broken} broken off, {verdict_of(checks)}"


def _body(
    found: Status, checks: Sequence[Check], reasons: dict[str, int], latency: Latency
) -> Iterator[str]:
    events = found.totals.get("events", 0)
    yield "<h2>Sources</h2>\n"
    rows = [
        [one.name, one.bronze, _number(one.records), lag_text(one.lag), _time(one.last_read)]
        for one in found.sources
    ]
    rows.append(
        [SILVER, "table", f"{events:,}", lag_text(found.silver_lag), _time(found.silver_at)]
    )
    yield table(["source", "kept as", "records", "lag after the last batch", "last read"], rows)
    totals = found.totals
    yield "<h2>Totals</h2>\n"
    yield table(
        ["events", "bytes of content", "late", "put aside", "watermark", "runs"],
        [
            [
                f"{events:,}",
                _number(totals.get("bytes")),
                _number(totals.get("late")),
                f"{sum(reasons.values()):,}",
                _time(totals.get("watermark")),
                f"{found.runs:,}",
            ]
        ],
    )
    yield "<p>Times are UTC.</p>\n"
    yield _picture("events.png", "Events by time and kind")
    yield "<h2>Batches and lag</h2>\n"
    yield _picture("run.png", "Rows of each batch and the lag at its end, over the run, with kills")
    yield from _latency(latency)
    yield "<h2>Quarantine</h2>\n"
    yield _picture("quarantine.png", "What was put aside, by reason")
    if checks:
        yield "<h2>Checks</h2>\n"
        yield table(
            ["", "check", "expected", "found"],
            [
                [
                    "✗" if one.ok is False else "✓" if one.ok else "?",
                    one.name,
                    text_of(one.expected),
                    text_of(one.found),
                ]
                for one in checks
            ],
            "checks",
            ["bad" if one.ok is False else "" for one in checks],
        )
    tops = [(name, totals.get(name, {})) for name in ("kinds", "authors")]
    for name, top in tops:
        if top:
            yield f"<h2>Most frequent {name}</h2>\n"
            yield table([name, "events"], [[key, f"{value:,}"] for key, value in top.items()])


def _latency(latency: Latency) -> Iterator[str]:
    begin, what = latency.begins, "events" if latency.begins == "append" else "records"
    yield f"<h2>Latency from {begin} to gold</h2>\n"
    if begin == "append":
        yield (
            "<p>From the moment at which a producer's append was acknowledged, at the source where"
            " an event came first, to the end of the batch with which it came to gold."
        )
        if latency.unknown:
            yield f" Of {latency.unknown:,} events it is not known when they were appended."
        yield "</p>\n"
    else:
        yield (
            "<p>From the end of the batch that brought a record into bronze. When it was appended"
            " at its source is not known.</p>\n"
        )
    spreads = latency.by_source()
    if len(spreads) > 1:
        spreads["all"] = Spread.of(latency.taken)
    if spreads:
        yield table(
            ["source", what, "median", "95 %", "worst"],
            [
                [
                    name,
                    f"{spread.events:,}",
                    *(f"{one:,.1f} s" for one in (spread.median, spread.most, spread.worst)),
                ]
                for name, spread in spreads.items()
            ],
            "latency",
        )
    yield _picture("latency.png", f"Seconds from {begin} to gold over the run, with kills")


def _picture(file: str, alt: str) -> str:
    """A picture, and the way to it at its full size."""
    image = f'<img src="{file}" alt="{escaped(alt)}">'
    return f'<figure><a href="{file}">{image}</a></figure>\n'


def _time(at: str | None) -> str:
    """To the second."""
    return "" if at is None else at[:19].replace("T", " ")


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _windows(layout: Layout) -> dict[tuple[datetime, int], int]:
    found: dict[tuple[datetime, int], int] = {}
    for row in _rows(layout.windows, ["window", "kind", "events"]):
        place = (row["window"], row["kind"])
        found[place] = found.get(place, 0) + row["events"]
    return found


def _rows(folder: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of the Parquet files below a folder."""
    import pyarrow.parquet as pq

    for file in sorted(folder.rglob("*.parquet")):
        if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts):
            yield from pq.ParquetFile(file).read(columns=columns).to_pylist()
