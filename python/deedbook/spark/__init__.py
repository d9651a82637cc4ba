"""Deedbook logs as Spark DataFrames: ``spark.read.format("deedbook").load(path)``.

And as streams, ``spark.readStream.format("deedbook").load(path)``.

Spark 4 finds the format by itself, through the package ``pyspark_deedbook``. Where it does not
(the package was installed after the session began), call `register` first:

>>> import deedbook.spark
>>> deedbook.spark.register(spark)  # doctest: +SKIP
>>> spark.read.format("deedbook").load("pier/.urb/log/0i0").show()  # doctest: +SKIP

The options and columns are in ``docs/spark.md``. Reading runs in the Python workers of the
executors, so Deedbook and pyarrow must be installed on every node, and every node must see the
log under the same path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark_deedbook import DefaultSource as DeedbookSource
except ModuleNotFoundError as error:  # pragma: no cover - depends on the environment
    if not (error.name or "").startswith("pyspark"):
        raise
    raise ModuleNotFoundError(
        "deedbook.spark needs pyspark and pyarrow: pip install 'deedbook[spark]'", name=error.name
    ) from error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DeedbookSource", "register"]


def register(spark: SparkSession) -> None:
    """Register the ``deedbook`` format with a session, where Spark did not find it by itself."""
    spark.dataSource.register(DeedbookSource)
