"""The pictures of a pipeline's report, drawn without a display."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deedbook._style import COLOURS, GREY, INK, RED, STYLE
from deedbook.pipeline.latency import Latency
from deedbook.pipeline.progress import Batch

__all__ = ["draw_events", "draw_latency", "draw_quarantine", "draw_run"]

_LINES: Final = tuple(COLOURS[number] for number in (0, 1, 3, 6, 7, 4, 5))
"""None of them looks like the red of kills."""
_KINDS_MAX: Final = len(COLOURS)
_BARS_MAX: Final = 200
_WIDTH: Final = 11
_LEAST_SECONDS: Final = 10
"""Of an axis of time."""


def draw_events(windows: Mapping[tuple[datetime, int], int], length: timedelta, path: Path) -> None:
    """Events by kind and time: ``windows`` has the events of each window's begin and kind."""
    by_kind: dict[int, int] = {}
    for (_, of), events in windows.items():
        by_kind[of] = by_kind.get(of, 0) + events
    shown = sorted(by_kind, key=lambda of: -by_kind[of])[:_KINDS_MAX]
    stack: list[tuple[int | None, str]] = [*zip(shown, COLOURS, strict=False), (None, GREY)]
    times = sorted({begin for begin, _ in windows})
    step = _step(times, length)
    places = sorted({_floor(time, step) for time in times})
    figure, axes = _figure(1, 4.2)
    (only,) = axes
    base = {place: 0 for place in places}
    for kind, colour in stack:
        heights = {place: 0 for place in places}
        for (begin, of), events in windows.items():
            if of == kind or (kind is None and of not in shown):
                heights[_floor(begin, step)] += events
        if not any(heights.values()):
            continue
        name = "other kinds" if kind is None else f"kind {kind}"
        only.bar(
            places,
            [heights[place] for place in places],
            step,
            [base[place] for place in places],
            align="edge",
            color=colour,
            label=name,
        )
        base = {place: base[place] + heights[place] for place in places}
    _set_axes(only)
    only.set_title(f"Events per {_length(step)} of their time (UTC), by kind", loc="left")
    _legend(only, reverse=True)
    _save(figure, path)


def draw_run(batches: Sequence[Batch], kills: Sequence[datetime], path: Path) -> None:
    """Rows of each batch, and what was not read yet at its end, over all runs and their kills."""
    panels: list[tuple[str, list[tuple[Batch, int]]]] = [
        ("Rows of each batch", [(one, one.rows) for one in batches]),
        (
            "Lag: records that were there and not read yet, at the end of each batch",
            [(one, one.lag.records) for one in batches if one.lag and one.lag.records is not None],
        ),
        (
            "Lag of files, in bytes",
            [(one, one.lag.bytes) for one in batches if one.lag and one.lag.files is not None],
        ),
    ]
    panels = [panels[0], *(panel for panel in panels[1:] if panel[1])]
    figure, all_axes = _figure(len(panels), 0.8 + 2.4 * len(panels))
    names = list(dict.fromkeys(one.query for one in batches))
    colours = dict(zip(names, itertools.cycle(_LINES)))
    for axes, (title, points) in zip(all_axes, panels, strict=True):
        for name in names:
            own = [(one.at, value) for one, value in points if one.query == name]
            if own:
                _line(axes, own, colours[name], name)
        axes.set_title(title, loc="left")
        _set_axes(axes, kills)
        _legend(axes)
    _set_times(all_axes)
    _save(figure, path)


def draw_latency(latency: Latency, kills: Sequence[datetime], path: Path) -> None:
    """How long events took to gold, by when they came there."""
    figure, (only,) = _figure(1, 3.6)
    spreads = latency.by_time()
    for name, colour, values in (
        ("worst", COLOURS[1], [spread.worst for _, spread in spreads]),
        ("95 %", COLOURS[3], [spread.most for _, spread in spreads]),
        ("median", COLOURS[0], [spread.median for _, spread in spreads]),
    ):
        if values:
            times = [at for at, _ in spreads]
            _line(only, list(zip(times, values, strict=True)), colour, name)
    title = f"Seconds from {latency.begins} to gold, of what each batch brought there"
    only.set_title(title, loc="left")
    _set_axes(only, kills, unit=0.1)
    _set_times([only])
    _legend(only)
    _save(figure, path)


