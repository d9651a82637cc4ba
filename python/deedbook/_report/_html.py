"""The page of a report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime

from deedbook import __version__
from deedbook._report._damage import damage, lost_by_damage
from deedbook._report._figures import LogReport, Times, Type, state_of
from deedbook._show.charts import Bar, Piece, bars, columns
from deedbook._show.page import escaped, fragment, page, table, tiles
from deedbook._show.text import count, size

__all__ = ["page_of", "page_of_several", "part_of_page", "rate_text", "span_text"]

_FILES_MAX = 150
"""The most columns. Beyond, only the last columns are shown."""
_LABELS_MAX = 12
"""The most labels below a chart."""
_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def page_of(report: LogReport) -> str:
    """The whole page."""
    made = report.made.strftime("%Y-%m-%d %H:%M UTC")
    under = f"{os.path.abspath(report.path)}, {made}, deedbook {__version__}"
    return page(title_of(report), _body(report), ok=report.ok, subtitle=under)


def page_of_several(reports: Sequence[LogReport]) -> str:
    """A page about several logs: all logs in a table, then each log."""
    bad = sum(not report.ok for report in reports)
    made = max(report.made for report in reports).strftime("%Y-%m-%d %H:%M UTC")
    rows = [
        [
            os.path.abspath(report.path),
            count(report.records, report.noun),
            size(report.bytes),
            state_of(report),
        ]
        for report in reports
    ]
    classes = ["" if report.ok else "bad" for report in reports]
    links = [f"#log-{number}" for number, _ in enumerate(reports, 1)]
    body = [table(["log", "records", "payloads", "state"], rows, "logs", classes, links)]
    for number, report in enumerate(reports, 1):
        style = "" if report.ok else ' class="bad"'
        path = escaped(os.path.abspath(report.path))
        body.append(
            f'<h1 id="log-{number}"{style}>{escaped(title_of(report))}</h1>\n'
            f'<p class="soft">{path}</p>\n'
        )
        body += _body(report)
    title = f"{count(len(reports), 'log')}, {f'{bad:,} NOT OK' if bad else 'all ok'}"
    return page(title, body, ok=not bad, subtitle=f"{made}, deedbook {__version__}")


def part_of_page(report: LogReport) -> str:
    """The page for a notebook, without the head."""
    return fragment(f"<h1>{escaped(title_of(report))}</h1>{''.join(_body(report))}")


def title_of(report: LogReport) -> str:
    """The log and the outcome in a line."""
    name = os.path.basename(os.path.abspath(report.path))
    return f"{name}: {count(report.records, report.noun)}, {state_of(report)}"


def rate_text(rate: float, noun: str) -> str:
    """A rate in the largest unit that gives a readable number."""
    fitting = ((unit, rate * seconds) for unit, seconds in reversed(_UNITS))
    unit, value = next((one for one in fitting if one[1] >= 1), ("day", rate * 86400))
    return f"{value:,.3g} {noun}s/{unit}" if value < 1000 else f"{value:,.0f} {noun}s/{unit}"


def span_text(seconds: int) -> str:
    """A length of time: ``hour``, ``5 minutes``."""
    unit, length = next((unit, length) for unit, length in _UNITS if seconds % length == 0)
    return unit if seconds == length else f"{seconds // length} {unit}s"


def _body(report: LogReport) -> Iterator[str]:
    yield tiles(_tiles(report))
    if not report.ok:
        # The damages themselves stand in a table.
        reasons = [one.reason for part in report.parts for one in part.damages]
        texts = [one for one in report.findings if not any(reason in one for reason in reasons)]
        yield "".join(f'<p class="bad">{escaped(text)}</p>\n' for text in texts)
    yield from damage(report)
    yield from _times(report)
    yield from _sizes(report)
    yield from _types(report)
    yield from _syncs(report)
    yield from _files(report)
    yield from _consumers(report)
    if report.rows:
        yield "<h2>State</h2>\n"
        yield table(["", ""], [_of_check(report, *row) for row in report.rows], "info")


def _of_check(report: LogReport, name: str, value: str) -> tuple[str, str]:
    """A row of ``info``, with the result of the check if opening could not know."""
    if report.checked and not report.ok:
        if name == "recovery" and value.startswith("clean"):
            return name, f"{state_of(report)}, by a check of all bytes; opening read only the end"
        if name in (f"{report.noun}s", "events", "records") and report.damages:
            return name, f"{value} by their numbers; {report.records:,} are intact"
    return name, value


def _tiles(report: LogReport) -> Iterator[tuple[str, str]]:
    yield f"{report.noun}s", f"{report.records:,}"
    yield "payloads", size(report.bytes)
    if report.sizes is not None:
        yield "median payload", size(report.sizes.median)
    if report.rate is not None:
        yield "rate", rate_text(report.rate, report.noun)
    if report.durable_end is not None:
        yield "durable to byte", f"{report.durable_end:,}"
    if report.unsynced_records is not None:
        yield "not yet durable", count(report.unsynced_records, report.noun)
    elif report.lag_bytes is not None:
        yield "not yet durable", size(report.lag_bytes)
    if (event := report.info.get("durable_event")) is not None:
        yield "durable through event", f"{event:,}"
    if len(report.files) > 1:
        yield "files", f"{len(report.files):,}"
    if (loss := report.checked.get("loss")) is not None:
        lost = count(loss["records"], report.noun) if loss["records"] else "not known how many"
        yield "lost, as was noted", lost
    if (damaged := lost_by_damage(report)) is not None:
        yield f"lost {report.noun}s", f"{damaged:,}"
    if report.checked and (report.ok or report.damages):
        yield "damages", f"{report.damages:,}"


def _times(report: LogReport) -> Iterator[str]:
    times = report.times
    if times is None or not times.stretches:
        return
    unit = span_text(times.seconds)
    labels = _time_labels(times)
    for what, values in (
        (f"{report.noun}s", [(one.begin, one.records) for one in times.stretches]),
        ("bytes", [(one.begin, one.bytes) for one in times.stretches]),
    ):
        title = f"{what.capitalize()} per {unit}"
        most = max(value for _, value in values)
        top = size(most) if what == "bytes" else f"{most:,} {what}"
        named = [
            (f"{_at(at)}: {size(value) if what == 'bytes' else f'{value:,}'}", value)
            for at, value in values
        ]
        yield f"<h2>{escaped(title)}</h2>\n"
        middle = size(most // 2) if what == "bytes" else f"{most / 2:,g}"
        half = f"dashed line: {middle}" if most > 1 else ""
        yield columns(named, f"at most {top} per {unit}", labels, title, half, silent=True)
    notes = [f"Times are UTC, from {times.source} in the payloads"]
    if silent := sum(not one.records for one in times.stretches):
        notes.append(f"grey: no {report.noun} in {silent:,} of {len(times.stretches):,} columns")
    if report.records > times.records:
        notes.append(f"{count(report.records - times.records, report.noun)} without a time")
    if times.outside:
        first, last = _at(times.first), _at(times.last)
        notes.append(f"{times.outside:,} too far off to be shown ({first} to {last})")
    yield f'<p class="note">{escaped("; ".join(notes))}.</p>\n'


def _sizes(report: LogReport) -> Iterator[str]:
    if report.sizes is None:
        return
    found = report.sizes
    yield "<h2>Sizes of payloads</h2>\n"
    most = max(step.records for step in found.steps)
    yield columns(
        [
            (f"{step.low:,} to {step.high:,} bytes: {step.records:,}", step.records)
            for step in found.steps
        ],
        f"at most {count(most, report.noun)} in a column; each column reaches to twice the size",
        [size(step.low) for step in found.steps]
        if len(found.steps) <= _LABELS_MAX
        else [size(found.least), size(found.most)],
        "Sizes of payloads",
        f"dashed line: {most / 2:,g}" if most > 1 else "",
    )
    names = (
        ("mean", int(found.mean)),
        ("median", found.median),
        ("95 %", found.p95),
        ("99 %", found.p99),
    )
    text = ", ".join(f"{name} {size(value)}" for name, value in names)
    yield f'<p class="note">{text}.</p>\n'


def _types(report: LogReport) -> Iterator[str]:
    if not report.types:
        return
    yield "<h2>Types</h2>\n"
    most = max(one.records for one in report.types)

    def row(one: Type) -> Bar:
        share = f"{100 * one.records / report.records:.1f} %"
        text = f"{one.records:,} ({share})"
        return Bar(one.name, [Piece(0, one.records, "one", f"{size(one.bytes)}")], text)

    yield bars(map(row, report.types), most, "Types")
    if report.objects < report.records:
        rest = count(report.records - report.objects, report.noun)
        yield f'<p class="note">{rest} whose payload is no JSON object.</p>\n'


def _syncs(report: LogReport) -> Iterator[str]:
    stats = report.stats
    if stats is None or not stats.syncs:
        why = "this handle has not synced yet"
        if stats is None:
            own = "this report was made of a path" if report.handle is None else "this handle reads"
            why = (
                f"{own}, and only the handle that writes counts its syncs: deedbook.report(handle)"
            )
        yield f'<p class="note">No sync latencies: {escaped(why)}.</p>\n'
        return
    yield "<h2>Sync latencies</h2>\n"
    found = [(bound, syncs) for bound, syncs in stats.sync_latency]
    some = [place for place, (_, syncs) in enumerate(found) if syncs]
    shown = found[some[0] : some[-1] + 1]
    yield columns(
        [(f"{_below(bound)}: {count(syncs, 'sync')}", syncs) for bound, syncs in shown],
        f"at most {count(max(syncs for _, syncs in shown), 'sync')} in a column; each column"
        " reaches to twice the time",
        [_below(bound) for bound, _ in (shown if len(shown) == 1 else (shown[0], shown[-1]))],
        "Sync latencies",
    )
    assert stats.sync_median is not None and stats.sync_p99 is not None
    slow = f", {stats.slow_syncs:,} slower than slow_sync" if stats.slow_syncs else ""
    yield (
        f'<p class="note">{count(stats.syncs, "sync")} of this handle for'
        f" {count(stats.appends, 'append')}: half within {_seconds(stats.sync_median)}, 99 % within"
        f" {_seconds(stats.sync_p99)}, the longest {_seconds(stats.sync_max)}{slow}.</p>\n"
    )


def _below(micros: int) -> str:
    return "longer" if micros == 2**64 - 1 else f"below {_seconds(micros / 1e6)}"


def _seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            break
    return f"{seconds * factor:,.3g} {unit}"


def _files(report: LogReport) -> Iterator[str]:
    if len(report.files) < 2:
        return
    shown = report.files[-_FILES_MAX:]
    most = max(file.bytes for file in shown)
    yield "<h2>Files</h2>\n"
    yield columns(
        [
            (f"{os.path.basename(file.path)}: {size(file.bytes)}, {_at(file.changed)}", file.bytes)
            for file in shown
        ],
        f"at most {size(most)}",
        [f"{os.path.basename(file.path)}, {_at(file.changed)}" for file in (shown[0], shown[-1])],
        "Files",
    )
    first = len(report.files) - len(shown)
    left = f", the last {len(shown):,} of them" if first else ""
    yield (
        f'<p class="note">{count(len(report.files), "file")}{left}, by when they were last'
        " written to (UTC).</p>\n"
    )


def _consumers(report: LogReport) -> Iterator[str]:
    consumers: dict[str, int] = report.info.get("consumers") or {}
    if not consumers:
        return
    if "head" in report.info:  # of a WAL
        begin, end, place = report.info["head"], report.info["end"], "byte"
    else:
        first, last = report.info["bounds"] or (1, 0)
        begin, end, place = first, last + 1, "event"

    def left(at: int) -> str:
        some = max(0, end - at)
        return size(some) if place == "byte" else count(some, place)

    yield "<h2>Consumers</h2>\n"
    yield bars(
        (
            Bar(
                name,
                [
                    Piece(0, at - begin, "one", f"read to {place} {at:,}"),
                    Piece(at - begin, end - begin, "two", f"{left(at)} to read"),
                ],
                f"{left(at)} to read",
            )
            for name, at in sorted(consumers.items())
        ),
        end - begin,
        "Consumers",
    )


def _time_labels(times: Times) -> Sequence[str]:
    shown = times.stretches
    last = len(shown) - 1
    places = sorted({last * quarter // 4 for quarter in range(5)})
    return [_at(shown[place].begin, times.seconds < 86400) for place in places]


def _at(at: datetime, hours: bool = True) -> str:
    return at.strftime("%Y-%m-%d %H:%M" if hours else "%Y-%m-%d")
