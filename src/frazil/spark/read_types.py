"""Iceberg's types as Spark's, for reading."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from frazil.errors import SchemaMismatch

# Spark counts microseconds, so nanoseconds are read as them, and a value that would lose digits is an error. Its time
# of day is off by default (spark.sql.timeType.enabled), so a time comes as text, as a uuid does.
_PLAIN: dict[type[iceberg.IcebergType], spark.DataType] = {
    iceberg.BooleanType: spark.BooleanType(),
    iceberg.IntegerType: spark.IntegerType(),
    iceberg.LongType: spark.LongType(),
    iceberg.FloatType: spark.FloatType(),
    iceberg.DoubleType: spark.DoubleType(),
    iceberg.DateType: spark.DateType(),
    iceberg.TimeType: spark.StringType(),
    iceberg.TimestampType: spark.TimestampNTZType(),
    iceberg.TimestamptzType: spark.TimestampType(),
    iceberg.TimestampNanoType: spark.TimestampNTZType(),
    iceberg.TimestamptzNanoType: spark.TimestampType(),
    iceberg.StringType: spark.StringType(),
    iceberg.UUIDType: spark.StringType(),
    iceberg.FixedType: spark.BinaryType(),
    iceberg.BinaryType: spark.BinaryType(),
    iceberg.UnknownType: spark.NullType(),
}


def spark_schema(schema: Schema, table: str) -> spark.StructType:
    """The schema of a DataFrame of these columns. SchemaMismatch names a column that Spark cannot hold."""
    return spark.StructType([_field(each, table, each.name) for each in schema.fields])


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """What Spark takes for such a DataFrame, exactly."""
    return to_arrow_schema(schema, timezone="UTC")


def check_wanted(wanted: spark.StructType, schema: Schema, table: str) -> None:
    """Refuse a schema that a user gave and that says other types than the table's. Its columns were found already."""
    there = {field.name: field for field in spark_schema(schema, table)}
    for field in wanted:
        if field.dataType.simpleString() != there[field.name].dataType.simpleString():
            raise SchemaMismatch(
                f"column {field.name!r} of table {table} is read as {there[field.name].dataType.simpleString()}, not "
                f"as {field.dataType.simpleString()}; leave the schema out, and cast the column"
            )


def _field(field: iceberg.NestedField, table: str, path: str) -> spark.StructField:
    return spark.StructField(field.name, _type(field.field_type, table, path), field.optional)


def _type(kind: iceberg.IcebergType, table: str, path: str) -> spark.DataType:
    if isinstance(kind, iceberg.DecimalType):
        return spark.DecimalType(kind.precision, kind.scale)
    if isinstance(kind, iceberg.StructType):
        return spark.StructType([_field(each, table, f"{path}.{each.name}") for each in kind.fields])
    if isinstance(kind, iceberg.ListType):
        return spark.ArrayType(_type(kind.element_type, table, f"{path}.element"), not kind.element_required)
    if isinstance(kind, iceberg.MapType):
        key = _type(kind.key_type, table, f"{path}.key")
        return spark.MapType(key, _type(kind.value_type, table, f"{path}.value"), not kind.value_required)
    found = _PLAIN.get(type(kind))
    if found is None:
        raise SchemaMismatch(
            f"column {path!r} of table {table} is of type {kind}, which cannot be read into a DataFrame; leave it out "
            "with the option columns"
        )
    return found
