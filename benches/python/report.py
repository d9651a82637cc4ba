"""The figures as tables: the promises of the project, and all measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import peers
import scale
from clock import Figure, Figures, human
from facts import loads, provisional, when
from stores import LOOP, OURS, STORES, WAL, Lmdb, Plyvel

MIB_MAX = 64
HEAD = [
    "| what | ours | best peer, or the one asked for | ratio | required | met |",
    "|---" * 6 + "|",
]
"""The head of the table of the promises."""


@dataclass
class Row:
    """One promise of the Speed table."""

    what: str
    ours: str
    peer: str
    ratio: str
    required: str
    met: bool | None

    def line(self) -> str:
        unmet = "not measured" if self.required else ""
        met = {True: "yes", False: "**no**", None: unmet}[self.met]
        return (
            f"| {self.what} | {self.ours} | {self.peer} | {self.ratio} | {self.required} | {met} |"
        )


def best(figures: Figures, measure: str, names: set[str] | None = None) -> tuple[str, float] | None:
    """The fastest peer and its median; a peer that failed in a repetition does not count."""
    found = [
        (store, figure.median)
        for store, figure in figures.by.get(measure, {}).items()
        if store not in (OURS, WAL) and not figure.failed and (names is None or store in names)
    ]
    rates = [(store, median) for store, median in found if median is not None]
    return max(rates, key=lambda rate: rate[1]) if rates else None


def against(
    figures: Figures,
    what: str,
    measure: str,
    required: str,
    factor: float | None,
    names: set[str] | None = None,
    floor: float | None = None,
    store: str = OURS,
) -> Row:
    """A promise that compares with the best peer, or with the best of `names`. A rate of `floor` is
    enough alone. No factor means no promise."""
    ours, peer = figures.median(measure, store), best(figures, measure, names)
    if ours is None or peer is None:
        return Row(what, "", "", "", required, None)
    ratio = ours / peer[1]
    enough = floor is not None and ours >= floor
    met = None if factor is None else ratio >= factor or enough
    shown = f"{peer[0]} {human(peer[1])}/s"
    return Row(what, f"{human(ours)}/s", shown, f"{ratio:.2f}", required, met)


def at_least(figures: Figures, what: str, measure: str, rate: float, unit: str) -> Row:
    """A promise of a rate."""
    ours, peer = figures.median(measure, OURS), best(figures, measure)
    required = f"{human(rate)} {unit}/s"
    if ours is None:
        return Row(what, "", "", "", required, None)
    shown = f"{peer[0]} {human(peer[1])}/s" if peer else "none"
    ratio = f"{ours / peer[1]:.2f}" if peer else ""
    return Row(what, f"{human(ours)}/s", shown, ratio, required, ours >= rate)


def opening(figures: Figures, small: int, large: int) -> Row:
    """The time to open, a few milliseconds for any size."""
    first = figures.median(scale.clean(small), OURS)
    second = figures.median(scale.clean(large), OURS)
    what = f"open {human(small)} small events, clean"
    required = f"under 5 ms, at {human(large)} the same or within 0.5 ms"
    if first is None or second is None:
        shown = "" if first is None else f"{first:.2f} ms"
        return Row(what, shown, "", "", required, None)
    # Two times below a millisecond count as the same, because the clock cannot separate them.
    met = first < 5 and second < max(1.5 * first, first + 0.5)
    return Row(what, f"{first:.2f} ms, {second:.2f} ms", "none", "", required, met)


def memory(figures: Figures, what: str, shown: str, total: int) -> Row:
    """The memory for reading, small for any size."""
    ours = figures.median(scale.memory(what), OURS)
    text = f"memory to {shown} {total // scale.MIB} MiB"
    if ours is None:
        return Row(text, "", "", "", f"under {MIB_MAX} MiB", None)
    return Row(text, f"{ours:.1f} MiB", "none", "", f"under {MIB_MAX} MiB", ours < MIB_MAX)


def promises(figures: Figures, small: int, large: int, total: int) -> list[Row]:
    """The Speed table of the first issue, with the measured figures."""
    return [
        against(
            figures,
            "`append_many`, not synced",
            peers.BATCH,
            "the best of py-lmdb, plyvel, 10 lines",
            1.0,
            {LOOP, Lmdb.name, Plyvel.name},
        ),
        against(figures, "`append` one by one, surviving kill -9", peers.EACH, "2 x the best", 2.0),
        against(
            figures,
            "iterate as `bytes`, CRC checked",
            peers.ITERATE,
            f"3 M/s, or 0.7 x {Lmdb.name}, which checks nothing",
            0.7,
            {Lmdb.name},
            3e6,
        ),
        against(
            figures,
            "iterate as `bytes`, CRC checked, beside the quickest, whatever it checks",
            peers.ITERATE,
            "",
            None,
        ),
        at_least(figures, "to Arrow in batches, CRC checked", peers.ARROW, 8e6, "rows"),
        at_least(figures, "to one Arrow table, CRC checked", peers.TABLE, 8e6, "rows"),
        opening(figures, small, large),
        at_least(figures, "open without the sidecar", scale.bare(small), 15e6, "deeds"),
        memory(figures, "iterate", "iterate over", total),
        memory(figures, "verify", "verify", total),
    ]


def wal_promises(figures: Figures, threads: int, tasks: int) -> list[Row]:
    """The rows of Python in the Speed table of the WAL's issue."""
    each, batch = "`Wal.append` one by one, surviving kill -9", "`Wal.append_many`, not synced"
    rows = [
        against(figures, each, peers.EACH, "3 x the best", 3.0, store=WAL),
        against(figures, batch, peers.BATCH, "1.5 x the best", 1.5, store=WAL),
    ]
    single = figures.median(peers.DURABLE, WAL)
    for what, measure, factor in (
        (
            f"`AsyncWal.commit`, {human(tasks)} tasks, {peers.COMMITS} each",
            peers.in_tasks(tasks),
            20.0,
        ),
        (f"`Wal.append`, always, {threads} threads", peers.group(threads), 10.0),
    ):
        ours = figures.median(measure, WAL)
        required = f"{factor:.0f} x one thread"
        if ours is None or single is None:
            rows.append(Row(what, "", "", "", required, None))
            continue
        ratio = ours / single
        shown = f"one thread {human(single)}/s"
        rows.append(Row(what, f"{human(ours)}/s", shown, f"{ratio:.1f}", required, ratio >= factor))
    return rows


