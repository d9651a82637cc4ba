"""The package by which Spark finds the ``deedbook`` format without registration.

Once per JVM, Spark imports every top-level package named ``pyspark_*`` and takes its
``DefaultSource``; an import error in one breaks the look-up for all. So this module imports
nothing but pyspark, which is loaded already: the native module and pyarrow wait until a
``deedbook`` source is used.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """The data source of ``spark.read``, ``readStream``, ``write`` and ``writeStream``.

    See `deedbook.spark`.
    Spark makes it on the driver from the options of the read, and pickles it.
    """

    _found: Any = None

    @classmethod
    def name(cls) -> str:
        """The format's name, ``deedbook``."""
        return "deedbook"

    def schema(self) -> StructType:
        """The columns that the options ask for, when the user gives no schema.

        Checks the options and that there is a log at the path.

        Raises `deedbook.InvalidArgumentError` and `deedbook.MissingError`.
        """
        from deedbook.spark import _reader

        # Spark keeps this object for the reader that it makes next: logs are looked for once.
        self._found = _reader.detected(self.options)
        schema = _reader.default_schema(self.options, self._found)
        if "pysail" not in sys.modules:
            return schema
        # Sail, whose server is this process, takes a time zone from a pyarrow schema alone.
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(schema, timezone="UTC")  # type: ignore[return-value]

    def reader(self, schema: StructType) -> DataSourceReader:
        """The batch reader of the columns of ``schema``.

        Raises `deedbook.InvalidArgumentError` for an option or a schema that does not fit, and
        `deedbook.MissingError` where there is no log.
        """
        from deedbook.spark import _reader

        return _reader.make_reader(self.options, schema, self._found)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The stream reader of the columns of ``schema``. Its first call raises what is wrong."""
        from deedbook.spark import _stream

        return _stream.DeedbookStreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The batch writer of a DataFrame of this schema, in mode ``append``.

        Raises `deedbook.InvalidArgumentError` for a mode, an option or a column that does not fit.
        """
        from deedbook.spark import _writer

        return _writer.make_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of a stream's batch, in output mode ``append``. Raises as `writer` does."""
        from deedbook.spark import _writer

        return _writer.make_stream_writer(self.options, schema, overwrite)
