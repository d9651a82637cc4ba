"""The declarative pipeline, killed meanwhile: ``python examples/demo/declarative.py DIR``.

First many orders: files of JSON lines, some of them bad or sent twice. Then real Nostr events in an
event store. For each, the program runs the Spark Declarative Pipelines project of
``examples/pipeline``, kills the whole run in its middle, begins it again, and compares every table
with the input. ``DIR/report.json`` has the checks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import SparkSession

from deedbook import Book, EventStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROOT = Path(__file__).absolute().parents[2]
PIPELINE = ROOT / "examples" / "pipeline"
EVENTS = ROOT / "tests" / "data" / "nostr" / "events.jsonl"
ORDERS = 500_000
FILES = 20
ITEMS = ("apple", "bread", "cheese", "dates")
BAD = ("{half", "[1]", '{"item": "apple"}', '{"order": "x", "item": 5, "at": "never"}')
KILLED_AT = (0.25, 0.75)
"""The shares of the lines in bronze at which the run is killed."""
START = 1_790_000_000
"""The time of the first order, Unix seconds."""
SECONDS_MAX = 1200


@dataclass
class Sent:
    """The lines of the files, counted apart from Spark."""

    lines: int = 0
    bad: int = 0
    orders: dict[str, int] = field(default_factory=Counter)
    quarters: dict[str, int] = field(default_factory=Counter)
    """The amounts by item, in quarters of the currency: sums are exact."""

    def order(self, number: int, chance: random.Random) -> str:
        item, quarters = chance.choice(ITEMS), chance.randrange(1, 4000)
        self.orders[item] += 1
        self.quarters[item] += quarters
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + number // 50))
        found = {"order": number, "item": item, "amount": quarters / 4, "at": at}
        return json.dumps(found)


def generate(folder: Path, orders: int, seed: int) -> Sent:
    """Write each file completely before its name appears."""
    chance, sent = random.Random(seed), Sent()
    folder.mkdir()
    for number in range(FILES):
        lines = []
        for order in range(number * orders // FILES, (number + 1) * orders // FILES):
            lines.append(sent.order(order, chance))
            if order % 1000 == 7:
                lines.append(lines[-1])  # The sender repeats this order.
            if order % 5000 == 11:
                lines.append(BAD[order // 5000 % len(BAD)])
                sent.bad += 1
        sent.lines += len(lines)
        new = folder / f".{number:03}.jsonl"
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(folder / f"{number:03}.jsonl")
    return sent


def project(folder: Path, example: str, options: dict[str, str]) -> Path:
    """Make the folder of a pipeline and its project. The reader of the source gets ``options``."""
    shutil.copytree(PIPELINE / example, folder, dirs_exist_ok=True)
    settings = folder / "pipeline.json"
    found = json.loads(settings.read_text())
    found["sources"][0]["options"] = options
    settings.write_text(json.dumps(found))
    make = [sys.executable, str(PIPELINE / "declarative" / "project.py"), str(folder)]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    return folder / "declarative"


def start(project: Path) -> subprocess.Popen[bytes]:
    """Begin a run of the pipeline, in a process group with its JVM and its workers."""
    home = Path(pyspark.__file__).parent
    own = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    own |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": "conf"}
    with (project / "run.log").open("ab") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-pipelines"), "run"],
            cwd=project,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def bronze(project: Path) -> Book:
    """The log of the only source, for reading next to the pipeline."""
    (log,) = (project / "bronze").iterdir()
    return Book.open(log)


def run(project: Path, rows: int, killed_at: Sequence[float]) -> Iterator[int]:
    """Run the pipeline to its end; yields the rows in bronze at each kill."""
    deadline = time.monotonic() + SECONDS_MAX
    for share in (*killed_at, None):
        process = start(project)
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise SystemExit(f"demo: no end in {SECONDS_MAX} s; see {project}/run.log")
                with bronze(project) as log:
                    found = len(log)
                if share is not None and found >= max(share * rows, 1):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    yield found
                    break
                time.sleep(0.2)
            else:
                if process.returncode != 0:
                    code = process.returncode
                    raise SystemExit(f"demo: the run ended with {code}; see {project}/run.log")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Check:
    """A comparison of a table with what was sent."""

    name: str
    expected: object
    found: object

    @property
    def ok(self) -> bool:
        return self.expected == self.found


class Tables:
    """The tables of a project, by Spark: it knows the files of killed batches."""

    def __init__(self, project: Path) -> None:
        self.warehouse = project / "spark-warehouse"
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self.spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def __getitem__(self, name: str) -> DataFrame:
        return self.spark.read.parquet((self.warehouse / name).as_uri())

    def twice(self, *keys: str) -> int:
        """The rows of ``by_hour`` that are there more than once."""
        return self["by_hour"].groupBy(*keys).count().where("count > 1").count()


def same_rows(project: Path, due: Counter[bytes]) -> list[Check]:
    """Bronze, compared row by row."""
    with bronze(project) as log:
        found = Counter(log.payloads())
    return [
        Check("rows in bronze, each as often as sent", due.total(), found.total()),
        Check("rows missing in bronze", 0, (due - found).total()),
        Check("rows in bronze that were not sent", 0, (found - due).total()),
    ]


def demo_of_orders(folder: Path, orders: int, seed: int) -> Iterator[int | Check]:
    """Kills as numbers, then checks."""
    made = project(folder, "orders", {"maxFilesPerTrigger": "3"})
    sent = generate(folder / "in", orders, seed)
    say(f"{orders:,} orders in {sent.lines:,} lines, {FILES} files")
    yield from run(made, sent.lines, KILLED_AT)
    files = (folder / "in").iterdir()
    yield from same_rows(made, Counter(line for file in files for line in lines_of(file)))
    table = Tables(made)
    rows, different, amount = (
        table["silver"].selectExpr("count(*)", "count(DISTINCT order)", "sum(amount)").collect()[0]
    )
    total, quarters = sum(sent.orders.values()), sum(sent.quarters.values())
    yield Check("rows of silver", total, rows)
    yield Check("different orders in silver", total, different)
    yield Check("amount in silver", quarters / 4, amount)
    yield Check("lines in quarantine", sent.bad, table["quarantine"].count())
    due = {item: (sent.orders[item], sent.quarters[item] / 4) for item in sorted(sent.orders)}
    totals = {row.item: (row.orders, row.amount) for row in table["totals"].collect()}
    yield Check("orders and amount by item, in gold", due, dict(sorted(totals.items())))
    yield Check("hours twice in gold", 0, table.twice("hour", "item"))


def demo_of_events(folder: Path, source: Path) -> Iterator[int | Check]:
    """The same for events; the store checks their ids and signatures."""
    folder.mkdir(parents=True)
    with EventStore.create(folder / "notes") as store:
        report = store.import_json(source)
    say(f"{report.stored:,} events of {source.name}")
    made = project(folder, "nostr", {})
    yield from run(made, report.stored, KILLED_AT[:1])
    with EventStore.open(folder / "notes") as store:
        ids = {event.id for event in store}
        authors = {event.pubkey for event in store}
    table = Tables(made)
    with bronze(made) as log:
        in_bronze = [json.loads(payload)["id"] for payload in log.payloads()]
    yield Check("events in bronze, each once", sorted(ids), sorted(in_bronze))
    in_silver = [row.id for row in table["silver"].select("id").collect()]
    yield Check("events in silver, each once", sorted(ids), sorted(in_silver))
    yield Check("events in quarantine", 0, table["quarantine"].count())
    found = {row.pubkey: row.events for row in table["authors"].collect()}
    yield Check("authors in gold", sorted(authors), sorted(found))
    yield Check("events of authors in gold", len(ids), sum(found.values()))
    yield Check("hours twice in gold", 0, table.twice("hour", "kind"))


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()


def say(text: str) -> None:
    print(text, flush=True)


def shown(value: object) -> str:
    return f"{len(value)}" if isinstance(value, list) else f"{value}"


def watched(parts: Iterator[int | Check], kills: int) -> dict[str, Any]:
    """Print and count the kills and the checks of a demo."""
    begun = time.monotonic()
    found: list[int] = []
    checks: list[Check] = []
    for part in parts:
        if isinstance(part, int):
            found.append(part)
            say(f"kill -9 of the whole run, {part:,} rows in bronze")
        else:
            checks.append(part)
    checks.insert(0, Check("kills", kills, len(found)))
    for check in checks:
        wanted = "" if check.ok else f", {shown(check.expected)} expected"
        say(f"{'ok    ' if check.ok else 'FAILED'} {check.name}: {shown(check.found)}{wanted}")
    seconds = time.monotonic() - begun
    failed = sum(not check.ok for check in checks)
    say(f"{len(found)} kills in {seconds:.0f} s; {failed} of {len(checks)} checks failed")
    return {
        "ok": failed == 0,
        "rows_at_kills": found,
        "seconds": round(seconds, 1),
        "checks": [{"name": check.name, "ok": check.ok} for check in checks],
    }


def main() -> int:
    """Run both; 0 if every check passed, 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="a former output there is replaced")
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--events", type=Path, default=EVENTS, help="signed events, as JSON lines")
    parser.add_argument("--seed", type=int, default=20261130)
    asked = parser.parse_args()
    folder: Path = asked.directory.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report = {
        "orders": watched(
            demo_of_orders(folder / "orders", asked.orders, asked.seed), len(KILLED_AT)
        ),
        "events": watched(demo_of_events(folder / "events", asked.events), 1),
    }
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(part["ok"] for part in report.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
