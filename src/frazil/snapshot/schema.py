"""From an Arrow schema to the Iceberg schema of a new table, and from a column to the type it has there."""

from __future__ import annotations

import json
from typing import cast

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, _ConvertToIcebergWithoutIDs, visit_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.typedef import TableVersion
from pyiceberg.types import DoubleType, FloatType, IcebergType

from frazil.errors import SchemaMismatch

IDENTIFIER_KEY = b"frazil.identifier"
"""The key of an Arrow schema's metadata that names the columns of its primary key, as a JSON list."""

_NEAREST = {pa.uint32(): pa.int64(), pa.date64(): pa.date32(), pa.float16(): pa.float32()}

_MOST_DIGITS = 38


def table_schema(arrow: pa.Schema, format_version: int, where: str) -> Schema:
    """The schema of a new table that holds `arrow`. `where` is the source's name for errors.

    Types that Arrow has and Iceberg has not become the nearest that holds every value; but nanoseconds (below format v3
    in timestamps, always in times) become microseconds, and a value that would lose digits is refused when it is written.
    """
    names = [name.lower() for name in arrow.names]
    for name in arrow.names:
        if not name:
            raise SchemaMismatch(f"{where} has a column without a name; rename it at the source")
        if names.count(name.lower()) > 1:
            raise SchemaMismatch(f"{where} has more than one column called {name!r}; rename one at the source")
    for field in arrow:
        column_type(field, where, format_version)
    nearest = pa.schema([_nearest_field(field) for field in arrow])
    schema = assign_fresh_schema_ids(visit_pyarrow(nearest, _converter(format_version)))
    return Schema(*schema.fields, identifier_field_ids=_identifier(arrow, schema))


def _identifier(arrow: pa.Schema, schema: Schema) -> list[int]:
    """The ids of the primary key's columns. None where Iceberg does not take one of them: optional, or a float."""
    names = json.loads((arrow.metadata or {}).get(IDENTIFIER_KEY, b"[]"))
    fields = [schema.find_field(name) for name in names]
    if any(not field.required or isinstance(field.field_type, (FloatType, DoubleType)) for field in fields):
        return []
    return [field.field_id for field in fields]


def column_type(field: pa.Field, where: str, format_version: int) -> IcebergType:
    """The type that a column has in a table; ids within it are not assigned. SchemaMismatch, naming it, if it has none."""
    try:
        if field.type == pa.uint64():
            raise TypeError("Iceberg has no type for numbers from 2**63 on")
        schema = visit_pyarrow(pa.schema([_nearest_field(field)]), _converter(format_version))
        return cast("Schema", schema).fields[0].field_type
    except (
        TypeError,
        ValueError,
        NotImplementedError,
        ValidationError,
        UnsupportedPyArrowTypeException,
    ) as error:
        raise SchemaMismatch(
            f"column {field.name!r} of {where} is of type {field.type}, which a format v{format_version} table cannot "
            f"hold ({error}); cast it at the source"
        ) from error


def _converter(format_version: int) -> _ConvertToIcebergWithoutIDs:
    version: TableVersion = format_version  # type: ignore[assignment]
    return _ConvertToIcebergWithoutIDs(downcast_ns_timestamp_to_us=format_version < 3, format_version=version)


def _nearest_field(field: pa.Field) -> pa.Field:
    return field.with_type(_nearest(field.type))


def _nearest(kind: pa.DataType) -> pa.DataType:
    """PyIceberg refuses these, or takes a type that is too narrow; writing converts them."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return pa.map_(_nearest_field(kind.key_field), _nearest_field(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_nearest_field(field) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_nearest_field(kind.value_field))
    return _NEAREST.get(kind, kind)
