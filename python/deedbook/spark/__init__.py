"""Deedbook logs as Spark DataFrames: ``spark.read.format("deedbook").load(path)``.

And as streams, ``spark.readStream.format("deedbook").load(path)``.

Spark 4 finds the format by itself, through the package ``pyspark_deedbook``. If Spark does not (the
package was installed after the session began), call `register` first:

>>> import deedbook.spark
>>> deedbook.spark.register(spark)  # doctest: +SKIP
>>> spark.read.format("deedbook").load("pier/.urb/log/0i0").show()  # doctest: +SKIP

The options and columns are on the page Spark of the documentation. Reading runs in the Python
workers of the executors, so Deedbook and pyarrow must be installed on every node, and every node
must see the log under the same path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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


_SET_BY_STREAMS: Final = {
    "SPARK_LOCAL_DIRS": "",
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
"""The variables that each stream adds to the environment of its source, in the driver.

All streams of a session share the map, without a lock. If a key is new, two streams that begin at
once break the map, and from then on executors cannot read their tasks
(``java.io.OptionalDataException``). Spark sets the values itself before it uses them.
"""


def register(spark: SparkSession) -> None:
    """Register the ``deedbook`` format with a session, if Spark did not find the format by itself.

    Also call `register` if several streams of a session may begin at the same time.
    """
    context: Any = getattr(spark, "_sc", None)
    if context is None:  # Spark Connect: the driver is elsewhere
        spark.dataSource.register(DeedbookSource)
        return
    environment = context.environment
    context.environment = {**_SET_BY_STREAMS, **environment}
    try:
        spark.dataSource.register(DeedbookSource)
    finally:
        context.environment = environment
