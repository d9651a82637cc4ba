"""A read on a standalone cluster: a master and two workers, each executor a JVM of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from deedbook import Book
from deedbook.pipeline.cluster import standalone_cluster
from spark_cluster import require_spark, run_driver, write_book

pytestmark = [pytest.mark.spark, pytest.mark.full]

EVENTS = 4000

# What each task reports comes from an executor's Python worker; its working directory ends with
# the executor's number, and its parent's parent is the executor.
DRIVER = """
import json, os, sys
from pyspark.sql import SparkSession

master, book = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.memory", "512m")
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    .config("spark.cores.max", "2")
    .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
    .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
    .getOrCreate()
)

def task(batches):
    import time
    import pyarrow as pa
    count = total = size = 0
    for batch in batches:
        count += batch.num_rows
        total += sum(batch.column("event").to_pylist())
        size += sum(map(len, batch.column("jam").to_pylist()))
    time.sleep(0.2)
    executor = os.path.basename(os.getcwd())
    yield pa.RecordBatch.from_pylist(
        [{"executor": executor, "count": count, "total": total, "size": size}]
    )

frame = spark.read.format("deedbook").option("splitSize", "512k").load(book)
rows = frame.mapInArrow(task, "executor string, count long, total long, size long").collect()
print("REPORT " + json.dumps([row.asDict() for row in rows]))
spark.stop()
"""


JOBS = """
import json, sys
from pathlib import Path
from deedbook.spark import jobs
from deedbook.spark._session import session

master, home = sys.argv[1], Path(sys.argv[2])
few = {"spark.executor.memory": "512m", "spark.executor.cores": "1", "spark.cores.max": "2",
       "spark.sql.shuffle.partitions": "2"}
with session("jobs", home / "spark.log", master, few) as spark:
    taken = jobs.ingest(spark, home / "in", home / "book", format="book", batch_bytes=20_000)
    (checked,) = jobs.verify(spark, home / "book")
    made = jobs.export(spark, home / "book", home / "table")
    found = spark.read.parquet(str(home / "table"))
    report = {"taken": taken.appended, "ok": checked.ok, "rows": made.rows,
              "records": checked.outcome.facts["records"],
              "events": [row.event for row in found.select("event").collect()]}
print("REPORT " + json.dumps(report))
"""


def test_jobs_run_on_a_cluster(tmp_path: Path) -> None:
    """Each executor has a JVM and a working directory of its own."""
    require_spark()
    (tmp_path / "in").mkdir()
    for file in range(4):
        lines = (b'{"n":%d}\n' % (250 * file + line) for line in range(250))
        (tmp_path / "in" / f"{file}.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as cluster:
        output = run_driver(
            JOBS, cluster.master, str(tmp_path), timeout_s=240, environment=cluster.environment
        )
    report = next(line for line in output.splitlines() if line.startswith("REPORT "))
    found = json.loads(report.removeprefix("REPORT "))
    assert sorted(found.pop("events")) == list(range(1, 1001))
    assert found == {"taken": 1000, "ok": True, "records": 1000, "rows": 1000}
    with Book.open(tmp_path / "book") as book:
        assert [json.loads(payload)["n"] for payload in book.payloads()] == list(range(1000))


def test_both_executors_read_their_part(tmp_path: Path) -> None:
    require_spark()
    jams = [bytes(10 * (number % 200)) for number in range(EVENTS)]
    book = write_book(tmp_path / "book", jams)
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as cluster:
        output = run_driver(DRIVER, cluster.master, str(book), environment=cluster.environment)
    report = next(line for line in output.splitlines() if line.startswith("REPORT "))
    tasks = json.loads(report.removeprefix("REPORT "))
    assert len(tasks) > 4
    assert {task["executor"] for task in tasks} == {"0", "1"}
    assert all(task["count"] > 0 for task in tasks)
    assert sum(task["count"] for task in tasks) == EVENTS
    assert sum(task["total"] for task in tasks) == EVENTS * (EVENTS + 1) // 2
    assert sum(task["size"] for task in tasks) == sum(map(len, jams))


REFUSED = """
import sys
from pyspark import SparkConf, SparkContext

conf = SparkConf().setMaster(sys.argv[1]).set("spark.ui.enabled", "false")
print("RAN", SparkContext(conf=conf).parallelize([1]).map(lambda one: one + 1).collect())
"""


def test_a_driver_without_the_secret_is_refused(tmp_path: Path) -> None:
    """Any local user ran code as the one whose cluster it was."""
    require_spark()
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as cluster:
        with pytest.raises((AssertionError, subprocess.TimeoutExpired)) as raised:
            run_driver(REFUSED, cluster.master, timeout_s=90)
        assert cluster.executors() == [] and "RAN" not in str(raised.value)
