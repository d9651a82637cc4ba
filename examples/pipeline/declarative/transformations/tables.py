"""Sources into logs, and into silver and quarantine; ``gold.sql`` next to this file has the
rest."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

PROJECT = Path(__file__).absolute().parents[1]
sys.path.insert(0, str(PROJECT))
from steps import Source, load, quarantine_of, silver_of, union  # noqa: E402

spark = SparkSession.active()
pipeline = load(PROJECT.parent, spark)


def sources() -> DataFrame:
    """All sources. Other flows cannot read a sink, so each flow reads the sources."""
    return union([source.stream(spark) for source in pipeline.sources])


def bronze(source: Source) -> None:
    """Append a source to an existing log, which knows the last batch."""
    name = f"bronze_{source.name}"
    log = PROJECT / "bronze" / source.name
    dp.create_sink(name, "deedbook", {"path": str(log), "log": source.bronze})

    @dp.append_flow(target=name, name=f"{name}_flow")
    def flow() -> DataFrame:
        return source.stream(spark).selectExpr("value AS payload")


for one in pipeline.sources:
    bronze(one)


@dp.table
def silver() -> DataFrame:
    """The good rows, each key once."""
    return silver_of(sources(), pipeline)


@dp.table
def quarantine() -> DataFrame:
    """The other rows: file or log, line or position, and the reason."""
    return quarantine_of(sources(), pipeline)
