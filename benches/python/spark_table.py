"""The speed table of Spark: what Deedbook costs there, beside what else there is, in one run.

``make bench-spark``, or ``python benches/python/spark_table.py [--quick] [--only read,stream]``:
about fifteen minutes. Writes spark.json and spark.md, but not with some parts of the table only.
Each part has a session of its own, on two cores; `workers` is on a standalone cluster, and draws
spark-workers.svg; `sizes` draws spark-sizes.svg.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clock import say
from facts import facts
from run import command, data_dir
from spark_measure import Sizes

TABLE = ("read", "tasks", "stream", "write", "jobs")
SCALING = ("workers", "sizes")
"""Takes as long as the table, and has results of its own."""
PARTS = (*TABLE, *SCALING)
RESULTS = Path(__file__).resolve().parent.parent / "results"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the benchmark")
    parser.add_argument("--only", help="these parts, separated by commas: " + ", ".join(PARTS))
    parser.add_argument("--events", type=int, help="of 200 bytes in most logs (1000000)")
    parser.add_argument("--rounds", type=int, help="of which the medians are taken (5)")
    parser.add_argument("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    parser.add_argument(
        "--results", type=Path, help="where the results go; else quick or partial runs only print"
    )
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.events = given.events or (100_000 if given.quick else 1_000_000)
    given.rounds = given.rounds or (2 if given.quick else 5)
    # Some parts replace no results of the whole table. A part run apart has --results.
    given.parts = given.only.split(",") if given.only else list(PARTS)
    is_whole = not set(TABLE) & set(given.parts) or set(TABLE) <= set(given.parts)
    if given.results is None and not given.quick and given.part is None and is_whole:
        given.results = RESULTS
    return given


def run_part(given: argparse.Namespace) -> None:
    """Measure one part, and print its rows."""
    module = importlib.import_module(f"spark_{given.part}")
    rows = module.measure(given.dir, Sizes(given.events, given.rounds, given.results))
    print(json.dumps([row.to_dict() for row in rows]))


def child(given: argparse.Namespace, part: str, place: Path) -> list[dict[str, Any]]:
    """The rows of a part, from a process of its own."""
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
    """The whole table."""
    machine, run = about["machine"], about["run"]
    head = [
        "# Deedbook in Spark, measured",
        "",
        f"`{run['command']}` on {run['began']}: unless a row says otherwise, medians of"
        f" {run['rounds']} rounds after one that warms up, of {run['events']:,} events of 200"
        f" bytes; PySpark {about['spark']}, {machine['python']}, {machine['processor']},"
        f" {machine['processors']} cores, {machine['filesystem']}. Seconds are of wall and of CPU.",
        "",
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


def main() -> None:
    """Measure all parts, or some."""
    given = arguments()
    if given.part is not None:
        run_part(given)
        return
    import pyspark

    rows: list[dict[str, Any]] = []
    place = data_dir(given.dir)
    about = {
        "spark": pyspark.__version__,
        "machine": facts(place),
        "run": {
            "command": command(sys.argv[1:]).replace("make bench", "make bench-spark"),
            "began": time.strftime("%Y-%m-%d", time.gmtime()),
            "events": given.events,
            "rounds": given.rounds,
        },
    }
    place.rmdir()
    for part in given.parts:
        with tempfile.TemporaryDirectory(prefix="deedbook-bench-", dir=place.parent) as directory:
            rows += [{"part": part, **row} for row in child(given, part, Path(directory))]
    text = markdown(about, rows)
    print(text)
    if given.results is not None:
        found = json.dumps({**about, "rows": rows}, indent=1, ensure_ascii=False)
        scaling = "" if set(given.parts) - set(SCALING) else "-" + "-".join(given.parts)
        (given.results / f"spark{scaling}.json").write_text(found + "\n", encoding="utf-8")
        (given.results / f"spark{scaling}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