def draw_quarantine(reasons: Mapping[str, int], path: Path) -> None:
    """What was put aside, by reason."""
    shown = sorted(reasons, key=lambda reason: reasons[reason])
    figure, axes = _figure(1, 1.2 + 0.32 * max(1, len(shown)))
    (only,) = axes
    bars = only.barh(shown, [reasons[reason] for reason in shown], color=COLOURS[1])
    only.bar_label(bars, [f"{reasons[reason]:,}" for reason in shown], padding=4, color=INK)
    only.xaxis.set_visible(False)
    only.spines["bottom"].set_visible(False)
    only.tick_params(left=False)
    only.margins(x=0.1)
    if not shown:
        only.set_axis_off()
    only.set_title("Put aside, by reason" if shown else "Nothing was put aside", loc="left")
    _save(figure, path)


def _figure(rows: int, height: float) -> tuple[Any, Sequence[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, 1, figsize=(_WIDTH, height), layout="constrained", sharex=rows > 1, squeeze=False
        )
    return figure, list(axes[:, 0])


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(axes: Any, points: Sequence[tuple[datetime, float]], colour: str, name: str) -> None:
    times, values = zip(*points, strict=True)
    marker = {"marker": "o", "markersize": 3, "clip_on": False}
    axes.plot(times, values, linewidth=0.8, color=colour, label=name, **marker)


def _mark(axes: Any, kills: Sequence[datetime]) -> None:
    """Where runs broke off."""
    for number, at in enumerate(kills):
        label = "run broken off" if number == 0 else None
        axes.axvline(at, color=RED, linewidth=0.7, linestyle="--", zorder=0, label=label)


def _legend(axes: Any, reverse: bool = False) -> None:
    """Beside the picture, if there is anything in it."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        step = -1 if reverse else 1
        axes.legend(
            handles[::step], labels[::step], loc="upper left", bbox_to_anchor=(1, 1), frameon=False
        )


def _set_axes(axes: Any, kills: Sequence[datetime] = (), unit: float = 1.0) -> None:
    """Counts, or multiples of a unit, by time, with marks at kills. Without data, nothing."""
    from matplotlib import dates
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    if not axes.has_data():
        axes.set_axis_off()
        axes.text(0, 0.9, "nothing yet", transform=axes.transAxes, color=INK)
        return
    _mark(axes, kills)
    axes.set_ylim(0, max(axes.get_ylim()[1], unit))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=unit == 1.0, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.grid(axis="y", color="#d8dee4", linewidth=0.6)
    # Only what changes from one time to the next; the rest stands at the end.
    untyped: Any = dates
    locator = untyped.AutoDateLocator(minticks=4, maxticks=9)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))


def _set_times(all_axes: Sequence[Any]) -> None:
    """Show all data and kills, and some seconds at least, where else there would be years."""
    spans = [axes.dataLim.intervalx for axes in all_axes if axes.has_data()]
    if spans:
        first, last = min(first for first, _ in spans), max(last for _, last in spans)  # in days
        more = max((last - first) / 20, (_LEAST_SECONDS / 86400 - (last - first)) / 2)
        all_axes[0].set_xlim(first - more, last + more)


def _step(times: Sequence[datetime], window: timedelta) -> timedelta:
    """The width of a bar, a window at least: so that there are few enough."""
    hour = timedelta(hours=1)
    span = times[-1] - times[0] if times else timedelta(0)
    for step in (window, hour):
        if step >= window and span <= _BARS_MAX * step:
            return step
    return max(window, timedelta(days=1 + span.days // _BARS_MAX))


def _floor(time: datetime, step: timedelta) -> datetime:
    begin = datetime(1970, 1, 1, tzinfo=time.tzinfo)
    return begin + (time - begin) // step * step


def _length(step: timedelta) -> str:
    """In words, after "per"."""
    seconds = int(step.total_seconds())
    for name, length in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds % length == 0:
            count = seconds // length
            return name if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"
