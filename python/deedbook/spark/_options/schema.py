"""The columns of a log, and the columns that a DataFrame's schema picks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StringType, StructField, StructType

from deedbook import InvalidArgumentError
from deedbook.spark._options.options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CORRUPT_RECORD", "Column", "as_struct", "bind", "on_request", "resolve"]

CORRUPT_RECORD = ""
"""Stands in a binding for the column that describes damage; no column has this name."""


@dataclass(frozen=True)
class Column:
    """A column of a log: whether to read by default, and the modes without nulls."""

    name: str
    type: DataType
    meaning: str
    default: bool = True
    never_null: tuple[str, ...] = ("FAILFAST", "DROPMALFORMED")


def on_request(name: str, type: DataType, meaning: str) -> Column:
    """A column with the place of a row: not read by default, known for damage as well."""
    never_null = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
    return Column(name, type, meaning, default=False, never_null=never_null)


def as_struct(schema: StructType | pa.Schema) -> StructType:
    """A schema of Spark. Sail gives a pyarrow schema."""
    if isinstance(schema, StructType):
        return schema
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def resolve(columns: Sequence[Column], options: ReadOptions) -> StructType:
    """The schema of a read without a schema of the user's: the default columns, or ``columns``.

    All fields are nullable, as in Spark's own file sources. `InvalidArgumentError` for a column
    that does not exist or is named twice.
    """
    chosen: list[StructField] = []
    if options.columns is None:
        chosen = [_field(column) for column in columns if column.default]
    else:
        for name in options.columns:
            if _same(name, options.column_name_of_corrupt_record):
                chosen.append(StructField(options.column_name_of_corrupt_record, StringType()))
            else:
                chosen.append(_field(_find(columns, name, options, "option columns")))
    corrupt = options.column_name_of_corrupt_record
    if options.mode == "PERMISSIVE" and not any(_same(field.name, corrupt) for field in chosen):
        chosen.append(StructField(corrupt, StringType()))
    schema = StructType(chosen)
    bind(columns, schema, options)
    return schema


def bind(columns: Sequence[Column], schema: StructType, options: ReadOptions) -> tuple[str, ...]:
    """Name the log's column of each field of ``schema``, or `CORRUPT_RECORD`.

    `InvalidArgumentError` for a field that is missing in the log, has another type, or may be null
    against the schema.
    """
    bound: list[str] = []
    for field in schema.fields:
        if _same(field.name, options.column_name_of_corrupt_record):
            column = Column(CORRUPT_RECORD, StringType(), "", never_null=())
            if any(_same(field.name, other.name) for other in columns):
                raise InvalidArgumentError(
                    f"option columnNameOfCorruptRecord: {field.name} is a column of the log"
                )
        else:
            column = _find(columns, field.name, options, "schema")
        _check(field, column, options)
        if column.name in bound:
            raise InvalidArgumentError(f"schema: column {field.name} is there twice")
        bound.append(column.name)
    if not bound:
        raise InvalidArgumentError(f"schema: no column; allowed: {_allowed(columns, options)}")
    return tuple(bound)


def _find(columns: Sequence[Column], name: str, options: ReadOptions, where: str) -> Column:
    for column in columns:
        if _same(column.name, name):
            return column
    raise InvalidArgumentError(
        f"{where}: unknown column {name}; allowed: {_allowed(columns, options)}"
    )


def _check(field: StructField, column: Column, options: ReadOptions) -> None:
    if field.dataType != column.type:
        raise InvalidArgumentError(
            f"schema: column {field.name} is {column.type.simpleString()},"
            f" not {field.dataType.simpleString()}"
        )
    if not field.nullable and options.mode not in column.never_null:
        raise InvalidArgumentError(
            f"schema: column {field.name} can be null in mode {options.mode}; declare it nullable"
        )


def _allowed(columns: Sequence[Column], options: ReadOptions) -> str:
    named = [f"{column.name} {column.type.simpleString()}" for column in columns]
    return ", ".join([*named, f"{options.column_name_of_corrupt_record} string"])


def _field(column: Column) -> StructField:
    return StructField(column.name, column.type)


def _same(left: str, right: str) -> bool:
    return left.lower() == right.lower()
