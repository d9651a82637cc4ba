"""Measure Deedbook next to the alternatives of Python users, all in one run.

Without options: about ten minutes and 6 GB of disk. Writes python.json and python.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from clock import Figures, say
from facts import IN_MEMORY, facts, filesystem, load, occasion
from peers import Peers
from report import markdown
from scale import FRAMING, measure_floors, measure_memory, open_large
from stores import OURS, STORES, Store, make_keys

GIB = 1 << 30
RESULTS = Path(__file__).resolve().parent.parent / "results"
PLACES = {"dir", "results"}
"""Options that do not change the measurements."""
RESULTS_HELP = "where the results go; else a run with any other option only prints"

StoreT = TypeVar("StoreT", bound=Store)


def arguments() -> argparse.Namespace:
    """The command line; `--quick` changes the defaults of the sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="small sizes, a minute: to try the benchmark itself")
    add("--records", type=int, help="records per store (200000)")
    add("--record-bytes", type=int, default=256)
    add("--durable", type=int, help="records with a sync each (2000)")
    add("--threads", type=int, default=16, help="threads of the group commit")
    add("--tasks", type=int, default=1000, help="asyncio tasks that commit at once")
    add("--repetitions", type=int, help="of which the median is taken (5)")
    add("--open-events", type=int, nargs=2, help="sizes of two logs to open (3000000 30000000)")
    add("--open-bytes", type=int, default=64, help="bytes of an event of these")
    add("--memory-bytes", type=int, help="size of the log read for its memory (1 GiB)")
    add("--seed", type=int, default=20260219)
    add("--stores", nargs="+", help="only these stores, by the beginnings of their names")
    add("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    add("--results", type=Path, help=RESULTS_HELP)
    quick = {
        "records": (20_000, 200_000),
        "durable": (200, 2000),
        "repetitions": (2, 5),
        "open_events": ([30_000, 300_000], [3_000_000, 30_000_000]),
        "memory_bytes": (GIB // 16, GIB),
    }
    return completed(parser, quick)


def completed(
    parser: argparse.ArgumentParser,
    quick: Mapping[str, tuple[Any, Any]],
    besides: frozenset[str] = frozenset(),
) -> argparse.Namespace:
    """The command line; sizes that are not given come from `quick`, small or full.

    Results go to the repository only if all options have their defaults. Otherwise the page of a
    partial run, or of another size, would replace the page of the whole run. `besides` are options
    that do not matter here.
    """
    given = parser.parse_args()
    for name, (small, full) in quick.items():
        if getattr(given, name) is None:
            setattr(given, name, small if given.quick else full)
    usual = {name: parser.get_default(name) for name in vars(given)}
    usual |= {name: full for name, (_, full) in quick.items()}
    names = usual.keys() - PLACES - besides
    if given.results is None and all(getattr(given, name) == usual[name] for name in names):
        given.results = RESULTS
    return given


def write(results: Path | None, files: Mapping[str, str]) -> None:
    """Write files of results and print their names; without a directory, print the names only."""
    names = ", ".join(files)
    if results is None:
        say(f"not written: {names}; a quick or partial run has results with --results only")
        return
    results.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (results / name).write_text(text, encoding="utf-8")
    say(f"written: {names} in the directory of the results")


def data_dir(given: Path | None) -> Path:
    """A new directory on a disk, because a file system in memory would measure nothing."""
    places = [given] if given else [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    for place in places:
        if place.is_dir() and filesystem(place) not in IN_MEMORY:
            return Path(tempfile.mkdtemp(prefix="deedbook-bench-", dir=place))
    sys.exit("benches: no directory on a disk found, name one with --dir")


def installed(
    wanted: list[str] | None, known: Sequence[type[StoreT]], own: str
) -> tuple[list[type[StoreT]], dict[str, str], list[str]]:
    """The installed stores, their versions, and the names of the missing ones."""
    stores, versions, missing = [], {}, []
    for store in known:
        if wanted and not any(store.name.startswith(name) for name in wanted):
            continue
        try:
            versions[store.name] = store.version()
            stores.append(store)
        except ImportError as error:
            if store.name == own:
                sys.exit(f"benches: the module deedbook is missing ({error}); run: make bench")
            missing.append(store.name)
    return stores, versions, missing


def measure(given: argparse.Namespace, place: Path, stores: list[type[Store]]) -> Figures:
    """All figures."""
    figures = Figures()
    random = Random(given.seed)
    jams = [random.randbytes(given.record_bytes) for _ in range(given.records)]
    peers = Peers(figures, stores, place, jams, make_keys(given.records), given.seed)
    for repetition in range(1, given.repetitions + 1):
        peers.run(repetition, given.durable, given.threads, given.tasks)
        frame = given.record_bytes + FRAMING
        measure_floors(figures, place, frame, given.durable, given.records)
    if any(store.name == OURS for store in stores):
        for events in given.open_events:
            need = events * (given.open_bytes + FRAMING) * 5 // 4
            if shutil.disk_usage(place).free < need:
                say(f"skipped: {events} events need {need / 1e9:.1f} GB of disk")
                continue
            open_large(figures, place, events, given.open_bytes, given.repetitions)
        measure_memory(figures, place, given.record_bytes, given.memory_bytes)
    return figures


def command(options: list[str], alone: str | None = None, make: str = "make bench") -> str:
    """The command that repeats the run, without directories. `alone` is the program itself, if
    `make` does not pass all options."""
    places = {f"--{name}" for name in PLACES}
    pairs = zip(["", *options], options, strict=False)
    shown = [word for before, word in pairs if word not in places and before not in places]
    if alone is not None and shown not in ([], ["--quick"]):
        return " ".join([alone, *shown])
    return f"{make} ARGS='{' '.join(shown)}'" if shown else make


def main() -> None:
    given = arguments()
    stores, versions, missing = installed(given.stores, STORES, OURS)
    place = data_dir(given.dir)
    begun = time.monotonic()
    machine, when = facts(place), occasion()
    say(f"data on {machine['filesystem']}, stores: {', '.join(versions)}")
    if missing:
        say(f"not installed: {', '.join(missing)}")
    try:
        figures = measure(given, place, stores)
    finally:
        shutil.rmtree(place)
    machine["load_after"] = load()
    about: dict[str, Any] = {
        "run": {
            "command": command(sys.argv[1:]),
            "quick": given.quick,
            "records": given.records,
            "record_bytes": given.record_bytes,
            "durable_records": given.durable,
            "threads": given.threads,
            "tasks": given.tasks,
            "repetitions": given.repetitions,
            "open_events": given.open_events,
            "open_bytes": given.open_bytes,
            "memory_bytes": given.memory_bytes,
            "seed": given.seed,
            **when,
            "seconds": round(time.monotonic() - begun),
        },
        "machine": machine,
        "stores": versions,
        "missing": missing,
    }
    text = markdown(figures, about)
    print(text)
    shown = json.dumps({**about, "figures": figures.to_json()}, indent=1)
    write(given.results, {"python.json": shown + "\n", "python.md": text})


if __name__ == "__main__":
    main()
