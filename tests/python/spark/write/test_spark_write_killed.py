"""Writing through Spark while drivers, with their JVM, and executors are killed."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.kills.cluster import standalone_cluster
from deedbook import Book, Wal
from logs import append_to
from places import ROOT, SUPPORT
from spark_session import finish, require_spark, run_driver

pytestmark = [
    pytest.mark.full,
    pytest.mark.promise(
        "transaction-crash", "spark-query-killed", "spark-repeat", "spark-executor-killed"
    ),
]

DRIVER = """
import sys
from spark_session import local_session
source, checkpoint, log = sys.argv[1:]
spark = local_session()
frame = spark.readStream.format("deedbook").options(maxRowsPerTrigger=100, minPartitions=2)
rows = frame.option("columns", "payload").load(source)
writer = rows.writeStream.format("deedbook").option("checkpointLocation", checkpoint)
query = writer.trigger(processingTime="20 milliseconds").start(log)
print("started", flush=True)
query.awaitTermination()
"""


def numbered(start: int, stop: int) -> list[bytes]:
    return [b"%d:" % number * (number % 40 + 1) for number in range(start, stop)]


# In a process of its own, because a step of a commit takes less than a millisecond. It kills the
# whole session: Spark gives its Python processes a group of their own.
KILLER = """
import os, random, sys, time
from chaos.kills.processes import kill, kill_all, session

leader, step, sidecar = int(sys.argv[1]), sys.argv[2], sys.argv[3]
names = ("staged", "transaction", "transactions")
staged, intent, record = (os.path.join(sidecar, name) for name in names)

def changed():
    return os.stat(record).st_mtime_ns if os.path.exists(record) else 0

before, until = changed(), time.monotonic() + 20
at_random = time.monotonic() + random.uniform(0.5, 4)
steps = {
    "random": lambda: time.monotonic() > at_random,
    "staged": lambda: os.path.isdir(staged) and len(os.listdir(staged)) > 0,
    "intent": lambda: os.path.exists(intent),
    "record": lambda: changed() != before,
}
known, looked = session(leader), time.monotonic()
while not steps[step]() and time.monotonic() < until:
    if time.monotonic() - looked > 0.05:
        known, looked = session(leader), time.monotonic()
for pid in known:  # the workers first, the JVM last
    kill(pid, leader)
kill_all(leader)
"""


class Follower(threading.Thread):
    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log, self.seen, self.ended = log, list[bytes](), threading.Event()

    def run(self) -> None:
        with Book.open(self.log) as book:
            while not self.ended.is_set():
                first = len(self.seen) + 1
                self.seen += [deed.jam for deed in book.follow(first, timeout=0.05)]


def test_stream_killed_at_any_step_writes_records_once(spark: Any, tmp_path: Path) -> None:
    source, log, checkpoint = tmp_path / "source", tmp_path / "log", tmp_path / "checkpoint"
    Book.create(log).close()
    intent = log / ".deedbook" / "transaction"
    follower = Follower(log)
    follower.start()
    begun = 0
    total = 0
    try:
        for step in ("random", "staged", "intent", "record", "intent"):
            append_to("wal", source, numbered(total, total + 3000), segment_bytes=20_000)
            total += 3000
            command = [sys.executable, "-c", DRIVER, str(source), str(checkpoint), str(log)]
            driver = subprocess.Popen(
                command, cwd=SUPPORT, stdout=subprocess.PIPE, start_new_session=True
            )
            try:
                assert driver.stdout is not None
                assert driver.stdout.readline() == b"started\n"
                killer = [sys.executable, "-c", KILLER, str(driver.pid), step]
                killer.append(str(log / ".deedbook"))
                subprocess.run(killer, check=True, timeout=60, cwd=ROOT / "tests")
                assert driver.wait() == -signal.SIGKILL
            finally:
                driver.kill()
                driver.wait()
                driver.stdout.close()
            begun += intent.exists()
        rows = spark.readStream.format("deedbook").option("columns", "payload").load(str(source))
        finish(rows.writeStream.format("deedbook"), checkpoint, log)
        with Book.open(log) as book:
            written = [deed.jam for deed in book]
            assert written == numbered(0, total)
            staged_jobs = book.transactions.staged()
        assert staged_jobs == [], "dead drivers left staged files"
        assert not intent.exists()
        assert begun > 0, "no driver was killed in a commit"
        until = time.monotonic() + 20
        while len(follower.seen) < total and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        follower.ended.set()
        follower.join()
    assert follower.seen == written


WRITER = """
import os, signal, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession

master, log, mark = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "512m")
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    .config("spark.cores.max", "2")
    .config("spark.speculation", "true")
    .config("spark.speculation.interval", "100ms")
    .config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.3")
    .getOrCreate()
)

def task(batches):
    import time
    context = TaskContext.get()
    for batch in batches:
        yield batch
    if context.partitionId() == 3 and not os.path.exists(mark):
        open(mark, "x").close()
        time.sleep(0.5)
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat") as stat:
            executor = int(stat.read().rpartition(")")[2].split()[1])
        os.kill(executor, signal.SIGKILL)
    if context.partitionId() == 5 and context.attemptNumber() == 0:
        time.sleep(3)  # so long that a second attempt overtakes it

rows = spark.range(0, 8000, 1, 8).selectExpr("cast(id as string) as payload")
frame = rows.mapInArrow(task, "payload string")
frame.write.format("deedbook").mode("append").option("log", "wal").save(log)
spark.stop()
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the executor by /proc")
def test_killed_executor_and_speculation_write_records_once(tmp_path: Path) -> None:
    require_spark()
    (tmp_path / "cluster").mkdir()
    log, mark = tmp_path / "log", tmp_path / "killed"
    with standalone_cluster(tmp_path / "cluster") as cluster:
        run_driver(WRITER, cluster.master, str(log), str(mark), environment=cluster.environment)
    assert mark.exists()
    with Wal.open(log) as wal:
        assert list(wal.payloads()) == [b"%d" % number for number in range(8000)]
        left: Any = wal.transactions.staged()
    with Wal.open(log, "a") as wal:
        for job in left:  # an attempt that ended after the commit
            assert wal.transactions.discard(job.job)
