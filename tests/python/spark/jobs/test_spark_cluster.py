"""Reads and jobs on a standalone cluster: a master and two workers, each executor a JVM."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.kills.cluster import standalone_cluster
from deedbook import Book
from spark_session import require_spark, run_driver

pytestmark = pytest.mark.full

BEGIN = """
import json, os, sys
from pathlib import Path
from deedbook.spark import jobs
from deedbook._spark_session import session

master, home = sys.argv[1], Path(sys.argv[2])
settings = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}
"""

JOBS = """
with session("jobs", home / "spark.log", master, settings) as spark:
    taken = jobs.ingest(spark, home / "in", home / "book", format="book", batch_bytes=20_000)
    (checked,) = jobs.verify(spark, home / "book")
    made = jobs.export(spark, home / "book", home / "table")
    found = spark.read.parquet(str(home / "table"))
    report = {"taken": taken.appended, "ok": checked.ok, "rows": made.rows,
              "records": checked.outcome.facts["records"],
              "events": [row.event for row in found.select("event").collect()]}
print("REPORT " + json.dumps(report))
"""

REFUSED = """
import sys
from pyspark import SparkConf, SparkContext

conf = SparkConf().setMaster(sys.argv[1]).set("spark.ui.enabled", "false")
print("RAN", SparkContext(conf=conf).parallelize([1]).map(lambda one: one + 1).collect())
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require_spark()
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def reported(script: str, cluster: Any, home: Path) -> Any:
    output = run_driver(
        BEGIN + script, cluster.master, str(home), timeout_s=240, environment=cluster.environment
    )
    report = next(line for line in output.splitlines() if line.startswith("REPORT "))
    return json.loads(report.removeprefix("REPORT "))


def test_a_driver_without_the_secret_is_refused(cluster: Any) -> None:
    with pytest.raises((AssertionError, subprocess.TimeoutExpired)) as raised:
        run_driver(REFUSED, cluster.master, timeout_s=90)
    assert cluster.executors() == [] and "RAN" not in str(raised.value)


def test_jobs_run_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    """Each executor has a JVM and a working directory of its own."""
    (tmp_path / "in").mkdir()
    for file in range(4):
        lines = (b'{"n":%d}\n' % (250 * file + line) for line in range(250))
        (tmp_path / "in" / f"{file}.jsonl").write_bytes(b"".join(lines))
    found = reported(JOBS, cluster, tmp_path)
    assert sorted(found.pop("events")) == list(range(1, 1001))
    assert found == {"taken": 1000, "ok": True, "records": 1000, "rows": 1000}
    with Book.open(tmp_path / "book") as book:
        assert [json.loads(payload)["n"] for payload in book.payloads()] == list(range(1000))
