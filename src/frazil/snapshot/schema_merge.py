"""What a table's schema must become to hold rows of an Arrow schema: pure, from values to a value.

Rows that are in the table keep their meaning: a column is never dropped, renamed or narrowed, and a new one is optional
and has an id that the table never used. Types change only as the table format allows; map keys not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import cast

import pyarrow as pa
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import DayTransform, MonthTransform, VoidTransform, YearTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNanoType,
    TimestampType,
    UnknownType,
)

from frazil.errors import SchemaMismatch
from frazil.snapshot.alignment import is_list, takes
from frazil.snapshot.schema import column_type

TOP = -1  # the parent of a table's own columns, as PyIceberg's name mappings count

_MOST_DIGITS = 38
_SAME_OF_DATE_AND_TIME = (YearTransform, MonthTransform, DayTransform, VoidTransform)


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """The merged schema, the changes that lead to it in words, and the new fields by the id of what they are in."""

    schema: Schema
    changes: tuple[str, ...]
    added: Mapping[int, tuple[NestedField, ...]]


def merge_schemas(metadata: TableMetadata, source: pa.Schema, where: str = "the source") -> SchemaMerge:
    """Merge `source` into the current schema of a table.

    New columns come last, in the source's order. A required column becomes optional where the source's may hold nulls.
    Merging the same schema again changes nothing. SchemaMismatch names every column that cannot be merged, with both
    types; `where` is what the source is called in it.
    """
    merger = _Merger(metadata, where)
    merged = merger.merge(metadata.schema(), source)
    if merger.misfits:
        raise SchemaMismatch("; ".join(merger.misfits))
    return SchemaMerge(merged, tuple(merger.changes), {at: tuple(fields) for at, fields in merger.added.items()})


@dataclass(slots=True)
class _Merger:
    """One walk through both schemas. What it finds on the way it notes, and goes on: a user wants to hear all of it."""

    metadata: TableMetadata
    where: str
    changes: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    added: dict[int, list[NestedField]] = field(default_factory=dict)
    next_id: Callable[[], int] = field(init=False)
    needed_by_identifier: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        # From all that was ever given out, not from the highest in use: the id of a dropped column is in old files.
        self.next_id = count(self.metadata.last_column_id + 1).__next__
        self.needed_by_identifier = _needed_by_identifier(self.metadata.schema())

    def merge(self, schema: Schema, source: pa.Schema) -> Schema:
        """The schema, under the same id, that holds the rows of both."""
        fields = self._fields(TOP, schema.fields, list(source), "")
        return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=schema.identifier_field_ids)

    def _fields(
        self, parent: int, fields: tuple[NestedField, ...], sources: list[pa.Field], prefix: str
    ) -> list[NestedField]:
        """The fields of a struct, or a table's columns: those that are there, changed if need be, then the new ones."""
        self._check_names(fields, sources, prefix)
        by_name = {source.name: source for source in sources}
        kept = [self._known(each, by_name.pop(each.name, None), prefix) for each in fields]
        return kept + [new for source in by_name.values() if (new := self._new(parent, source, prefix))]

    def _check_names(self, fields: Iterable[NestedField], sources: list[pa.Field], prefix: str) -> None:
        """Names that differ in case alone would be one to most engines, so such a column is not made."""
        known = {each.name for each in fields}
        taken = {name.lower(): name for name in known}
        seen: set[str] = set()
        for source in sources:
            shown = repr(prefix + source.name)
            other = taken.setdefault(source.name.lower(), source.name)
            if not source.name:
                self.misfits.append(f"a column of type {source.type} has no name; rename it at the source")
            elif source.name in seen:
                self.misfits.append(f"column {shown} is in the source more than once; rename one at the source")
            elif source.name not in known and other != source.name:
                self.misfits.append(
                    f"column {shown} differs from {prefix + other!r} in case alone; rename it at the source"
                )
            seen.add(source.name)

    def _known(self, known: NestedField, source: pa.Field | None, prefix: str) -> NestedField:
        path = prefix + known.name
        if source is None:
            if known.required and known.write_default is None:
                self.misfits.append(f"column {path!r} ({known.field_type}) is required and missing in the source")
            return known
        merged = self._type(known.field_id, known.field_type, source.type, path)
        if merged is known.field_type and not (known.required and source.nullable):
            return known
        return known.model_copy(
            update={"field_type": merged, "required": self._required(known.field_id, known.required, source, path)}
        )

    def _required(self, field_id: int, required: bool, source: pa.Field, path: str) -> bool:
        if not required or not source.nullable:
            return required
        if field_id in self.needed_by_identifier:
            # What identifies a row must be required. A null is refused where it is written.
            return True
        self.changes.append(f"column {path!r} becomes optional")
        return False

    def _new(self, parent: int, source: pa.Field, prefix: str) -> NestedField | None:
        if pa.types.is_null(source.type):
            return None  # it has no type yet, and no value
        shown = pa.field(prefix + source.name, _typed(source.type))
        try:
            kind = column_type(shown, self.where, self.metadata.format_version)
        except SchemaMismatch as error:
            self.misfits.append(str(error))
            return None
        new_id = self.next_id()
        new = NestedField(new_id, source.name, self._with_ids(kind), required=False)
        self.added.setdefault(parent, []).append(new)
        self.changes.append(f"column {shown.name!r} ({new.field_type}) is added")
        return new

    def _with_ids(self, kind: IcebergType) -> IcebergType:
        return cast("IcebergType", assign_fresh_schema_ids(kind, self.next_id))

    def _type(self, field_id: int, known: IcebergType, source: pa.DataType, path: str) -> IcebergType:
        """The type that holds both; the known one itself where nothing changes."""
        if pa.types.is_dictionary(source):
            source = source.value_type
        if isinstance(known, StructType) and pa.types.is_struct(source):
            fields = self._fields(field_id, known.fields, list(source), f"{path}.")
            return known if _same(fields, known.fields) else StructType(*fields)
        if isinstance(known, ListType) and is_list(source):
            return self._list(known, source.value_field, path)
        if isinstance(known, MapType) and pa.types.is_map(source):
            return self._map(known, source, path)
        if isinstance(known, PrimitiveType) and takes(known, source):
            return known
        return self._promoted(field_id, known, source, path)

    def _list(self, known: ListType, source: pa.Field, path: str) -> IcebergType:
        inner = f"{path}.element"
        element = self._type(known.element_id, known.element_type, source.type, inner)
        required = self._required(known.element_id, known.element_required, source, inner)
        if element is known.element_type and required == known.element_required:
            return known
        return ListType(known.element_id, element, element_required=required)

    def _map(self, known: MapType, source: pa.MapType, path: str) -> IcebergType:
        if not takes(known.key_type, source.key_type):
            self.misfits.append(f"{_misfit(f'{path}.key', known.key_type, source.key_type)}, and map keys never change")
        inner = f"{path}.value"
        value = self._type(known.value_id, known.value_type, source.item_type, inner)
        required = self._required(known.value_id, known.value_required, source.item_field, inner)
        if value is known.value_type and required == known.value_required:
            return known
        return MapType(known.key_id, known.key_type, known.value_id, value, value_required=required)

    def _promoted(self, field_id: int, known: IcebergType, source: pa.DataType, path: str) -> IcebergType:
        refusal = _misfit(path, known, source)
        try:
            wanted = column_type(pa.field(path, source), self.where, self.metadata.format_version)
        except SchemaMismatch as error:
            self.misfits.append(f"{refusal} ({error})")
            return known
        found = promoted(known, wanted, self.metadata.format_version)
        if found is None:
            self.misfits.append(f"{refusal}, and the table format has no promotion to a type that holds both")
            return known
        if isinstance(known, DateType) and (obstacle := self._obstacle_to_time(field_id)):
            self.misfits.append(f"{refusal}, and {obstacle}")
            return known
        if isinstance(known, UnknownType):
            found = self._with_ids(found)
        self.changes.append(f"column {path!r} changes from {known} to {found}")
        return found

    def _obstacle_to_time(self, field_id: int) -> str | None:
        """Why a date must not become a timestamp, though the format has that promotion: what is kept would not follow."""
        known = self.metadata.schema().find_field(field_id)
        if known.initial_default is not None or known.write_default is not None:
            return "its default is a date"
        for spec in self.metadata.partition_specs:
            for each in spec.fields:
                if each.source_id == field_id and not isinstance(each.transform, _SAME_OF_DATE_AND_TIME):
                    return f"partition field {each.name!r} is made of its dates"
        # Seen: DuckDB 1.5 reads such files, PyIceberg 0.12 and Polars 2.1 fail on them.
        return "files with its dates could no longer be read by PyIceberg" if self.metadata.snapshots else None


