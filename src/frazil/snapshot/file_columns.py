"""The columns of a Parquet file that was written elsewhere, found in a table: by field id, else by the name mapping.

Nothing is converted when a file is registered, so a type fits only where Iceberg itself promotes it on reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from frazil.errors import SchemaMismatch

_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class FileColumns:
    """A file's Parquet columns, in its order, by the ids that the table has for them.

    `may_be_null` are the places of columns that the file has as optional and the table as required. `missing` are the
    table's top-level columns that the file lacks.
    """

    field_ids: tuple[int, ...]
    may_be_null: tuple[int, ...]
    missing: tuple[NestedField, ...]


def has_field_ids(arrow: pa.Schema) -> bool:
    """Whether the file's columns carry ids. SchemaMismatch if only some of them do."""
    carried = [_ID in (field.metadata or {}) for field in arrow]
    if any(carried) and not all(carried):
        bare = arrow.names[carried.index(False)]
        raise SchemaMismatch(
            f"some columns carry field ids and {bare!r} does not; write the file again with all or none"
        )
    return bool(carried) and all(carried)


def file_columns(arrow: pa.Schema, schema: Schema, mapping: NameMapping | None) -> FileColumns:
    """Where each column of a file belongs. SchemaMismatch for one that the table has not, or has with another type."""
    by_id = has_field_ids(arrow)
    if not by_id and mapping is None:
        raise SchemaMismatch(
            "it has no field ids, and the table has no name mapping as other files to be registered with it have ids; "
            "register the files without ids by themselves"
        )
    found = _Columns(by_id)
    names = [] if mapping is None else mapping.root
    matched = found.walk_struct(list(arrow), schema.fields, names, "", repeated=False)
    return FileColumns(
        tuple(found.field_ids),
        tuple(found.may_be_null),
        tuple(field for field in schema.fields if field.field_id not in matched),
    )


class _Columns:
    """Walks the file's schema and the table's side by side, and notes each leaf that it comes to."""

    def __init__(self, by_id: bool) -> None:
        self._by_id = by_id
        self.field_ids: list[int] = []
        self.may_be_null: list[int] = []

    def walk_struct(
        self,
        columns: Sequence[pa.Field],
        fields: Sequence[NestedField],
        names: Sequence[MappedField],
        above: str,
        *,
        repeated: bool,
    ) -> set[int]:
        known: dict[int | None, NestedField] = {field.field_id: field for field in fields}
        mapped = {name: each for each in names for name in each.names}
        by_id = {each.field_id: each for each in names}
        matched: set[int] = set()
        for column in columns:
            field = self._field(column, known, mapped, above + column.name)
            if field.field_id in matched:
                raise SchemaMismatch(f"column {above + column.name!r} is there twice")
            matched.add(field.field_id)
            below = by_id.get(field.field_id)
            self._walk(column, field, [] if below is None else below.fields, above + column.name, repeated=repeated)
        if above:
            _require(known, matched, above)
        return matched

    def _field(
        self, column: pa.Field, known: dict[int | None, NestedField], mapped: dict[str, MappedField], path: str
    ) -> NestedField:
        mapping = mapped.get(column.name)
        if not self._by_id:
            field = None if mapping is None else known.get(mapping.field_id)
            if field is None:
                raise SchemaMismatch(f"the table has no column {path!r} ({column.type}); add it to the table first")
            return field
        number = int(column.metadata[_ID]) if _ID in (column.metadata or {}) else None
        field = known.get(number)
        if field is None or (field.name != column.name and (mapping is None or mapping.field_id != number)):
            held = f"is {field.name!r}" if field else "is no column"
            raise SchemaMismatch(
                f"column {path!r} carries field id {number}, which {held} in the table: the file was written for another "
                "table; ingest it instead"
            )
        return field

    def _walk(
        self, column: pa.Field, field: NestedField, names: Sequence[MappedField], path: str, *, repeated: bool
    ) -> None:
        kind, target = _plain(column.type), field.field_type
        if repeated and column.nullable and field.required:
            raise SchemaMismatch(f"column {path!r} is optional in the file and required in the table")
        if isinstance(target, StructType) and pa.types.is_struct(kind):
            self.walk_struct(list(kind), target.fields, names, f"{path}.", repeated=repeated)
        elif isinstance(target, ListType) and _is_list(kind):
            self._walk(
                kind.value_field, target.element_field, _below(names, "element"), f"{path}.element", repeated=True
            )
        elif isinstance(target, MapType) and pa.types.is_map(kind):
            self._walk(kind.key_field, target.key_field, _below(names, "key"), f"{path}.key", repeated=True)
            self._walk(kind.item_field, target.value_field, _below(names, "value"), f"{path}.value", repeated=True)
        elif isinstance(target, PrimitiveType) and reads_as(kind, target):
            if column.nullable and field.required:
                self.may_be_null.append(len(self.field_ids))
            self.field_ids.append(field.field_id)
        else:
            raise SchemaMismatch(
                f"column {path!r} is {kind} in the file and {target} in the table, and a registered file is read as it "
                "is; ingest it instead, which converts it"
            )


def _require(known: dict[int | None, NestedField], matched: set[int], above: str) -> None:
    for number, field in known.items():
        if field.required and number not in matched:
            raise SchemaMismatch(f"column {above + field.name!r} is required in the table and missing in the file")


def _below(names: Sequence[MappedField], name: str) -> list[MappedField]:
    return next((each.fields for each in names if name in each.names), [])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def reads_as(kind: Any, target: IcebergType) -> bool:
    """Whether readers of an Iceberg table take a Parquet column of the Arrow type `kind` for one of type `target`."""
    types = pa.types
    if types.is_null(kind):
        return True
    if isinstance(target, DecimalType):
        return bool(types.is_decimal(kind) and kind.scale == target.scale and kind.precision <= target.precision)
    if isinstance(target, FixedType):
        return bool(types.is_fixed_size_binary(kind) and kind.byte_width == len(target))
    if isinstance(target, UUIDType):
        return isinstance(kind, pa.UuidType) or bool(types.is_fixed_size_binary(kind) and kind.byte_width == 16)
    check = _READS_AS.get(type(target))
    return check is not None and check(kind)


def _timestamp(unit: str, zoned: bool) -> Callable[[Any], bool]:
    return lambda kind: bool(pa.types.is_timestamp(kind) and kind.unit == unit and (kind.tz is not None) == zoned)


def _is_text(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_integer(bits: int) -> Callable[[Any], bool]:
    """Unsigned ones of 32 bits and more are stored as if they were signed, and readers take them for negative."""
    types = pa.types
    return lambda kind: bool(
        (types.is_signed_integer(kind) and kind.bit_width <= bits)
        or (types.is_unsigned_integer(kind) and kind.bit_width <= 16)
    )


_READS_AS: dict[type[IcebergType], Callable[[Any], bool]] = {
    BooleanType: pa.types.is_boolean,
    IntegerType: _is_integer(32),
    LongType: _is_integer(64),
    FloatType: pa.types.is_float32,
    DoubleType: lambda kind: bool(pa.types.is_float32(kind) or pa.types.is_float64(kind)),
    DateType: pa.types.is_date,
    TimeType: lambda kind: bool(pa.types.is_time64(kind) and kind.unit == "us"),
    TimestampType: _timestamp("us", zoned=False),
    TimestamptzType: _timestamp("us", zoned=True),
    TimestampNanoType: _timestamp("ns", zoned=False),
    TimestamptzNanoType: _timestamp("ns", zoned=True),
    StringType: _is_text,
    BinaryType: _is_bytes,
}
