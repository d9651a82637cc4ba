"""One relay over an event store and over nostr-lmdb, with nostr-bench as its clients.

    python benches/python/relay.py [--seconds N] [--clients N] [--runs N] [--quick]

The relay is `nostr/examples/relay.rs`. In each run the stores take turns, each with a new
directory: first `nostr-bench event` posts for the time, then `nostr-bench req` asks for the newest
event of a hashtag. The results are benches/results/relay.md and relay.json.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from facts import facts, load, loads, occasion, provisional, when
from run import RESULTS_HELP, completed, write

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "relay"
BENCH = "0.4.0"
STORES = {
    "deedbook, `always`": "always",
    "deedbook, default": "default",
    "nostr-lmdb": "lmdb",
}
TEXT = """# Speed of a relay over an event store

Made by `make bench-relay`{when}: `nostr/examples/relay.rs`, a relay of nostr-relay-builder \
{builder}, over the store of each row, and nostr-bench {bench} with {clients} clients on the same \
{processors} processors. Medians of {runs} runs of {seconds} s, in which the stores take turns, \
each with a new directory. {processor}, {kernel}, {filesystem}; {loads}. All runs: \
[relay.json](relay.json).

{busy}| store | an `OK` means | events posted/s | mean wait | longest | events then | queries/s \
| mean wait | longest |
|---|---|---|---|---|---|---|---|---|
{rows}

Each client waits for the answer before its next message. nostr-bench signs each event with a new \
key, and the relay checks each signature; both take part of the processors. A query asks for the \
newest event with one of 1,000 hashtags. The relay sends the event and the end of the answer \
one by one, without `TCP_NODELAY`: with either store, most of a query's wait is that of TCP for an \
acknowledgement.
"""
MEANS = {
    "always": "synced",
    "default": "in the page cache, synced within 100 ms",
    "lmdb": "in a synced transaction",
}


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, help="time of each load (10)")
    parser.add_argument("--clients", type=int, help="connections (50)")
    parser.add_argument("--runs", type=int, help="repetitions (5)")
    parser.add_argument("--quick", action="store_true", help="less of everything, and no page")
    parser.add_argument("--results", type=Path, help=RESULTS_HELP)
    sizes = {"seconds": (5, 10), "clients": (10, 50), "runs": (1, 5)}
    given = completed(parser, sizes)
    build()
    now = occasion()
    with tempfile.TemporaryDirectory() as folder:
        machine = facts(Path(folder))
        runs = [
            {name: measured(Path(folder) / f"{run}-{word}", word, given) for name, word in each}
            for run in range(given.runs)
            for each in [turn(run)]
        ]
    machine["load_after"] = load()
    text = TEXT.format(
        when=when(now),
        builder=locked("nostr-relay-builder"),
        bench=BENCH,
        clients=given.clients,
        runs=given.runs,
        seconds=given.seconds,
        loads=loads(machine),
        busy="".join(line + "\n" for line in provisional(machine["load_before"])),
        rows="\n".join(row(name, [run[name] for run in runs]) for name in STORES),
        **{name: machine[name] for name in ("processors", "processor", "kernel", "filesystem")},
    )
    print(text, end="")
    options = {name: value for name, value in vars(given).items() if name != "results"}
    found = {**now, "machine": machine, "options": options, "runs": runs}
    write(given.results, {"relay.md": text, "relay.json": json.dumps(found, indent=1, default=str)})


def turn(run: int) -> list[tuple[str, str]]:
    """The stores in the order of a run."""
    each = list(STORES.items())
    first = run % len(each)
    return each[first:] + each[:first]


def build() -> None:
    """Build the relay, and install nostr-bench, with the versions of the lock files."""
    manifest = ["--manifest-path", str(ROOT / "nostr" / "Cargo.toml")]
    build = ["cargo", "build", "--release", "--locked", "--example", "relay"]
    subprocess.run([*build, *manifest, "--target-dir", str(TARGET)], check=True)
    if not (TARGET / "bin" / "nostr-bench").exists():
        install = ["cargo", "install", "nostr-bench", "--version", BENCH, "--locked"]
        subprocess.run([*install, "--root", str(TARGET)], check=True)


def locked(crate: str) -> str:
    """The version of a crate in nostr/Cargo.lock."""
    text = (ROOT / "nostr" / "Cargo.lock").read_text()
    return text.split(f'name = "{crate}"\nversion = "')[1].split('"')[0]


def measured(place: Path, word: str, given: argparse.Namespace) -> dict[str, Any]:
    """Both loads on a new relay."""
    place.mkdir()
    command = [str(TARGET / "release" / "examples" / "relay"), str(place), "0", word]
    relay = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert relay.stdout is not None
    try:
        url = relay.stdout.readline().strip()
        found = {kind: bench(kind, url, given) for kind in ("event", "req")}
    finally:
        relay.send_signal(signal.SIGINT)
        relay.wait()
    print(word, found, flush=True)
    return found


def bench(kind: str, url: str, given: argparse.Namespace) -> dict[str, float]:
    """One load, from the state that nostr-bench printed last before its clients left."""
    clients = str(given.clients)
    command = [str(TARGET / "bin" / "nostr-bench"), kind, "-c", clients, "-r", clients]
    command += ["-k", str(given.seconds), "--json", url]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    said = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    lines = [one for one in said if one["connect_stats"]["alive"] == given.clients]
    first, last = lines[0], lines[-1]
    sent = last["message_stats"]
    done = [one["message_stats"]["complete"] - one["message_stats"]["error"] for one in lines]
    assert sent["error"] == 0 and done[-1] > 0, sent
    return {
        "per_second": (done[-1] - done[0]) * 1000 / (last["elapsed"] - first["elapsed"]),
        "mean_ms": sent["success_time"]["total"] / sent["success_time"]["count"],
        "max_ms": sent["success_time"]["max"],
        "total": said[-1]["message_stats"]["complete"],
    }


def row(name: str, runs: list[dict[str, dict[str, float]]]) -> str:
    """A row of the page."""

    def median(load: str, figure: str) -> float:
        return statistics.median(run[load][figure] for run in runs)

    def shown(load: str) -> str:
        waits = f"{median(load, 'mean_ms'):.1f} ms | {median(load, 'max_ms'):.0f} ms"
        return f"{median(load, 'per_second'):,.0f} | {waits}"

    posted = f"{shown('event')} | {median('event', 'total'):,.0f}"
    return f"| {name} | {MEANS[STORES[name]]} | {posted} | {shown('req')} |"


if __name__ == "__main__":
    os.environ.setdefault("CARGO_TERM_COLOR", "never")
    main()
