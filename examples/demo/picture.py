"""The picture of the report, drawn without a display."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from aggregate import OTHER, Summary

from deedbook._cli.first_minute import size
from deedbook._show.style import COLOURS, GREY, INK, RED, STYLE
from deedbook._show.times import EPOCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(summary: Summary, title: str, ok: bool, path: Path) -> None:
    """Events by time, stacked by type, above bytes by type."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    nbytes: dict[str, int] = {}
    for count in summary.series:
        nbytes[count.type] = nbytes.get(count.type, 0) + count.bytes
    # Stacked from the most frequent type up, the rest on top.
    order = [count.type for count in summary.types if count.type in nbytes and count.type != OTHER]
    colours: dict[str, str] = dict(zip(order, COLOURS, strict=False))
    if OTHER in nbytes:
        order.append(OTHER)
        colours[OTHER] = GREY

    with plt.rc_context(STYLE):
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(12, 8), height_ratios=(5, 1.2 + 0.27 * len(order)), layout="constrained"
        )
        figure.suptitle(title, fontweight="bold", color=INK if ok else RED)
        _draw_times(upper, summary, order, colours)
        _draw_bytes(lower, sorted(order, key=lambda name: nbytes[name]), nbytes, colours)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _draw_times(axes: Axes, summary: Summary, order: list[str], colours: dict[str, str]) -> None:
    from matplotlib.ticker import StrMethodFormatter

    timed = [(count.time, count) for count in summary.series if count.time is not None]
    times = sorted({time for time, _ in timed})
    title = f"Events per {summary.bucket}, UTC"
    without = sum(count.events for count in summary.series if count.time is None)
    notes = [f"{without:,} without a time"] if without else []
    if times:
        places = {time: i for i, time in enumerate(times)}
        lefts = [_days(time) for time in times]
        widths = [_days(_next(time, summary.bucket)) - _days(time) for time in times]
        base = [0] * len(times)
        for name in order:
            heights = [0] * len(times)
            for time, count in timed:
                if count.type == name:
                    heights[places[time]] = count.events
            axes.bar(lefts, heights, widths, base, align="edge", color=colours[name], label=name)
            base = [low + height for low, height in zip(base, heights, strict=True)]
        first, last = times[0], _next(times[-1], summary.bucket)
        if summary.middle and last - first > 3 * (summary.middle[1] - summary.middle[0]):
            # A few events with a wrong clock would squeeze all others into a line.
            margin = (summary.middle[1] - summary.middle[0]) / 20 + timedelta(hours=1)
            first = max(first, summary.middle[0] - margin)
            last = min(last, summary.middle[1] + margin)
            outside = sum(count.events for time, count in timed if not first <= time <= last)
            notes += [f"{outside:,} outside of the axis"] if outside else []
        axes.set_xlim(_days(first), _days(last))
        axes.xaxis_date()
        handles, labels = axes.get_legend_handles_labels()
        # From top to bottom as in the stack.
        axes.legend(
            handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1, 1), frameon=False
        )
    axes.set_title(title + (f" ({'; '.join(notes)})" if notes else ""))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color="#d8dee4", linewidth=0.6)


def _days(time: datetime) -> float:
    """Days since 1970, which is how Matplotlib places dates on an axis."""
    return (time - EPOCH) / timedelta(days=1)


def _next(time: datetime, bucket: str) -> datetime:
    """The beginning of the next stretch of time."""
    if bucket == "month":
        return (time.replace(day=1) + timedelta(days=32)).replace(day=1)
    return time + (timedelta(hours=1) if bucket == "hour" else timedelta(days=1))


def _draw_bytes(
    axes: Axes, names: list[str], nbytes: dict[str, int], colours: dict[str, str]
) -> None:
    bars = axes.barh(names, [nbytes[name] for name in names], color=[colours[n] for n in names])
    axes.bar_label(bars, [size(nbytes[name]) for name in names], padding=4, color=INK)
    axes.margins(x=0.1)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(left=False)
    axes.set_title("Bytes by type")
