"""The columns and the partition columns of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """The shape common to all runs and sources of a table, except for the order of columns."""

    columns: dict[str, str]
    """The types by the names, in Spark's spelling."""
    partition_by: list[str]
    """The columns for the folders, the outer columns first."""

    @classmethod
    def of(cls, schema: StructType, partition_by: Sequence[str]) -> Shape:
        """The shape of rows. Any column may be null."""
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        return cls(types, list(partition_by))

    @classmethod
    def of_delta(cls, table: Any) -> Shape:
        """The shape of a Delta table. The Delta log has Spark's types."""
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        return cls.of(schema, table.metadata().partition_columns)

    def without_types(self, names: Sequence[str]) -> Shape:
        """The shape without the types of some columns."""
        columns = {name: "" if name in names else kind for name, kind in self.columns.items()}
        return Shape(columns, self.partition_by)

    def __str__(self) -> str:
        """In words."""
        columns = ", ".join(f"{name} {kind}".strip() for name, kind in self.columns.items())
        folders = ", ".join(self.partition_by)
        return f"columns {columns}, " + (f"partitioned by {folders}" if folders else "no partition")
