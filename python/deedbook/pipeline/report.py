"""What a pipeline did, as one HTML file and its pictures."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deedbook.pipeline.config import Config
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.pictures import Batch, draw_events, draw_quarantine, draw_run
from deedbook.pipeline.progress import lines_of
from deedbook.pipeline.status import Status, status

if TYPE_CHECKING:
    from deedbook.pipeline.check import Check

__all__ = ["write_report"]

_REASON_MAX = 60


@dataclass(frozen=True)
class _Picture:
    file: str
    alt: str


def write_report(config: Config, checks: Sequence[Check]) -> Path:
    """Write ``report/index.html`` and its pictures in the pipeline's directory; returns the file.

    ``checks`` are shown as a table; it may be empty.
    """
    layout = Layout(config.directory)
    layout.report.mkdir(parents=True, exist_ok=True)
    found = status(config)
    names = [SILVER, *(source.name for source in config.sources)]
    batches = _batches(layout, names)
    kills = _kills(layout)
    appended = _appended(layout, [source.name for source in config.sources])
    reasons = _reasons(layout)
    draw_events(_hours(layout), layout.report / "events.png")
    draw_run(batches, appended, "from bronze to gold", kills, layout.report / "run.png")
    draw_quarantine(reasons, layout.report / "quarantine.png")
    pictures = [
        _Picture("events.png", "Events by time and kind"),
        _Picture("run.png", "Rows of each batch, and seconds to gold, over the run"),
        _Picture("quarantine.png", "What was put aside, by reason"),
    ]
    page = layout.report / "index.html"
    text = "".join(_page(found, len(kills), checks, reasons, pictures))
    new = page.with_name(".index.html.new")
    new.write_text(text, encoding="utf-8")
    new.replace(page)
    return page


def _page(
    found: Status,
    kills: int,
    checks: Sequence[Check],
    reasons: dict[str, int],
    pictures: Sequence[_Picture],
) -> Iterator[str]:
    failed = sum(check.ok is False for check in checks)
    verdict = (
        "not checked"
        if not checks
        else f"{failed} of {len(checks)} checks FAILED"
        if failed
        else f"all {len(checks)} checks passed"
    )
    events = found.totals.get("events", 0)
    title = f"{found.name}: {events:,} events, {kills} runs broken off, {verdict}"
    yield _HEAD.format(title=html.escape(title), verdict="bad" if failed else "good")
    yield "<h2>Sources</h2>\n"
    yield _table(
        ["source", "bronze", "records", "last read (UTC)"],
        [
            [one.name, one.bronze, _number(one.records), (one.last_read or "")[:19]]
            for one in found.sources
        ],
    )
    totals = found.totals
    yield "<h2>Totals</h2>\n"
    yield _table(
        ["events", "bytes of content", "late", "put aside", "watermark (UTC)", "runs"],
        [
            [
                f"{events:,}",
                _number(totals.get("bytes")),
                _number(totals.get("late")),
                f"{sum(reasons.values()):,}",
                (totals.get("watermark") or "")[:19],
                f"{found.runs:,}",
            ]
        ],
    )
    for picture in pictures:
        alt = html.escape(picture.alt)
        yield f'<figure><img src="{picture.file}" alt="{alt}"></figure>\n'
    if checks:
        yield "<h2>Checks</h2>\n"
        yield _table(
            ["", "check", "expected", "found"],
            [
                [
                    "✗" if one.ok is False else "✓" if one.ok else "?",
                    one.name,
                    _shown(one.expected),
                    _shown(one.found),
                ]
                for one in checks
            ],
        )
    tops = [(name, totals.get(name, {})) for name in ("kinds", "authors")]
    for name, top in tops:
        if top:
            yield f"<h2>Most frequent {name}</h2>\n"
            yield _table([name, "events"], [[key, f"{value:,}"] for key, value in top.items()])
    yield "</main></html>\n"


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #24292f; margin: 0; background: #fff; }}
main {{ max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }} h1.bad {{ color: #cf222e; }}
h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; }} img {{ max-width: 100%; }} figure {{ margin: 2rem 0; }}
th, td {{ text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #d8dee4;
  overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }}
</style>
<main><h1 class="{verdict}">{title}</h1>
"""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    )
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _batches(layout: Layout, names: Sequence[str]) -> list[Batch]:
    found: list[Batch] = []
    for name in names:
        for line in lines_of(layout.progress(name)):
            at = datetime.fromisoformat(line["at"])
            found.append((name, at, line["rows"], line["seconds"]))
    return found


def _kills(layout: Layout) -> list[datetime]:
    """About when runs broke off that came to no end, or failed: at their last line."""
    marks = lines_of(layout.progress("run"))
    ended = {one["run"] for one in marks if one["event"] == "end"}
    killed = {one["run"]: one["at"] for one in marks if one["run"] not in ended}
    if marks and marks[-1]["run"] in killed:
        del killed[marks[-1]["run"]]  # it may be running
    for file in layout.progress("x").parent.glob("*.jsonl"):
        for line in lines_of(file):
            if line["run"] in killed:
                killed[line["run"]] = max(killed[line["run"]], line["at"])
    return sorted(datetime.fromisoformat(at) for at in killed.values())


def _appended(layout: Layout, sources: Sequence[str]) -> list[tuple[datetime, float]]:
    """Of each batch in bronze, when it came to gold and after how many seconds."""
    done = [datetime.fromisoformat(line["at"]) for line in lines_of(layout.progress(SILVER))]
    found = []
    for name in sources:
        for line in lines_of(layout.progress(name)):
            at = datetime.fromisoformat(line["at"])
            reached = next((one for one in done if one >= at), None)
            if reached is not None:
                found.append((reached, (reached - at).total_seconds()))
    return sorted(found)


def _hours(layout: Layout) -> dict[tuple[datetime, int], int]:
    found: dict[tuple[datetime, int], int] = {}
    for row in _rows(layout.hours, ["hour", "kind", "events"]):
        place = (row["hour"], row["kind"])
        found[place] = found.get(place, 0) + row["events"]
    return found


def _reasons(layout: Layout) -> dict[str, int]:
    """What was put aside, by its reason without the numbers in it."""
    found: dict[str, int] = {}
    for row in _rows(layout.quarantine("x").parent, ["reason"]):
        reason = re.sub(r"[0-9a-f]{16,}|[0-9]+", "…", row["reason"])[:_REASON_MAX]
        found[reason] = found.get(reason, 0) + 1
    return found


def _rows(folder: Path, columns: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of the Parquet files below a folder."""
    import pyarrow.parquet as pq

    for file in sorted(folder.rglob("*.parquet")):
        if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts):
            yield from pq.ParquetFile(file).read(columns=columns).to_pylist()
