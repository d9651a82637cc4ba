"""Measure migrations from LMDB, conversions, and the layout slots next to packed, all in one run.

Without options: some minutes and 5 GB of disk. Writes migrate.json and migrate.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from clock import Figures, Watch, human, say
from facts import compared, facts, load, occasion, on_machine, when
from report import Row, cell
from run import RESULTS_HELP, command, completed, data_dir, write

from deedbook import Book

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = ("packed", "slots")
BATCH = 1024
SLOT_BYTES, HEADER_BYTES = 4096, 48
WALK = "walk over all events"
MIGRATE = "migrate"
EXPORT = "export-lmdb"
CONVERT = "convert"
SYNC = "floor: as many bytes written, and one fdatasync"
DURABLE = "append and sync, one event"
FLOOR = "floor: one write of an event to a plain file, and fdatasync"
GROWS, HEADED, RESERVED = "it grows", "it grows, and a header", "into reserved space"
MEDIAN = "find an event, median"
WORST = "find an event, the worst"
WORST_BUSY = "find an event, the worst by processor time"


def arguments() -> argparse.Namespace:
    """The command line; `--quick` changes the defaults of the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, a minute: to try the benchmark itself")
    add("--events", type=int, help="events that are migrated (1000000)")
    add("--event-bytes", type=int, nargs=2, default=[100, 200], help="bytes of a jam, from and to")
    add("--replay", type=int, nargs="+", help="events of the logs that are replayed")
    add("--finds", type=int, help="random reads of the last of these logs (10000)")
    add("--durable", type=int, help="events with a sync each (2000)")
    add("--repetitions", type=int, help="of which the median is taken (5)")
    add("--seed", type=int, default=20260219)
    add("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    add("--results", type=Path, help=RESULTS_HELP)
    quick = {
        "events": (20_000, 1_000_000),
        "replay": ([2_000, 20_000, 60_000], [100_000, 1_000_000, 3_000_000]),
        "finds": (1000, 10_000),
        "durable": (100, 2000),
        "repetitions": (2, 5),
    }
    return completed(parser, quick)


def jams(given: argparse.Namespace, count: int) -> Iterator[bytes]:
    """Events of many sizes, the same in every run."""
    random = Random(given.seed)
    low, high = given.event_bytes
    blob = random.randbytes(1 << 20)
    for _ in range(count):
        size = random.randint(low, high)
        start = random.randrange(len(blob) - size)
        yield blob[start : start + size]


def make(given: argparse.Namespace, path: Path, layout: str, count: int) -> None:
    """Write a book and close it."""
    say(f"  writing {human(count)} events in {layout}")
    with Book.create(path, layout=layout, durability="manual") as book:  # type: ignore[arg-type]
        book.append_many(jams(given, count))


def rate_of_lmdb(figures: Figures, environment: Path, events: int) -> None:
    """LMDB's own read, in Rust, because a Python cursor would measure Python."""
    command = ["cargo", "bench", "--quiet", "--locked", "--features", "lmdb", "--bench", "lmdb"]
    command += ["--", str(environment), "1"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    read = json.loads(done.stdout.splitlines()[-1])
    if read["events"] != events:
        raise RuntimeError(f"LMDB's walk met {read['events']} events, {events} are there")
    figures.value(WALK, "LMDB", events / read["seconds"], "per s")
    figures.value(f"{WALK}, bytes", "LMDB", read["bytes"] / read["seconds"] / 1e6, "MB/s")


def written_and_synced(path: Path, megabytes: float) -> float:
    """The time of a plain file, the minimum for every conversion."""
    block = b"\xa5" * 4_000_000
    begun = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(round(megabytes / 4)):
            file.write(block)
        os.fdatasync(file.fileno())
    return time.perf_counter() - begun


def migrations(figures: Figures, given: argparse.Namespace, place: Path) -> None:
    """LMDB to books and back, and one layout to the other; all take turns in each repetition."""
    book, environment, dest = place / "book", place / "environment", place / "dest"
    make(given, book, "packed", given.events)
    make(given, place / "slots", "slots", given.events)
    Book.export_lmdb(book, environment)

    def migrate(layout: str) -> None:
        watch = Watch()
        report = Book.migrate_lmdb(environment, dest, layout=layout)  # type: ignore[arg-type]
        figures.rate(MIGRATE, layout, report.events, watch)
        assert (report.events, report.found) == (given.events, 0)
        figures.value(f"{MIGRATE}, bytes", layout, report.bytes / report.seconds / 1e6, "MB/s")

    def export() -> None:
        watch = Watch()
        report = Book.export_lmdb(book, dest)
        figures.rate(EXPORT, "LMDB", report.events, watch)
        assert report.events == given.events

    def convert(source: Path, layout: str) -> None:
        watch = Watch()
        report = Book.convert(source, dest, layout)  # type: ignore[arg-type]
        wall, busy = watch.stop()
        assert report.deeds == given.events and report.source_layout != layout
        name, size = f"{report.source_layout} to {report.target_layout}", report.source_bytes / 1e6
        figures.value(CONVERT, name, size / wall, "MB/s")
        figures.by[CONVERT][name].cpu.append(size / busy)
        figures.value(SYNC, "the disk", size / written_and_synced(dest / "raw", size), "MB/s")

    turns: list[Callable[[], None]] = [
        lambda: rate_of_lmdb(figures, environment, given.events),
        lambda: migrate("packed"),
        lambda: migrate("slots"),
        export,
        lambda: convert(book, "slots"),
        lambda: convert(place / "slots", "packed"),
    ]
    for repetition in range(given.repetitions):
        for turn in range(len(turns)):
            turns[(repetition + turn) % len(turns)]()
            shutil.rmtree(dest, ignore_errors=True)


def replay_name(events: int) -> str:
    return f"replay {human(events)} events in slots, {BATCH} at a time"


def replays(figures: Figures, given: argparse.Namespace, place: Path) -> None:
    """Replay logs of several sizes, and find events in the last log."""
    paths = {events: place / f"replay-{events}" for events in given.replay}
    for events, path in paths.items():
        make(given, path, "slots", events)
    for _ in range(given.repetitions):
        for events, path in paths.items():
            with Book.open(path) as book:
                watch, seen = Watch(), 0
                for start in range(1, events + 1, BATCH):
                    # A search per batch, as a ship asks for it.
                    for deed in book.iter(start, min(start + BATCH, events + 1)):
                        seen += deed.event == seen + 1
                figures.rate(replay_name(events), "slots", seen, watch)
                assert seen == events
    largest = given.replay[-1]
    make(given, place / "find-packed", "packed", largest)
    found = {"packed": place / "find-packed", "slots": paths[largest]}
    random = Random(given.seed)
    for _ in range(given.repetitions):
        for layout, path in found.items():
            with Book.open(path) as book:
                finds(
                    figures, book, layout, [random.randint(1, largest) for _ in range(given.finds)]
                )


def finds(figures: Figures, book: Book, layout: str, events: list[int]) -> None:
    """Single reads of random events, in a log in the page cache."""
    for _ in book.payloads():
        pass
    spans, busy = [], []
    for event in events:
        worked, begun = time.thread_time(), time.perf_counter()
        deed = book[event]
        spans.append((time.perf_counter() - begun) * 1e3)
        busy.append((time.thread_time() - worked) * 1e3)
        assert deed.event == event
    figures.value(MEDIAN, layout, statistics.median(spans), "ms")
    figures.value(WORST, layout, max(spans), "ms")
    figures.value(WORST_BUSY, layout, max(busy), "ms")


def plain_and_synced(figures: Figures, path: Path, events: list[bytes], shape: str) -> None:
    """The minimum for every layout. packed reserves space; slots may not, and writes a header."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        end = 2 * SLOT_BYTES
        os.pwrite(file, bytes(end), 0)
        if shape == RESERVED:
            os.posix_fallocate(file, 0, end + 2 * sum(map(len, events)))
        os.fsync(file)
        watch = Watch()
        for number, event in enumerate(events):
            end += os.pwrite(file, event, end)
            if shape == HEADED:
                os.pwrite(file, bytes(HEADER_BYTES), number % 2 * SLOT_BYTES)
            os.fdatasync(file)
        figures.rate(FLOOR, shape, len(events), watch)
    finally:
        os.close(file)
        path.unlink()


def durable(figures: Figures, given: argparse.Namespace, place: Path) -> None:
    """One event and its sync at a time. The layouts alternate, because a disk's speed changes."""
    path = place / "durable"
    for repetition in range(2 * given.repetitions):
        for turn in range(2):
            layout = LAYOUTS[(repetition + turn) % 2]
            events = list(jams(given, given.durable))
            with Book.create(path, layout=layout, durability="always") as book:  # type: ignore[arg-type]
                book.append(events[0])
                watch = Watch()
                for jam in events:
                    book.append(jam)
                figures.rate(DURABLE, layout, len(events), watch)
            shutil.rmtree(path)
        for shape in (GROWS, HEADED, RESERVED):
            plain_and_synced(figures, place / "plain", events, shape)


def promises(figures: Figures, given: argparse.Namespace) -> list[Row]:
    """The Speed paragraph, with the measured figures."""
    walk = figures.median(WALK, "LMDB")
    shown = f"LMDB's walk {human(walk)}/s" if walk else ""
    rows = []
    for what, measure, store, least in (
        ("migrate to packed, compared", MIGRATE, "packed", 300_000),
        ("migrate to slots, compared", MIGRATE, "slots", 300_000),
        ("export-lmdb, compared", EXPORT, "LMDB", None),
    ):
        ours = figures.median(measure, store) or 0.0
        ratio = f"{ours / walk:.2f}" if walk else ""
        required = f"{human(least)} events/s" if least else ""
        met = ours >= least if least else None
        rows.append(Row(what, f"{human(ours)}/s", shown, ratio, required, met))
    for store in ("packed to slots", "slots to packed"):
        speed = figures.median(CONVERT, store) or 0.0
        floor = figures.median(SYNC, "the disk") or 0.0
        name, beside = f"convert {store}, compared", f"write and sync {floor:.0f} MB/s"
        share = f"{speed / floor:.2f}" if floor else ""
        rows.append(Row(name, f"{speed:.0f} MB/s", beside, share, "500 MB/s", speed >= 500))
    rates = [figures.median(replay_name(events), "slots") or 0.0 for events in given.replay]
    spread = max(rates) / min(rates)
    each = ", ".join(f"{1e9 / rate:.0f}" for rate in rates)
    what = f"replay {', '.join(map(human, given.replay))} events of slots, {BATCH} at a time"
    rows.append(
        Row(what, f"{each} ns each", "", f"{spread:.2f}", "the same, within 1.3", spread <= 1.3)
    )
    for layout in LAYOUTS:
        middle = figures.median(MEDIAN, layout) or 0.0
        worst = max(figures.by[WORST][layout].wall)
        what = f"find any event of {human(given.replay[-1])}, warm, {layout}"
        found = f"{middle * 1e3:.1f} us, at worst {worst * 1e3:.0f} us"
        rows.append(Row(what, found, "", "", "under 1 ms", worst < 1))
    slots, packed = (figures.median(DURABLE, layout) or 0.0 for layout in ("slots", "packed"))
    beside_packed = slots / packed
    shown = f"packed {human(packed)}/s"
    rows.append(
        Row(
            f"{DURABLE}, slots",
            f"{human(slots)}/s",
            shown,
            f"{beside_packed:.2f}",
            "0.95",
            beside_packed >= 0.95,
        )
    )
    headed, reserved = (figures.median(FLOOR, shape) or 0.0 for shape in (HEADED, RESERVED))
    rows.append(
        Row(
            "the same of plain files: one that grows, with a header",
            f"{human(headed)}/s",
            f"reserved space {human(reserved)}/s",
            f"{headed / reserved:.2f}",
            "",
            None,
        )
    )
    return rows


def markdown(figures: Figures, given: argparse.Namespace, about: dict[str, Any]) -> str:
    run, machine = about["run"], about["machine"]
    low, high = given.event_bytes
    lines = [
        "# From LMDB, between layouts, and the layout slots",
        "",
        f"Made by `{run['command']}`{when(run)}: {human(given.events)} events of {low} to"
        f" {high} bytes, medians of {given.repetitions} repetitions in which all take turns."
        f" {on_machine(machine)}. Absolute figures move between machines; compare"
        " within the table. All runs: [migrate.json](migrate.json).",
        "",
    ]
    rows = [row.line() for row in promises(figures, given)]
    lines += compared(machine, rows, quick=given.quick)
    lines += [
        "",
        "LMDB's walk is a cursor in Rust that takes a byte of each value (`benches/lmdb.rs`). A "
        "migration reads each event twice, writes it, syncs every 8 MiB, reads the copy back and "
        "compares. A conversion's MB are those of the source; it syncs once, and reads both logs "
        "again. Each batch of a replay is looked for by its number. Found are random events with "
        "`book[n]`, in a log that was just read; at worst, of all repetitions. Appended are single "
        "events, always durable, the layouts alternating. The plain files show what the disk "
        "leaves possible: slots may not reserve space, because the reference implementation takes "
        "zeros behind the last event for damage, so each sync must store the new size of the file, "
        "too.",
        "",
        "## Everything",
        "",
        "| what | of | median | by processor time | lowest | highest |",
        "|---|---|---|---|---|---|",
    ]
    for measure, stores in figures.by.items():
        for store, figure in stores.items():
            per = "/s" if figure.unit == "per s" else ""
            ends = [human(value) for value in (min(figure.wall), max(figure.wall))]
            busy = figure.median_by_cpu
            ends.insert(0, "" if busy is None else human(busy))
            lines.append(f"| {measure} | {store} | {cell(figure)}{per} | {' | '.join(ends)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    given = arguments()
    place = data_dir(given.dir)
    begun = time.monotonic()
    machine, day = facts(place), occasion()
    figures = Figures()
    say(f"data on {machine['filesystem']}")
    try:
        migrations(figures, given, place)
        durable(figures, given, place)
        replays(figures, given, place)
    finally:
        shutil.rmtree(place)
    machine["load_after"] = load()
    sizes = ("events", "event_bytes", "replay", "finds", "durable", "repetitions", "seed", "quick")
    about: dict[str, Any] = {
        "run": {
            "command": command(sys.argv[1:], make="make bench-migrate"),
            **day,
            "seconds": round(time.monotonic() - begun),
            **{name: getattr(given, name) for name in sizes},
        },
        "machine": machine,
    }
    text = markdown(figures, given, about)
    print(text)
    shown = json.dumps({**about, "figures": figures.to_json()}, indent=1)
    write(given.results, {"migrate.json": shown + "\n", "migrate.md": text})


if __name__ == "__main__":
    main()
