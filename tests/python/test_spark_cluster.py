"""A read on a standalone cluster: a master and two workers, each executor a JVM of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deedbook.pipeline.cluster import standalone_cluster
from spark_cluster import require_spark, run_driver, write_book

pytestmark = [pytest.mark.spark, pytest.mark.slow]

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


def test_both_executors_read_their_part(tmp_path: Path) -> None:
    require_spark()
    jams = [bytes(10 * (number % 200)) for number in range(EVENTS)]
    book = write_book(tmp_path / "book", jams)
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as cluster:
        output = run_driver(DRIVER, cluster.master, str(book))
    report = next(line for line in output.splitlines() if line.startswith("REPORT "))
    tasks = json.loads(report.removeprefix("REPORT "))
    assert len(tasks) > 4
    assert {task["executor"] for task in tasks} == {"0", "1"}
    assert all(task["count"] > 0 for task in tasks)
    assert sum(task["count"] for task in tasks) == EVENTS
    assert sum(task["total"] for task in tasks) == EVENTS * (EVENTS + 1) // 2
    assert sum(task["size"] for task in tasks) == sum(map(len, jams))
