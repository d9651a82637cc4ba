"""The chart of the README, from python.json: four operations of a log, next to other stores.

The chart draws only measured figures; a store without a figure has a note in its place.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
SOURCE = RESULTS / "python.json"
CHART = RESULTS / "first-minute.svg"

# The stores by their names in python.json, and in the chart.
STORES = {
    "deedbook WAL": "Deedbook WAL",
    "deedbook": "Deedbook Book",
    "sqlite3 (WAL)": "SQLite",
    "py-lmdb": "LMDB",
    "rocksdict (RocksDB)": "RocksDB",
    "os.write, 10 lines": "plain files",
}
# A panel: the figure's name, its title, whether less is better.
PANELS = (
    ("append one by one, surviving kill -9", "append, survives kill -9", False),
    ("append one by one, each on stable storage", "durable commit, one thread", False),
    ("iterate as bytes", "iterate", False),
    ("reopen after kill -9", "reopen after kill -9", True),
)
WIDTH, LEFT, BAR, GAP, TOP = 380, 110, 16, 6, 44
OURS, OTHERS = "#00796b", "#90a4ae"


def chart(results: dict[str, Any]) -> str:
    """The chart as SVG."""
    high = TOP + len(STORES) * (BAR + GAP) + 20
    panels = [
        f'<g transform="translate({index % 2 * WIDTH},{index // 2 * high})">'
        + panel(results["figures"][name], title, less)
        + "</g>"
        for index, (name, title, less) in enumerate(PANELS)
    ]
    machine = results["machine"]
    note = (
        f"{results['run']['records']:,} records of {results['run']['record_bytes']} bytes, "
        f"from Python, medians; {machine['processors']} x {machine['processor']}, "
        "benches/results/python.json"
    )
    size = f"{2 * WIDTH} {2 * high + 24}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(panels)
        + f'\n<text x="12" y="{2 * high + 10}" font-size="11" fill="#607d8b">{note}</text></svg>\n'
    )


def panel(figures: dict[str, Any], title: str, less: bool) -> str:
    """One figure of all stores, as bars from 0."""
    measured = {
        name: figures[name]["median"]
        for name in STORES
        if figures.get(name, {}).get("median") is not None
    }
    most = max(measured.values())
    better = "less is better" if less else "more is better"
    parts = [
        f'<text x="12" y="24" font-size="14" font-weight="bold">{title}</text>'
        f'<text x="{WIDTH - 12}" y="24" text-anchor="end" fill="#607d8b">{better}</text>'
    ]
    for row, (name, label) in enumerate(STORES.items()):
        y = TOP + row * (BAR + GAP)
        parts.append(f'<text x="{LEFT - 6}" y="{y + 12}" text-anchor="end">{label}</text>')
        if name not in measured:
            parts.append(f'<text x="{LEFT}" y="{y + 12}" fill="#607d8b">not measured</text>')
            continue
        value = measured[name]
        text = shown(value, figures[name]["unit"])
        wide = max(1.0, value / most * (WIDTH - LEFT - 80))
        fill = OURS if name.startswith("deedbook") else OTHERS
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="{fill}"/>'
            f'<text x="{LEFT + wide + 5:.1f}" y="{y + 12}">{text}</text>'
        )
    return "\n".join(parts)


def shown(value: float, unit: str) -> str:
    """A figure with three digits and its unit."""
    if unit != "per s":
        return f"{value:.3g} {unit}"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}/s"
    return f"{value:.3g} /s"


if __name__ == "__main__":
    CHART.write_text(chart(json.loads(SOURCE.read_text())))
