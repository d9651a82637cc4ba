"""Measure reads, a write and jobs on Sail, an engine without a JVM, next to Spark, in one run.

``make bench-engines``, in the environment of ``scripts/spark.sh sail``: both engines with the same
client. Each round runs a process of each engine in turn. Rates are rows for each CPU second of the
whole process tree. Writes engines.json and engines.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clock import human, say
from facts import facts, load, loads, occasion, provisional, when
from run import RESULTS_HELP, command, completed, data_dir, write
from spark_measure import book, cpu_seconds, deedbook, session, warm

ENGINES = ("Sail", "Spark")
TIMES = 3
"""Measurements in a process, after one that warms up."""
ASKED = 3.0
FIRST, RANGE = "first query", "a range of 5 %"


@contextmanager
def begun(engine: str) -> Iterator[Any]:
    """A session of an engine."""
    if engine == "Sail":
        from deedbook.spark.jobs import sail_session

        with sail_session() as spark:
            yield spark
        return
    spark = session()
    yield spark
    spark.stop()


def works(spark: Any, place: Path) -> dict[str, Callable[[], Any]]:
    """The work by its name. `RANGE` reads a twentieth of the rows."""
    from deedbook.spark import jobs

    path = str(place / "book")
    events = json.loads((place / "events").read_text())

    def count(frame: Any) -> int:
        return int(frame.count())

    def first(frame: Any, *expressions: str) -> Any:
        return frame.selectExpr(*expressions).collect()[0][0]

    def to_parquet() -> None:
        out = place / "parquet"
        shutil.rmtree(out, ignore_errors=True)
        deedbook(spark, path).write.parquet(out.as_uri())

    everything = deedbook(spark, path)
    part = deedbook(spark, path, start=events // 2, end=events // 2 + events // 20)
    one = spark.read.format("deedbook").schema("event bigint").load(path)
    return {
        "count of all columns": lambda: first(everything, "max(event) + max(mug) + count(jam)"),
        "sum of lengths": lambda: first(everything, "sum(length(jam))"),
        "filter: one in seven": lambda: count(everything.where("event % 7 = 0")),
        "one column": lambda: first(one, "sum(event)"),
        RANGE: lambda: first(part, "sum(length(jam))"),
        "to Parquet": to_parquet,
        "the job verify": lambda: [one.ok for one in jobs.verify(spark, path)],
    }


def spent() -> float:
    """CPU seconds of this process and of all below it."""
    return time.process_time() + sum(cpu_seconds(os.getpid()).values())


def run_engine(engine: str, place: Path) -> None:
    """Measure in this process, and print the seconds and the answers."""
    found: dict[str, Any] = {}
    with begun(engine) as spark:
        for name, work in works(spark, place).items():
            answer = work()
            runs = []
            for _ in range(TIMES):
                cpu, wall = spent(), time.perf_counter()
                work()
                runs.append([spent() - cpu, time.perf_counter() - wall])
            found[name] = {"answer": answer, "runs": runs}
    print(json.dumps(found))


def run_first(engine: str, place: Path) -> None:
    """A first query, for the caller's clock."""
    with begun(engine) as spark:
        assert len(deedbook(spark, str(place / "book"), end=11).collect()) == 10


