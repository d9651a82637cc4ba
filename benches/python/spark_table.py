"""The speed table of Spark: the cost of Deedbook next to the alternatives, in one run.

``make bench-spark``, or ``python benches/python/spark_table.py [--quick] [--only read,stream]``:
about fifteen minutes. Writes spark.json and spark.md, unless only some parts of the table run. Each
part has its own session, on two cores. Three more parts write their own results, as soon as they
are done: ``--only pipeline`` the example pipeline next to Spark alone (spark-pipeline.json, .md),
``--only workers`` a cluster of confined workers (as root; spark-workers.json, .md and .svg),
``--only sizes`` books of up to 10 GB and up to 10,000 logs (25 GB of disk; spark-sizes.json, .md
and .svg).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clock import say
from facts import facts, load, loads, occasion, provisional, when
from run import RESULTS, RESULTS_HELP, command, completed, data_dir, write
from spark_measure import Sizes

TABLE = ("read", "tasks", "stream", "write", "jobs")
SCALING = ("pipeline", "workers", "sizes")
"""Only on request, with results of their own: they take long, need root, or disk."""
PARTS = (*TABLE, *SCALING)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the benchmark")
    parser.add_argument("--only", help=f"these parts, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--events", type=int, help="of 200 bytes in most logs (1000000)")
    parser.add_argument("--rounds", type=int, help="of which the medians are taken (5)")
    parser.add_argument("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    parser.add_argument("--results", type=Path, help=RESULTS_HELP)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = completed(
        parser, {"events": (100_000, 1_000_000), "rounds": (2, 5)}, frozenset({"only"})
    )
    given.parts = given.only.split(",") if given.only else list(TABLE)
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"--only: no parts: {', '.join(sorted(unknown))}")
    return given


def run_part(given: argparse.Namespace) -> None:
    """Measure one part, and print its rows."""
    module = importlib.import_module(f"spark_{given.part}")
    rows = module.measure(given.dir, Sizes(given.events, given.rounds, given.results))
    print(json.dumps([row.to_dict() for row in rows]))


def child(given: argparse.Namespace, part: str, place: Path) -> list[dict[str, Any]]:
    """The rows of a part, from its own process."""
    say(f"== {part}")
    own = [sys.executable, __file__, "--part", part, "--dir", str(place)]
    own += ["--events", str(given.events), "--rounds", str(given.rounds)]
    if given.results is not None:
        own += ["--results", str(given.results)]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(own, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for row in rows:
        say(line(row))
    return rows


def line(row: dict[str, Any]) -> str:
    """A row of the table in Markdown."""
    ours, *peers = [shown(name, side) for name, side in row["sides"].items()]
    asked = "" if row["asked"] is None else f"{'≤' if row['at_most'] else '≥'} {row['asked']}"
    met = {True: "yes", False: "**no**", None: ""}[row["met"]]
    ratio = f"{row['ratio']:.2f} ({row['unit']})" if peers else ""
    return f"| {row['what']} | {ours} | {' '.join(peers)} | {ratio} | {asked} | {met} |"


def shown(name: str, side: dict[str, Any]) -> str:
    """A side of a ratio."""
    cpu = ""
    if side["python"] is not None:
        cpu = f" (CPU: Python {side['python']:.2f}, JVM {side['jvm']:.2f})"
    return f"{name}: {side['wall']:.3g} s{cpu}"


def markdown(about: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    machine, run = about["machine"], about["run"]
    head = [
        "# Deedbook in Spark, measured",
        "",
        f"`{run['command']}`{when(run)}: unless a row says otherwise, medians of"
        f" {run['rounds']} rounds after one that warms up, of {run['events']:,} events of 200"
        f" bytes; PySpark {about['spark']}, {machine['python']}, {machine['processor']},"
        f" {machine['processors']} cores, {machine['filesystem']}; {loads(machine)}. Seconds are of"
        " wall and of CPU. Deedbook syncs the logs and the Parquet that it writes, and its ingest"
        " checks that lines are JSON; what Spark writes, as Parquet or Delta, is not synced, and"
        " its lines are not checked.",
        "",
        *provisional(machine["load_before"]),
        "| what | Deedbook | beside | ratio | asked | met |",
        "|---|---|---|---|---|---|",
    ]
    notes = [
        f"- {row['what']}: "
        + ", ".join(f"{key} {value}" for key, value in row["facts"].items() if value is not None)
        for row in rows
        if row["facts"]
    ]
    return "\n".join([*head, *map(line, rows), "", *notes, ""])


def report(given: argparse.Namespace, name: str, parts: Sequence[str]) -> None:
    """Measure parts, and write them into the files with one name."""
    import pyspark

    place = data_dir(given.dir)
    place.rmdir()
    machine = facts(place.parent)
    about = {
        "spark": pyspark.__version__,
        "machine": machine,
        "run": {
            "command": command(sys.argv[1:], make="make bench-spark"),
            **occasion(),
            "events": given.events,
            "rounds": given.rounds,
        },
    }
    if given.results is not None:  # a part draws here
        given.results.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="deedbook-bench-", dir=place.parent) as directory:
            rows += [{"part": part, **row} for row in child(given, part, Path(directory))]
    machine["load_after"] = load()
    text = markdown(about, rows)
    print(text)
    found = json.dumps({**about, "rows": rows}, indent=1, ensure_ascii=False)
    # Some parts of the table must not replace the whole table, unless another directory is named.
    is_partial = name == "spark" and set(parts) != set(TABLE)
    results = None if is_partial and given.results == RESULTS else given.results
    write(results, {f"{name}.json": found + "\n", f"{name}.md": text})


def main() -> None:
    """Measure all parts of the table, or only the named parts."""
    given = arguments()
    if given.part is not None:
        run_part(given)
        return
    if table := [part for part in given.parts if part in TABLE]:
        report(given, "spark", table)
    for part in given.parts:
        if part in SCALING:
            report(given, f"spark-{part}", [part])


if __name__ == "__main__":
    main()
