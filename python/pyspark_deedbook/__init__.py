"""The package by which Spark finds the ``deedbook`` format without registration.

Once per JVM, Spark imports every top-level package named ``pyspark_*`` and uses its
``DefaultSource``. An import error in one package breaks the look-up for all. For this reason, the
module imports only pyspark, which is loaded already. The native module and pyarrow wait until a
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

    See `deedbook.spark`. Spark makes the source on the driver from the options of the read, and
    pickles it.
    """

    _found: Any = None

    @classmethod
    def name(cls) -> str:
        """The format's name, ``deedbook``."""
        return "deedbook"

    def schema(self) -> StructType:
        """The columns by the options, if the user gives no schema.

        Checks the options, and the path for a log.

        Raises `deedbook.InvalidArgumentError` and `deedbook.MissingError`.
        """
        from deedbook.spark._read import reader as _reader

        # Spark keeps this object for the next reader: one search for logs is enough.
        self._found = _reader.detected(self.options)
        schema = _reader.default_schema(self.options, self._found)
        if "pysail" not in sys.modules:
            return schema
        # Sail, whose server is this process, reads a time zone from a pyarrow schema only.
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(schema, timezone="UTC")  # type: ignore[return-value]

    def reader(self, schema: StructType) -> DataSourceReader:
        """The batch reader of the columns of ``schema``.

        Raises `deedbook.InvalidArgumentError` for a wrong option or schema, and
        `deedbook.MissingError` if there is no log.
        """
        from deedbook.spark._read import reader as _reader

        return _reader.make_reader(self.options, schema, self._found)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The stream reader of the columns of ``schema``. The reader's first call raises errors."""
        from deedbook.spark._read import stream as _stream

        return _stream.make_stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The batch writer of a DataFrame of this schema, in mode ``append``.

        Raises `deedbook.InvalidArgumentError` for a wrong mode, option or column.
        """
        from deedbook.spark._write import writer as _writer

        return _writer.make_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """The writer of a stream's batch, in output mode ``append``. Raises as `writer` does."""
        from deedbook.spark._write import writer as _writer

        return _writer.make_stream_writer(self.options, schema, overwrite)
