"""One schema for files that each have their own."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from frazil.errors import SchemaMismatch

_UNITS = ("s", "ms", "us", "ns")
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


def merged_schema(distinct: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Columns in order of appearance, optional where a file lacks them. SchemaMismatch names two files that clash."""
    merged: dict[str, tuple[pa.Field, str]] = {}
    for path, schema in distinct:
        for field in schema:
            if field.name not in merged:
                merged[field.name] = (field, path)
            else:
                merged[field.name] = _wider(merged[field.name], field, path)
    everywhere = set.intersection(*(set(schema.names) for _, schema in distinct))
    return pa.schema(
        [field if name in everywhere else field.with_nullable(True) for name, (field, _) in merged.items()]
    )


def plain_field(field: pa.Field) -> pa.Field:
    """Without a dictionary: how a file's writer held its values says nothing of the table."""
    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def _wider(known: tuple[pa.Field, str], field: pa.Field, path: str) -> tuple[pa.Field, str]:
    """The field that holds both, and the file it is from; both as far as Iceberg's own promotions reach."""
    before, first = known
    nullable = before.nullable or field.nullable
    common = _common_type(before.type, field.type)
    if common is None:
        raise SchemaMismatch(
            f"the sources clash on column {field.name!r}: it is {before.type} in {first} and {field.type} in {path}; "
            "cast one of them, or ingest them into different tables"
        )
    return before.with_type(common).with_nullable(nullable), path if common.equals(field.type) else first


def _common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if one.equals(other):
        return one
    if types.is_integer(one) and types.is_integer(other):
        bits = max(kind.bit_width + types.is_unsigned_integer(kind) for kind in (one, other))
        return pa.int32() if bits <= 32 else pa.int64() if bits <= 64 else None
    if types.is_floating(one) and types.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    if types.is_decimal(one) and types.is_decimal(other):
        return max(one, other, key=lambda kind: kind.precision) if one.scale == other.scale else None
    if types.is_timestamp(one) and types.is_timestamp(other):
        return max(one, other, key=lambda kind: _UNITS.index(kind.unit)) if one.tz == other.tz else None
    for kinds in (_TEXTS, _BYTES):
        if all(any(is_kind(each) for is_kind in kinds) for each in (one, other)):
            return one
    return None
