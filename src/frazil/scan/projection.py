"""A file's columns as the reader wants them: found by field id, whatever they were called, promoted, or filled in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from frazil.errors import SourceUnreadable

_Make = Callable[[Any], pa.Array]


class Projection:
    """Made once per file; `batch` then takes each batch of it.

    `file` is the file's schema by field ids, `wanted` are the fields to give and `target` their Arrow form, in the same
    order. A column that the file lacks is its partition's value (`constants`), else its initial default, else null.
    SourceUnreadable if a required column has none of them, or a value does not fit its type.
    """

    def __init__(
        self, path: str, file: Schema, wanted: Schema, target: pa.Schema, constants: Mapping[int, Any]
    ) -> None:
        self._path = path
        self._target = target
        there = {field.field_id: field for field in file.fields}
        fill = _Fill(path, constants)
        self._sources: list[tuple[str | None, _Make]] = []
        for field, to in zip(wanted.fields, target, strict=True):
            source = there.get(field.field_id)
            if source is None:
                self._sources.append((None, fill.constant(field, to.type)))
            else:
                self._sources.append((source.name, fill.converter(source.field_type, field, to.type)))

    @property
    def columns(self) -> list[str]:
        """What must be read of the file."""
        return [name for name, _ in self._sources if name is not None]

    def batch(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of one batch, with exactly the target's columns."""
        arrays = []
        for (name, make), field in zip(self._sources, self._target, strict=True):
            try:
                arrays.append(make(pa.nulls(rows.num_rows) if name is None else rows.column(name)))
            except pa.ArrowInvalid as error:
                raise SourceUnreadable(
                    f"column {field.name!r} of {self._path} cannot be read as {field.type}: {error}"
                ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)


class _Fill:
    """Makes the converters, from the type in the file to the type that is wanted, field by field."""

    def __init__(self, path: str, constants: Mapping[int, Any]) -> None:
        self._path = path
        self._constants = constants

    def constant(self, field: NestedField, to: pa.DataType) -> _Make:
        """For a column that the file lacks: as many of its value as the array given is long."""
        value = self._constants.get(field.field_id, field.initial_default)
        if value is None and field.required:
            raise SourceUnreadable(f"{self._path} lacks column {field.name!r}, which is required and has no default")
        scalar = _scalar(value, field.field_type, to)
        return lambda array: pa.repeat(scalar, len(array))

    def converter(self, source: IcebergType, field: NestedField, to: Any) -> _Make:
        """For a column that the file has. What needs no change is passed on as it is."""
        wanted = field.field_type
        if isinstance(wanted, StructType) and isinstance(source, StructType):
            make = self._struct(source, wanted, to)
        elif isinstance(wanted, ListType) and isinstance(source, ListType):
            make = self._list(source, wanted, to)
        elif isinstance(wanted, MapType) and isinstance(source, MapType):
            make = self._map(source, wanted, to)
        else:
            return lambda array: _cast(array, to)
        return (lambda array: array if array.type == to else make(array)) if source == wanted else make

    def _struct(self, source: StructType, wanted: StructType, to: Any) -> _Make:
        places = {field.field_id: at for at, field in enumerate(source.fields)}
        makers: list[tuple[int | None, _Make]] = []
        for field, kind in zip(wanted.fields, to, strict=True):
            at = places.get(field.field_id)
            if at is None:
                makers.append((None, self.constant(field, kind.type)))
            else:
                makers.append((at, self.converter(source.fields[at].field_type, field, kind.type)))

        def make(array: Any) -> pa.Array:
            children = [maker(array if at is None else array.field(at)) for at, maker in makers]
            return pa.StructArray.from_arrays(children, fields=list(to), mask=array.is_null())

        return make

    def _list(self, source: ListType, wanted: ListType, to: Any) -> _Make:
        element = self.converter(source.element_type, wanted.element_field, to.value_type)
        kind = pa.LargeListArray if pa.types.is_large_list(to) else pa.ListArray

        def make(array: Any) -> pa.Array:
            offsets, window = _window(array)
            values = element(array.values.slice(*window))
            return kind.from_arrays(offsets, values, type=to, mask=array.is_null())

        return make

    def _map(self, source: MapType, wanted: MapType, to: Any) -> _Make:
        key = self.converter(source.key_type, wanted.key_field, to.key_type)
        value = self.converter(source.value_type, wanted.value_field, to.item_type)

        def make(array: Any) -> pa.Array:
            offsets, window = _window(array)
            keys, items = key(array.keys.slice(*window)), value(array.items.slice(*window))
            return pa.MapArray.from_arrays(offsets, keys, items, type=to, mask=array.is_null())

        return make


def _window(array: Any) -> tuple[pa.Array, tuple[int, int]]:
    """The offsets of a list or map, counted from 0, and the part of its values that they are about."""
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, pa.scalar(first, offsets.type)), (first, last - first)


def _cast(array: Any, to: pa.DataType) -> pa.Array:
    if array.type == to:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _cast(array.storage, to)
    kind = array.type
    if pa.types.is_fixed_size_binary(kind) and pa.types.is_string(to):
        texts = [None if each is None else str(uuid.UUID(bytes=each)) for each in array.to_pylist()]
        return pa.array(texts, to)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(to) and kind.tz != to.tz:
        # Whatever zone a writer has named, the file counts from 1970 in UTC.
        array = array.cast(pa.int64()).cast(pa.timestamp(kind.unit, to.tz))
    return array.cast(to)


def _scalar(value: Any, kind: IcebergType, to: pa.DataType) -> pa.Scalar:
    """A default or a partition's value, which may come in the format's own form: numbers for times."""
    if isinstance(kind, UUIDType) and value is not None:
        known = uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(str(value))
        return pa.scalar(str(known) if pa.types.is_string(to) else known.bytes, to)
    if isinstance(value, int) and pa.types.is_timestamp(to):
        return pa.scalar(value, pa.timestamp("us", to.tz)).cast(to)
    if isinstance(value, int) and (pa.types.is_time(to) or str(kind) == "time"):
        return pa.scalar(value, pa.time64("us")).cast(to)
    return pa.scalar(value, to)
