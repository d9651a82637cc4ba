"""Which columns a table has, and by which of them it is partitioned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """What all runs and sources of a table have in common, but for the order of the columns."""

    columns: dict[str, str]
    """The types by the names, as Spark writes them."""
    partition_by: list[str]
    """The columns that name the folders, the outer ones first."""

    @classmethod
    def of(cls, schema: StructType, partition_by: Sequence[str]) -> Shape:
        """That of rows, whichever of their columns may be null."""
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        return cls(types, list(partition_by))

    @classmethod
    def of_delta(cls, table: Any) -> Shape:
        """That of a Delta table, whose log has the types as Spark has them."""
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        return cls.of(schema, table.metadata().partition_columns)

    def __str__(self) -> str:
        """In words."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        folders = ", ".join(self.partition_by)
        return f"columns {columns}, " + (f"partitioned by {folders}" if folders else "no partition")