def _needed_by_identifier(schema: Schema) -> frozenset[int]:
    """The fields that identify a row, and the structs around them: all of them must be required."""
    parents = schema._lazy_id_to_parent
    needed: set[int] = set()
    for at in schema.identifier_field_ids:
        needed.add(at)
        while (parent := parents.get(at)) is not None:
            needed.add(parent)
            at = parent
    return frozenset(needed)


def _same(fields: list[NestedField], known: tuple[NestedField, ...]) -> bool:
    return len(fields) == len(known) and all(one is other for one, other in zip(fields, known, strict=True))


def _typed(kind: pa.DataType) -> pa.DataType:
    """A struct without the fields that have no type yet."""
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_typed(each.type)) for each in kind if not pa.types.is_null(each.type)])
    return kind


def _misfit(path: str, known: IcebergType, source: pa.DataType) -> str:
    return f"column {path!r} is {known} in the table and {source} in the source"


def promoted(known: IcebergType, wanted: IcebergType, format_version: int) -> IcebergType | None:
    """The type that a column of type `known` may be given so that it holds `wanted` too; None where there is none."""
    match known, wanted:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return wanted
        case DecimalType(), DecimalType():
            before_point = max(known.precision - known.scale, wanted.precision - wanted.scale)
            fits = wanted.scale <= known.scale and before_point + known.scale <= _MOST_DIGITS
            return DecimalType(before_point + known.scale, known.scale) if fits else None
        case (DateType(), TimestampType() | TimestampNanoType()) | (UnknownType(), _) if format_version >= 3:
            return wanted
    return None
