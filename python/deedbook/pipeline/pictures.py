"""The pictures of a pipeline's report, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deedbook._style import COLOURS, GREY, INK, RED, STYLE

__all__ = ["Batch", "draw_events", "draw_quarantine", "draw_run"]

_KINDS_MAX: Final = len(COLOURS)
_BARS_MAX: Final = 200
_WIDTH: Final = 11

Batch = tuple[str, datetime, int, float]
"""Of a query: its name, when the batch ended, rows, seconds."""


def draw_events(hours: Mapping[tuple[datetime, int], int], path: Path) -> None:
    """Events by kind and time: ``hours`` has the events of each hour and kind."""
    by_kind: dict[int, int] = {}
    for (_, of), events in hours.items():
        by_kind[of] = by_kind.get(of, 0) + events
    shown = sorted(by_kind, key=lambda of: -by_kind[of])[:_KINDS_MAX]
    stack: list[tuple[int | None, str]] = [*zip(shown, COLOURS, strict=False), (None, GREY)]
    times = sorted({hour for hour, _ in hours})
    step = _step(times)
    places = sorted({_floor(time, step) for time in times})
    figure, axes = _figure(1, 4.2)
    (only,) = axes
    base = {place: 0 for place in places}
    for kind, colour in stack:
        heights = {place: 0 for place in places}
        for (hour, of), events in hours.items():
            if of == kind or (kind is None and of not in shown):
                heights[_floor(hour, step)] += events
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
    _count_axis(only)
    unit = "hour" if step == timedelta(hours=1) else f"{step.days} days" if step.days > 1 else "day"
    only.set_title(f"Events per {unit} of their time (UTC), by kind", loc="left")
    if places:
        handles, labels = only.get_legend_handles_labels()
        only.legend(
            handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False
        )
    _save(figure, path)


def draw_run(
    batches: Sequence[Batch],
    latencies: Sequence[tuple[datetime, float]],
    latency_of: str,
    kills: Sequence[datetime],
    path: Path,
) -> None:
    """Rows of each batch, and how long events took to gold, over all runs and their kills."""
    figure, (upper, lower) = _figure(2, 6.4)
    names = sorted({name for name, *_ in batches})
    for name, colour in zip(names, COLOURS, strict=False):
        points = [(at, rows) for of, at, rows, _ in batches if of == name]
        upper.plot(
            [at for at, _ in points],
            [rows for _, rows in points],
            marker="o",
            markersize=3,
            linewidth=0.8,
            color=colour,
            label=name,
        )
    upper.set_title("Rows of each batch", loc="left")
    _count_axis(upper)
    lower.plot(
        [at for at, _ in latencies],
        [seconds for _, seconds in latencies],
        linestyle="none",
        marker="o",
        markersize=3,
        color=COLOURS[0],
    )
    lower.set_title(f"Seconds {latency_of}", loc="left")
    lower.set_ylim(bottom=0)
    lower.grid(axis="y", color="#d8dee4", linewidth=0.6)
    for axes in (upper, lower):
        for number, at in enumerate(kills):
            label = "run broken off" if number == 0 and axes is upper else None
            axes.axvline(at, color=RED, linewidth=0.7, alpha=0.7, label=label)
    if batches:
        upper.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
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


def _count_axis(axes: Any) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="#d8dee4", linewidth=0.6)


def _step(times: Sequence[datetime]) -> timedelta:
    """The width of a bar: so that there are few enough."""
    if not times or times[-1] - times[0] <= timedelta(hours=_BARS_MAX):
        return timedelta(hours=1)
    days = (times[-1] - times[0]).days
    return timedelta(days=1 + days // _BARS_MAX)


def _floor(time: datetime, step: timedelta) -> datetime:
    if step == timedelta(hours=1):
        return time
    begin = datetime(1970, 1, 1, tzinfo=time.tzinfo)
    return begin + (time - begin) // step * step
