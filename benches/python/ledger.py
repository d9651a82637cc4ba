"""Measure the ledger next to other ways to keep events until a program sends them, all in one run.

Without options: about fifteen minutes and 12 GB of disk. Writes ledger.json and ledger.md, and with
`outage.py` the picture ledger.svg.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import spooling
from clock import Figures, human, say
from facts import facts, load, loads, occasion, provisional, when
from outage import draw, story
from peers import DURABLE, EACH, LOST
from report import HEAD, Row, against, best, cell
from run import RESULTS_HELP, command, completed, data_dir, installed, write
from spooling import MIB, Spools
from spools import LEDGER, LINES, OURS, PERSIST, SPOOLS, Lines, Spool, events
from stores import make_keys

ALONE = "python benches/python/ledger.py"
PARTS = ["spools", "send", "memory", "picture"]
KILLED_EVENTS = 2000
"""Events in the spools of the killed processes."""


def arguments() -> argparse.Namespace:
    """The command line; `--quick` changes the defaults of the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, two minutes: to try the benchmark")
    add("--events", type=int, help="events per spool (200000); slow ones are given fewer")
    add("--event-bytes", type=int, default=256)
    add("--durable", type=int, help="events with a sync each (2000)")
    add("--batches", type=int, help="batches to send (400)")
    add("--backlogs", type=int, nargs="+", help="MiB to be sent, for the memory (64 1024 10240)")
    add("--single", type=int, help="MiB of the file that is read in one piece (1024)")
    add("--outage", type=int, help="seconds of the picture (60)")
    add("--repetitions", type=int, help="of which the median is taken (5)")
    add("--seed", type=int, default=20261122)
    add("--stores", nargs="+", help="only these spools, by the beginnings of their names")
    add("--only", choices=PARTS, nargs="+", default=PARTS, help="only these parts")
    add("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    add("--results", type=Path, help=RESULTS_HELP)
    quick = {
        "events": (20_000, 200_000),
        "durable": (200, 2000),
        "batches": (40, 400),
        "backlogs": ([16, 64], [64, 1024, 10240]),
        "single": (64, 1024),
        "outage": (20, 60),
        "repetitions": (2, 5),
    }
    return completed(parser, quick)


def measure(given: argparse.Namespace, place: Path, kinds: list[type[Spool]]) -> Figures:
    """All figures."""
    figures = Figures()
    jams = events(given.events, given.event_bytes, given.seed)
    if "spools" in given.only:
        (place / "spools").mkdir()
        (place / "killed").mkdir()
        keys = make_keys(given.events)
        spools = Spools(figures, kinds, place / "spools", jams, keys, given.seed)
        for repetition in range(1, given.repetitions + 1):
            spools.run(repetition, given.durable)
        few = jams[:KILLED_EVENTS]
        Spools(figures, kinds, place / "killed", few, keys, given.seed).lost()
    with spooling.both_servers() as urls:
        if "send" in given.only:
            for repetition in range(1, given.repetitions + 1):
                say(f"repetition {repetition}: taking and sending")
                spooling.take(figures, place, jams[0], given.batches)
                spooling.send(figures, place, jams[0], given.batches, urls)
                url = urls[spooling.COUNTING]
                spooling.send_far(figures, place, jams[0], given.batches // 4, url)
        if "memory" in given.only:
            backlogs = [backlog * MIB for backlog in given.backlogs]
            url = urls[spooling.COUNTING]
            spooling.measure_memory(figures, place, jams[0], backlogs, given.single * MIB, url)
    return figures


def rate_of(figures: Figures, what: str, measure: str, store: str, least: float, of: str) -> Row:
    """A promise about a rate, in bytes or events."""
    ours = figures.median(measure, store)
    required = f"{human(least)}{of}/s"
    if ours is None:
        return Row(what, "", "", "", required, None)
    peer = best(figures, measure, LINES | {"sqlite3, WAL"})
    shown = f"{peer[0]} {human(peer[1])}{of}/s" if peer else "none"
    ratio = f"{ours / peer[1]:.2f}" if peer else ""
    return Row(what, f"{human(ours)}{of}/s", shown, ratio, required, ours >= least)


def constant(figures: Figures, backlogs: list[int]) -> Row:
    """The memory of a sender, which must not grow with its backlog."""
    what = f"memory of a sender, backlog of {' and '.join(map(str, backlogs))} MiB"
    found = [figures.median(spooling.drained(f"{backlog} MiB"), LEDGER) for backlog in backlogs]
    peaks = [peak for peak in found if peak is not None]
    required = "the same, within 10 %"
    if len(peaks) < 2:
        return Row(what, "", "", "", required, None)
    shown = " and ".join(f"{peak:.1f}" for peak in peaks) + " MiB"
    ratio = max(peaks) / min(peaks)
    return Row(what, shown, "none", f"{ratio:.2f}", required, ratio <= 1.1)


def promises(figures: Figures, backlogs: list[int]) -> list[Row]:
    """The Speed paragraph of the ledger, with the measured figures."""
    others = {kind.name for kind in SPOOLS} - OURS
    each, batch = "append one by one, surviving kill -9", "append in batches of 1,000"
    lines, persist = "above the JSON-lines file", "5 x persist-queue"
    rows = [
        against(figures, each, EACH, lines, 1.0, {Lines.name}, store=LEDGER),
        against(figures, each, EACH, f"{lines}, without its buffer", 1.0, LINES, store=LEDGER),
        against(figures, each, EACH, persist, 5.0, PERSIST, store=LEDGER),
        against(figures, batch, spooling.BATCH, "above all", 1.0, others, store=LEDGER),
        rate_of(figures, "fetch and `readinto` a 475 KB file", spooling.READ, LEDGER, 500e6, "B"),
    ]
    for sender in ("Sender", "AsyncSender"):
        store, what = f"{sender}, {spooling.COUNTING}", f"`{sender}`, batches of 475 KB, loopback"
        rows.append(rate_of(figures, what, spooling.SEND, store, 2e5, " events"))
    return [*rows, constant(figures, backlogs)]


def markdown(figures: Figures, about: dict[str, Any]) -> str:
    run, machine = about["run"], about["machine"]
    lines = [
        "# Speed of the ledger beside what people use in its place",
        "",
        f"Made by `{run['command']}`{when(run)}: {human(run['events'])} events of "
        f"{run['event_bytes']} bytes, of which a slow spool is given a part (durable: "
        f"{human(run['durable'])}), medians of {run['repetitions']} repetitions that visit every "
        f"spool in turn, in changing order. {machine['processors']} x {machine['processor']}, "
        f"{machine['memory_gib']} GiB, {machine['kernel']}, {machine['filesystem']}, "
        f"{machine['python']}; {loads(machine)}. Absolute figures move between machines; compare "
        "within the table. All runs, versions and seeds: [ledger.json](ledger.json); Rust: "
        "[ledger-rust.md](ledger-rust.md); HTTP clients: [http.md](http.md).",
        "",
    ]
    if run["quick"]:
        lines += ["**A quick run: too small to judge by.**", ""]
    lines += provisional(machine["load_before"])
    lines += HEAD
    lines += [row.line() for row in promises(figures, run["backlogs"])]
    lines += ["", "## Every spool", ""]
    lines += [
        "Per second, by wall time and by processor time. Events: how many a repetition appends one "
        "by one, and in batches.",
        "",
    ]
    lines += table(figures, about["stores"], run["events"])
    lines += [
        "",
        f"Lost: events missing after kill -9 of a process that had appended {KILLED_EVENTS:,}. A "
        "power cut takes what the last column says of events appended one by one; those of "
        "the column durable are on stable storage each. Read: bytes of a request's body per "
        "second, from a file that is in memory.",
    ]
    lines += ["", "| spool | version | batch | one by one | read | reading checks |"]
    lines += ["|---" * 6 + "|"]
    for kind in SPOOLS:
        version = about["stores"].get(kind.name)
        if version is not None:
            shown = [kind.batch_mode, kind.each_mode, kind.read_mode or "", kind.checks]
            lines.append(f"| {kind.name} | {version} | " + " | ".join(shown) + " |")
    missing = ", ".join(about["missing"])
    if missing:
        lines += ["", f"Not installed, so not measured: {missing}."]
    lines += ["", "## The ledger alone", "", "| what | median | by processor time |"]
    lines += ["|---|---|---|"]
    for measure in (spooling.TAKE, spooling.SEND, spooling.FAR, spooling.FILL):
        of = "B" if measure == spooling.TAKE else " events"
        for store, figure in figures.by.get(measure, {}).items():
            suffix = "" if store == LEDGER else f": {store}"
            shown_by_cpu = human(figure.median_by_cpu or 0)
            lines.append(f"| {measure}{suffix} | {cell(figure)}{of}/s | {shown_by_cpu}{of}/s |")
    for measure, stores in figures.by.items():
        if measure.startswith("peak memory"):
            before = figures.median(measure, spooling.BEGUN)
            begun = "" if before is None else f", {before:.1f} MiB {spooling.BEGUN}"
            lines.append(f"| {measure} | {cell(stores[LEDGER])}{begun} | |")
    lines += [
        "",
        "Processor time is that of the measured process, all its threads, not of the server. With "
        "the test endpoint it is the server that takes the time: it parses every event in Python. "
        "The link of 50 ms is `benches/python/far.py`: everything arrives 25 ms late in each "
        "direction, and a new connection waits 50 ms more; its bandwidth has no limit.",
    ]
    if "picture" in about["run"]["only"]:
        lines += ["", "## While the server fails and recovers", "", f"![{ALT}](ledger.svg)"]
    return "\n".join(lines) + "\n"


ALT = "Backlog, rate and retries while a server answers 503, resets connections, and stalls"


def table(figures: Figures, versions: dict[str, str], events: int) -> list[str]:
    """All spools and their measurements, with the number of events for each spool."""
    columns = {
        EACH: "one by one",
        spooling.BATCH: "batch",
        DURABLE: "durable",
        spooling.READ: "read, B",
    }
    heads = [f"{head} | by CPU" for head in columns.values()]
    lines = ["| spool | events | " + " | ".join(heads) + " | lost | power cut |", "|---" * 12 + "|"]
    for kind in SPOOLS:
        if kind.name not in versions:
            continue
        cells = [human(kind.given(events))]
        for measure in columns:
            figure = figures.by.get(measure, {}).get(kind.name)
            by_cpu = figure and figure.median_by_cpu
            cells += [cell(figure, False), human(by_cpu) if by_cpu else ""]
        cells += [cell(figures.by.get(LOST, {}).get(kind.name), False), kind.power]
        lines.append(f"| {kind.name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    given = arguments()
    kinds, versions, missing = installed(given.stores, SPOOLS, LEDGER)
    place = data_dir(given.dir)
    begun = time.monotonic()
    machine, day = facts(place), occasion()
    say(f"data on {machine['filesystem']}, spools: {', '.join(versions)}")
    picture = None
    try:
        figures = measure(given, place, kinds)
        if "picture" in given.only:
            picture = story(place / "outage", given.outage)
    finally:
        shutil.rmtree(place)
    machine["load_after"] = load()
    sizes = ("events", "event_bytes", "durable", "batches", "backlogs", "single", "outage")
    run: dict[str, Any] = {"command": command(sys.argv[1:], ALONE), "quick": given.quick}
    run |= {name: getattr(given, name) for name in (*sizes, "repetitions", "seed", "only")}
    run |= day
    run["seconds"] = round(time.monotonic() - begun)
    about = {"run": run, "machine": machine, "stores": versions, "missing": missing}
    if picture is not None:
        about["outage"] = picture.to_json()
    text = markdown(figures, about)
    print(text)
    shown = json.dumps({**about, "figures": figures.to_json()}, indent=1)
    write(given.results, {"ledger.json": shown + "\n", "ledger.md": text})
    if given.results is not None and picture is not None:
        draw(picture, given.results / "ledger.svg")
        say("written: ledger.svg")


if __name__ == "__main__":
    main()