def cell(figure: Figure | None, sign: bool = True) -> str:
    """A median with its unit, or the error of a repetition."""
    if figure is None:
        return ""
    if figure.failed or figure.median is None:
        return f"fails: {(figure.failed or '').partition(':')[0]}"
    if figure.unit == "per s":
        return human(figure.median)
    return f"{figure.median:.3g}" + (f" {figure.unit}" if sign else "")


def table(figures: Figures, columns: dict[str, str]) -> list[str]:
    """All stores in some measurements; `columns` maps measurements to headings."""
    lines = ["| store | " + " | ".join(columns.values()) + " |", "|---" * (len(columns) + 1) + "|"]
    for store in (kind.name for kind in STORES):
        cells = [figures.by.get(measure, {}).get(store) for measure in columns]
        if any(cells):
            lines.append(
                f"| {store} | " + " | ".join(cell(figure, False) for figure in cells) + " |"
            )
    return lines


def markdown(figures: Figures, about: dict[str, Any]) -> str:
    run, machine = about["run"], about["machine"]
    threads = run["threads"]
    small, large = run["open_events"]
    rows = promises(figures, small, large, run["memory_bytes"])
    lines = [
        "# Speed of Deedbook beside its peers",
        "",
        f"Made by `{run['command']}`{when(run)}: {human(run['records'])} records of "
        f"{run['record_bytes']} bytes (durable: {human(run['durable_records'])}), medians of "
        f"{run['repetitions']} repetitions that visit every store in turn, in changing order. "
        f"{machine['processors']} x {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['kernel']}, {machine['filesystem']}, {machine['python']}; "
        f"{loads(machine)}. "
        "Absolute figures move between machines; compare within the table. "
        "All runs, versions and seeds: [python.json](python.json); Rust: [wal.md](wal.md).",
        "",
    ]
    if run["quick"]:
        lines += ["**A quick run: too small to judge by.**", ""]
    lines += provisional(machine["load_before"])
    lines += HEAD
    lines += [row.line() for row in rows]
    lines += [row.line() for row in wal_promises(figures, threads, run["tasks"])]
    lines += ["", "## Every store", "", "Records per second; times in ms.", ""]
    lines += table(
        figures,
        {
            peers.BATCH: "batch",
            peers.EACH: "one by one",
            peers.DURABLE: "durable",
            peers.group(threads): f"durable, {threads} threads",
            peers.in_tasks(run["tasks"]): f"durable, {human(run['tasks'])} tasks",
            peers.ITERATE: "iterate",
            peers.ARROW: "Arrow batches",
            peers.TABLE: "Arrow table",
            peers.CLEAN: "reopen clean",
            peers.KILLED: "reopen after kill -9",
            peers.LOST: "records lost",
        },
    )
    lines += ["", "Reopened after kill -9, a store may be slow because it syncs what it found."]
    lines += ["", "| store | version | batch | one by one | reading checks | reopened |"]
    lines += ["|---" * 6 + "|"]
    for kind in STORES:
        version = about["stores"].get(kind.name)
        shown = [kind.batch_mode, kind.each_mode, kind.checks, kind.reopen_mode]
        if version is not None:
            lines.append(f"| {kind.name} | {version} | " + " | ".join(shown) + " |")
    missing = ", ".join(about["missing"])
    if missing:
        lines += ["", f"Not installed, so not measured: {missing}."]
    lines += ["", "## Ours alone, and the floor", "", "| what | median |", "|---|---|"]
    for measure, stores in figures.by.items():
        alone = measure.startswith(("open ", "memory ", "floor")) or measure in (
            peers.READER,
            peers.in_new_tasks(run["tasks"]),
        )
        for store, figure in stores.items() if alone else ():
            suffix = "" if store == OURS else f", {store}"
            per = "/s" if figure.unit == "per s" else ""
            lines.append(f"| {measure}{suffix} | {cell(figure)}{per} |")
    return "\n".join(lines) + "\n"
