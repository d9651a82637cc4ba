"""Draw the event store next to its peers, and measure the reads from Python.

python benches/python/nostr.py [--results DIR]: reads nostr.json, which the crate
benches/nostr_peers writes. Draws nostr.svg (events by kind and by day, and the times of queries)
and adds a row to nostr.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from math import floor, log10
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from clock import Watch, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULTS = Path(__file__).resolve().parent.parent / "results"
KINDS_SHOWN = 12
FIND = "find by id, warm"
FINDS = 100_000
FINDS_REQUIRED = 1e5
ROUNDS = 3
NAMES = {
    0: "profile",
    1: "note",
    3: "follows",
    5: "deletion",
    6: "repost",
    7: "reaction",
    42: "channel message",
    1063: "file",
    1984: "report",
}
"""Kinds with a name in the NIPs; the picture shows other kinds by their number."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
GRID = "#d8dee4"


def draw(results: dict[str, Any], path: Path) -> None:
    """Kinds and days above the latencies, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from deedbook._show.style import INK, STYLE

    # Without the salt the file would differ each time.
    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": "deedbook"}
    with plt.rc_context(style):
        figure = plt.figure(figsize=(11, 9), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=(3, 4), width_ratios=(2, 3))
        figure.suptitle(
            f"{results['events']:,} synthetic events, and queries of {results['events_queried']:,}",
            fontweight="bold",
            color=INK,
        )
        draw_kinds(figure.add_subplot(grid[0, 0]), results["kinds"])
        draw_days(figure.add_subplot(grid[0, 1]), results["days"])
        draw_queries(figure.add_subplot(grid[1, :]), results)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def draw_kinds(axes: Axes, kinds: dict[str, int]) -> None:
    """How many events of the most frequent kinds count."""
    from deedbook._show.style import COLOURS, INK

    order = sorted(kinds, key=lambda kind: kinds[kind], reverse=True)
    shown, rest = order[:KINDS_SHOWN], order[KINDS_SHOWN:]
    labels = [f"{NAMES.get(int(kind), '')} {kind}".strip() for kind in shown]
    counts = [kinds[kind] for kind in shown]
    if rest:
        labels.append(f"{len(rest)} others")
        counts.append(sum(kinds[kind] for kind in rest))
    bars = axes.barh(labels[::-1], counts[::-1], color=COLOURS[0])
    axes.bar_label(bars, [f"{count:,}" for count in counts[::-1]], padding=4, color=INK)
    axes.margins(x=0.25)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(left=False)
    axes.set_title("Events by kind")


def draw_days(axes: Axes, days: dict[str, int]) -> None:
    """The number of counted events of each day."""
    from matplotlib.ticker import StrMethodFormatter

    from deedbook._show.style import COLOURS

    numbers = {int(day): count for day, count in days.items()}
    span = range(min(numbers), max(numbers) + 1)
    times = [EPOCH + timedelta(days=day) for day in span]
    counts = [numbers.get(day, 0) for day in span]
    axes.fill_between(times, counts, color=COLOURS[4], alpha=0.8, linewidth=0, step="mid")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_title("Events by day, UTC")


def draw_queries(axes: Axes, results: dict[str, Any]) -> None:
    """The time of each question in each store: a bar to the median, a line to the percentile 99."""
    from matplotlib.ticker import FuncFormatter

    from deedbook._show.style import COLOURS

    medians = {(one["row"], one["store"]): one["median"] for one in results["figures"]}
    rows = dict.fromkeys(one["row"] for one in results["figures"])
    questions = [row.removesuffix(", p50") for row in rows if row.endswith(", p50")]
    # A plain file is only written.
    stores = list(dict.fromkeys(store for row, store in medians if row.endswith(", p50")))
    height = 0.8 / len(stores)
    # A logarithmic axis has no zero: the bars begin at the power of ten below the shortest time.
    shortest = min(time for (row, _), time in medians.items() if row.endswith(", p50"))
    begin = 10.0 ** floor(log10(shortest))
    for number, store in enumerate(stores):
        places = [i - 0.4 + height * (number + 0.5) for i in range(len(questions))]
        half = [medians[f"{question}, p50", store] for question in questions]
        # A store with too few questions has no percentile 99.
        found = [medians.get((f"{question}, p99", store)) for question in questions]
        most = [time or median for time, median in zip(found, half, strict=True)]
        widths = [time - begin for time in half]
        colour = COLOURS[number]
        axes.barh(places, widths, height * 0.85, left=begin, color=colour, label=store)
        axes.hlines(places, half, most, color=colour, linewidth=1.5)
        axes.plot(most, places, "|", color=colour, markersize=8)
    axes.set_xscale("log")
    axes.set_xlim(left=begin)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: shown(time)))
    axes.set_yticks(range(len(questions)), questions)
    axes.invert_yaxis()
    axes.tick_params(left=False)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.legend(frameon=False, loc="lower right")
    axes.set_title("Time of a query: the median, and a line to the 99th percentile")


def shown(microseconds: float) -> str:
    """A time with its unit."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:g} {unit}"
    return f"{microseconds:g} us"


def more_events(real: Path, count: int) -> Iterator[bytes]:
    """JSON lines of events like the real ones, at other times and therefore with other ids."""
    events = [json.loads(line) for line in real.read_bytes().splitlines()]
    # Only kinds that do not replace or delete other events.
    events = [one for one in events if one["kind"] in (1, 6, 7)]
    for number in range(count):
        one = events[number % len(events)]
        one["created_at"] -= 1
        fields = [0, *(one[key] for key in ("pubkey", "created_at", "kind", "tags", "content"))]
        hashed = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        one["id"] = sha256(hashed.encode()).hexdigest()
        yield json.dumps(one, ensure_ascii=False).encode() + b"\n"


def measure(path: Path, events: int) -> None:
    """Find events by their ids in a store as large as Rust's, and add the rate to the page."""
    import random
    import tempfile

    import deedbook

    real = Path(__file__).resolve().parents[3] / "shared/data/nostr-events.jsonl"
    if not real.exists() or not path.exists():
        return
    with (
        tempfile.TemporaryDirectory() as place,
        deedbook.EventStore.create(Path(place) / "store") as store,
    ):
        lines = Path(place) / "events.jsonl"
        with lines.open("wb") as file:
            file.writelines(more_events(real, events))
        assert store.import_json(lines).stored == events
        ids = [found.id for found in store]
        wanted = random.Random(1).choices(ids, k=FINDS)
        rates = []
        for _ in range(ROUNDS):
            watch = Watch()
            assert all(store.get(id) is not None for id in wanted)
            rates.append(FINDS / watch.stop()[0])
    rate, met = median(rates), "yes" if median(rates) >= FINDS_REQUIRED else "**no**"
    needed = f"{FINDS_REQUIRED / 1e3:.1f} k/s"
    row = f"| {FIND}, from Python | {rate / 1e3:.1f} k/s | none |  | {needed} | {met} |"
    lines = path.read_text().splitlines()
    lines = [line for line in lines if not line.startswith(f"| {FIND}, from Python |")]
    after = next(number for number, line in enumerate(lines) if line.startswith(f"| {FIND} |"))
    lines.insert(after + 1, row)
    path.write_text("\n".join(lines) + "\n")
    say(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    source = given.results / "nostr.json"
    if not source.exists():
        say(f"no picture: {source} is not there; run: make bench")
        return
    results = json.loads(source.read_text())
    draw(results, given.results / "nostr.svg")
    say("written: nostr.svg in the directory of the results")
    measure(given.results / "nostr.md", results["events"])


if __name__ == "__main__":
    main()