def child(engine: str, place: Path, *words: str) -> str:
    """The output of a process for an engine."""
    own = [sys.executable, __file__, "--engine", engine, "--dir", str(place), *words]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(
        own,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


def measure(place: Path, rounds: int) -> dict[str, dict[str, list[list[float]]]]:
    """Seconds of CPU and of wall: for each work and engine. Raises for different answers."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for _ in range(rounds):
        answers: dict[str, list[Any]] = {}
        for engine in ENGINES:
            before, wall = os.times(), time.perf_counter()
            child(engine, place, "--first")
            after, seconds = os.times(), time.perf_counter() - wall
            cpu = sum(after[2:4]) - sum(before[2:4])
            found.setdefault(FIRST, {}).setdefault(engine, []).append([cpu, seconds])
            say(f"{engine}: first query {seconds:.2f} s")
            for name, one in json.loads(child(engine, place).splitlines()[-1]).items():
                answers.setdefault(name, []).append(one["answer"])
                found.setdefault(name, {}).setdefault(engine, []).extend(one["runs"])
                say(f"{engine}: {name}: {min(cpu for cpu, _ in one['runs']):.2f} s of CPU")
        assert all(one == other for one, other in answers.values()), answers
    return found


def medians(found: dict[str, list[list[float]]]) -> dict[str, tuple[float, float]]:
    """CPU and wall seconds of each engine."""
    return {
        engine: (statistics.median(cpu for cpu, _ in runs), statistics.median(w for _, w in runs))
        for engine, runs in found.items()
    }


def markdown(about: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The page."""
    machine, run = about["machine"], about["run"]
    lines = [
        "# Deedbook on Sail and on Spark",
        "",
        f"`{run['command']}`{when(run)}: medians of {run['rounds']} processes of each engine in"
        f" turn, {TIMES} runs in each after one that warms up, of a book of {run['events']:,}"
        f" events of 200 bytes; Sail {about['sail']}, PySpark {about['spark']},"
        f" {machine['python']}, {machine['processor']}, {machine['processors']} cores,"
        f" {machine['filesystem']}; {loads(machine)}. Rates are rows for each CPU second of the"
        " process and of all processes below it. Both engines gave the same answers.",
        "",
        *provisional(machine["load_before"]),
        "| what | Sail | Spark | ratio | asked | met |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        (sail, sail_wall), (spark, spark_wall) = row["Sail"], row["Spark"]
        if row["rows"] is None:
            shown = [f"{sail_wall:.2f} s", f"{spark_wall:.2f} s"]
            ratio, asked = spark_wall / sail_wall, None
        else:
            shown = [
                f"{human(row['rows'] / cpu)} rows/s of CPU, {wall:.2f} s"
                for cpu, wall in (row["Sail"], row["Spark"])
            ]
            ratio, asked = spark / sail, ASKED
        met = "" if asked is None else "yes" if round(ratio, 2) >= asked else "**no**"
        wanted = "" if asked is None else f"≥ {asked:g}"
        lines.append(f"| {row['what']} | {' | '.join(shown)} | {ratio:.2f} | {wanted} | {met} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the benchmark")
    parser.add_argument("--events", type=int, help="of 200 bytes in the book (2000000)")
    parser.add_argument("--rounds", type=int, help="processes of each engine (3)")
    parser.add_argument("--dir", type=Path, help="where the data goes; on a disk, not in memory")
    parser.add_argument("--results", type=Path, help=RESULTS_HELP)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    given = completed(parser, {"events": (100_000, 2_000_000), "rounds": (1, 3)})
    if given.engine is not None:
        (run_first if given.first else run_engine)(given.engine, given.dir)
        return
    import pysail
    import pyspark

    with tempfile.TemporaryDirectory(dir=data_dir(given.dir)) as directory:
        place = Path(directory)
        machine = facts(place)
        about: dict[str, Any] = {
            "sail": pysail.__version__,
            "spark": pyspark.__version__,
            "machine": machine,
            "run": {
                "command": command(sys.argv[1:], make="make bench-engines"),
                **occasion(),
                "events": given.events,
                "rounds": given.rounds,
            },
        }
        book(place / "book", given.events)
        (place / "events").write_text(json.dumps(given.events))
        warm(place)
        found = measure(place, given.rounds)
    read = {FIRST: None, RANGE: given.events // 20}
    rows = [
        {"what": name, "rows": read.get(name, given.events), **medians(one)}
        for name, one in found.items()
    ]
    machine["load_after"] = load()
    text = markdown(about, rows)
    print(text)
    shown = json.dumps({**about, "rows": rows}, indent=1, ensure_ascii=False)
    write(given.results, {"engines.json": shown + "\n", "engines.md": text})


if __name__ == "__main__":
    main()
