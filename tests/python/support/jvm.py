"""Spark's JVMs in the tests: most live for seconds, and mainly load classes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_VARIABLES = ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS")
# No optimising compiler, because the JVMs are short-lived.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Loads the same classes as the tests' drivers: SQL, files, a stream, Python in a task.
_DRIVER = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = spark.config("spark.sql.shuffle.partitions", "2").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
place = sys.argv[1]
rows = spark.range(100).selectExpr("id", "id % 7 as key", "cast(id as string) as text")
rows.mapInArrow(lambda batches: batches, rows.schema).write.parquet(place + "/rows")
rows = spark.readStream.schema(rows.schema).parquet(place + "/rows").groupBy("key").count()
query = rows.writeStream.outputMode("complete").format("memory").queryName("counted")
query = query.option("checkpointLocation", place + "/checkpoint").trigger(availableNow=True)
query.start().awaitTermination()
assert spark.sql("select * from counted order by key").count() == 7
spark.stop()
"""


def set_options() -> None:
    """Set options for all later JVMs, unless the caller's environment has its own."""
    for name in (*_VARIABLES, "SPARK_LAUNCHER_OPTS"):
        os.environ.setdefault(name, _SHORT_LIVED)


def archive_classes(directory: Path) -> bool:
    """Make a JVM archive its loaded classes, and make the other JVMs start with the archive.

    The others then start in half the time. If Java cannot make the archive, they start as before.
    """
    if any(os.environ.get(name) != _SHORT_LIVED for name in _VARIABLES):
        return False
    archive = directory / "spark.jsa"
    # A hanging JVM may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        env["SPARK_SUBMIT_OPTS"] = (
            f"{_SHORT_LIVED} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
        )
        # The JVM writes the archive after its driver has ended, and before it closes its output.
        try:
            command = [sys.executable, "-c", _DRIVER, place]
            subprocess.run(
                command, env=env, cwd=place, capture_output=True, timeout=300, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return False
    if not archive.exists():
        return False
    # A JVM with another class path ignores the archive; the option suppresses its warning.
    for name in _VARIABLES:
        os.environ[name] = f"{_SHORT_LIVED} -XX:SharedArchiveFile={archive} -Xlog:disable"
    return True
