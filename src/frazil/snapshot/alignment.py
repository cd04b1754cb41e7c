"""Arrow batches of any origin brought to the table's schema, or refused with the column and the types that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField, UnknownType

from frazil.errors import SchemaMismatch

_MAX_DICTIONARY = 65_536
_LONG_DIGITS = 18
_ID = b"PARQUET:field_id"

T = TypeVar("T")
_Convert = Callable[[pa.Array], pa.Array]


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """How source columns find theirs in the table: by name, or by the field ids that the source carries.

    By id is for files that were written for this very table: another program's ids mean other columns.
    """

    by_field_id: bool = False

    def find(self, target: pa.Field, sources: list[pa.Field]) -> int | None:
        """The place among `sources` of what `target` is filled from."""
        for at, source in enumerate(sources):
            if self._same(target, source):
                return at
        return None

    def _same(self, target: pa.Field, source: pa.Field) -> bool:
        if not self.by_field_id:
            return bool(source.name == target.name)
        return bool((source.metadata or {}).get(_ID) == target.metadata[_ID])


class BatchAlignment:
    """Aligns batches to `schema`. Holds the Arrow schema that all aligned batches share, fixed by the first batch.

    Columns are put in the table's order and cast where that loses nothing. A missing column becomes its write default
    or nulls. SchemaMismatch for a column too many, a required one that is missing or holds nulls, a type that does not
    fit, or a value that does not. Columns that do not fit by their types are all named at once. A column too many of
    Arrow's null type is passed over: there is nothing in it. With `narrow` a column may also be of a wider type than
    the table's, or of text: then it is for each value to fit, and `bad_rows` tells which rows hold one that does not.
    """

    def __init__(self, schema: Schema, match: ColumnMatch | None = None, *, narrow: bool = False) -> None:
        self._narrow = narrow
        self._fields = [field for field in schema.fields if not isinstance(field.field_type, UnknownType)]
        target = schema_to_pyarrow(Schema(*self._fields), include_field_ids=True)
        self._targets = [field.with_type(_narrow_offsets(field.type)) for field in target]
        # Of a type that is not known yet there are no values: files leave such columns out.
        unknown = [field for field in schema.fields if isinstance(field.field_type, UnknownType)]
        self._unknown = list(schema_to_pyarrow(Schema(*unknown), include_field_ids=True))
        self._match = match or ColumnMatch()
        self._layout: pa.Schema | None = None
        self._source: pa.Schema | None = None
        self._converters: list[Callable[[pa.RecordBatch], pa.Array]] = []

    @property
    def layout(self) -> pa.Schema:
        """The Arrow schema of aligned batches, with field ids. Before the first batch all columns are plain."""
        return self._layout if self._layout is not None else pa.schema(self._targets)

    def align(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch in the table's schema; columns that fit are not copied."""
        if self._source is None or not batch.schema.equals(self._source, check_metadata=True):
            self._plan(batch)
        return pa.RecordBatch.from_arrays([convert(batch) for convert in self._converters], schema=self.layout)

    def bad_rows(self, batch: pa.RecordBatch) -> dict[int, str]:
        """The rows for which `align` refuses the batch, each with why. SchemaMismatch if it is for the types alone.

        A column that fits as a whole is looked at once; in one that does not, the bad rows are found by halving.
        """
        if self._source is None or not batch.schema.equals(self._source, check_metadata=True):
            self._plan(batch)
        found: dict[int, str] = {}
        for convert in self._converters:
            _find_bad(convert, batch, 0, found)
        return found

    def _plan(self, batch: pa.RecordBatch) -> None:
        sources = list(batch.schema)
        places = [self._match.find(target, sources) for target in self._targets]
        if self._layout is None:
            self._layout = pa.schema(
                [
                    target if place is None else target.with_type(_kept_type(target.type, batch.column(place)))
                    for target, place in zip(self._targets, places, strict=True)
                ]
            )
        self._converters = _all_or_every_misfit(
            (
                partial(_filled, field, target)
                if place is None
                else partial(_converted, place, sources[place], target, self._narrow)
                for field, target, place in zip(self._fields, self._layout, places, strict=True)
            ),
            check=partial(self._refuse_extra, sources, {place for place in places if place is not None}),
        )
        self._source = batch.schema

    def _refuse_extra(self, sources: list[pa.Field], used: set[int]) -> None:
        for unknown in self._unknown:
            place = self._match.find(unknown, sources)
            if place is not None and not pa.types.is_null(sources[place].type):
                raise SchemaMismatch(
                    f"column {unknown.name!r} has no type yet in the table and is {sources[place].type} in the source"
                )
            used = used if place is None else used | {place}
        if extra := _shown_extra(source for at, source in enumerate(sources) if at not in used):
            raise SchemaMismatch(f"the table has no column {extra}; add it to the table or leave it out")


def _all_or_every_misfit(makers: Iterable[Callable[[], T]], check: Callable[[], None]) -> list[T]:
    """What each of these makes. Where some, or the check, raise SchemaMismatch, one that says what all of them said."""
    made: list[T] = []
    misfits: list[str] = []
    for make in makers:
        try:
            made.append(make())
        except SchemaMismatch as error:
            misfits.append(str(error))
    try:
        check()
    except SchemaMismatch as error:
        misfits.append(str(error))
    if misfits:
        raise SchemaMismatch("; ".join(misfits))
    return made


def _find_bad(
    convert: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch, first: int, found: dict[int, str]
) -> None:
    try:
        convert(batch)
    except SchemaMismatch as error:
        if batch.num_rows == 1:
            found[first] = f"{found[first]}; {error}" if first in found else str(error)
            return
        half = batch.num_rows // 2
        _find_bad(convert, batch.slice(0, half), first, found)
        _find_bad(convert, batch.slice(half), first + half, found)


def _narrow_offsets(kind: pa.DataType) -> pa.DataType:
    """The type with 32-bit offsets: batches are small, and wide offsets only cost memory and casts."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_narrow_offsets(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_narrow_offsets(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(_narrow_offsets(key.type)), item.with_type(_narrow_offsets(item.type)))
    return kind


def _kept_type(target: pa.DataType, column: pa.Array) -> pa.DataType:
    """The form a column keeps on its way to the file, where it may be one that costs less than the table's.

    A small dictionary of strings stays one, wide offsets stay wide, and decimals take no more room than the file gives
    them.
    """
    source = column.type
    if pa.types.is_decimal128(target) and target.precision <= _LONG_DIGITS:
        return pa.decimal64(target.precision, target.scale)
    if not (pa.types.is_string(target) or pa.types.is_binary(target)):
        return target
    if pa.types.is_dictionary(source) and len(column.dictionary) <= _MAX_DICTIONARY and _is_text(source.value_type):
        return pa.dictionary(pa.int32(), target)
    if pa.types.is_large_string(source) or pa.types.is_large_binary(source):
        return pa.large_string() if pa.types.is_string(target) else pa.large_binary()
    return target


def _filled(field: NestedField, target: pa.Field) -> Callable[[pa.RecordBatch], pa.Array]:
    default = field.write_default
    if default is None and field.required:
        raise SchemaMismatch(f"column {field.name!r} ({target.type}) is required and missing in the source")
    value = pa.scalar(default, target.type)
    return lambda batch: pa.repeat(value, batch.num_rows)


def _converted(place: int, source: pa.Field, target: pa.Field, narrow: bool) -> Callable[[pa.RecordBatch], pa.Array]:
    convert = _converter(source.type, target.type, target.name, narrow)

    def column(batch: pa.RecordBatch) -> pa.Array:
        array = convert(batch.column(place))
        if not target.nullable and array.null_count:
            raise SchemaMismatch(f"column {target.name!r} is required and holds {array.null_count} nulls")
        return array

    return column


def _converter(source: pa.DataType, target: pa.DataType, name: str, narrow: bool = False) -> _Convert:
    """What brings arrays of `source` to `target`; SchemaMismatch if nothing does without loss.

    With `narrow` also to a type that does not hold every value: then each value must show that it fits.
    """
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _struct_converter(source, target, name, narrow)
    if is_list(source) and pa.types.is_list(target):
        return _list_converter(source, target, name, narrow)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _map_converter(source, target, name, narrow)
    if source.equals(target):
        return lambda array: array
    if pa.types.is_dictionary(source):
        return _dictionary_converter(source, target, name, narrow)
    if pa.types.is_dictionary(target):
        plain = _converter(source, target.value_type, name, narrow)
        return lambda array: plain(array).dictionary_encode()
    if not (_widens(source, target) or (narrow and _narrows(source, target))):
        raise SchemaMismatch(f"column {name!r} is {_shown(target)} in the table and {source} in the source")
    return lambda array: _cast(array, target, name)


def _dictionary_converter(source: Any, target: pa.DataType, name: str, narrow: bool) -> _Convert:
    if not pa.types.is_dictionary(target):
        plain = _converter(source.value_type, target, name, narrow)
        return lambda array: plain(array.dictionary_decode())
    _converter(source.value_type, target.value_type, name)

    def convert(array: pa.Array) -> pa.Array:
        if array.dictionary.null_count:  # Parquet's dictionaries hold no null
            return _cast(array.dictionary_decode().dictionary_encode(), target, name)
        indices = array.indices.cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, _cast(array.dictionary, target.value_type, name))

    return convert


def _struct_converter(source: Any, target: Any, name: str, narrow: bool) -> _Convert:
    places = {source.field(at).name: at for at in range(source.num_fields)}
    inner = _all_or_every_misfit(
        (
            partial(_child_converter, source, field, places.get(field.name), f"{name}.{field.name}", narrow)
            for field in target
        ),
        check=partial(_refuse_extra_fields, source, target, name),
    )

    def convert(array: pa.Array) -> pa.Array:
        mask = pc.is_null(array) if array.null_count else None
        children = [child(array, mask) for child in inner]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)

    return convert


def _refuse_extra_fields(source: Any, target: Any, name: str) -> None:
    if extra := _shown_extra(field for field in source if target.get_field_index(field.name) < 0):
        raise SchemaMismatch(f"column {name!r}: the table has no field {extra} in it")


def _shown_extra(fields: Iterable[pa.Field]) -> str:
    """The fields that the table has no place for. One of no type at all has no values that could be lost."""
    return ", ".join(f"{field.name!r} ({field.type})" for field in fields if not pa.types.is_null(field.type))


def _child_converter(
    source: Any, target: pa.Field, place: int | None, name: str, narrow: bool
) -> Callable[[Any, Any], pa.Array]:
    if place is None:
        if not target.nullable:
            raise SchemaMismatch(f"column {name!r} ({target.type}) is required and missing in the source")
        return lambda array, _: pa.nulls(len(array), target.type)
    convert = _converter(source.field(place).type, target.type, name, narrow)

    def child(array: Any, mask: Any) -> pa.Array:
        values = convert(array.field(place))
        if not target.nullable and values.null_count:
            absent = pc.is_null(values) if mask is None else pc.and_not(pc.is_null(values), mask)
            _refuse_nulls(pc.sum(absent).as_py(), name)
        return values

    return child


def _refuse_nulls(nulls: int, name: str) -> None:
    if nulls:
        raise SchemaMismatch(f"column {name!r} is required and holds {nulls} nulls")


def _list_converter(source: Any, target: Any, name: str, narrow: bool) -> _Convert:
    element = _converter(source.value_type, target.value_type, f"{name}.element", narrow)
    plain = pa.list_(source.value_field)

    def convert(array: pa.Array) -> pa.Array:
        array = array if pa.types.is_list(array.type) else _cast(array, plain, name)
        offsets, values = _rebased(array)
        values = element(values)
        if not target.value_field.nullable:
            _refuse_nulls(values.null_count, f"{name}.element")
        mask = pc.is_null(array) if array.null_count else None
        return pa.ListArray.from_arrays(offsets, values, type=target, mask=mask)

    return convert


def _map_converter(source: Any, target: Any, name: str, narrow: bool) -> _Convert:
    key = _converter(source.key_type, target.key_type, f"{name}.key", narrow)
    item = _converter(source.item_type, target.item_type, f"{name}.value", narrow)

    def convert(array: pa.Array) -> pa.Array:
        offsets, entries = _rebased(array)
        items = item(entries.field(1))
        if not target.item_field.nullable:
            _refuse_nulls(items.null_count, f"{name}.value")
        mask = pc.is_null(array) if array.null_count else None
        return pa.MapArray.from_arrays(offsets, key(entries.field(0)), items, type=target, mask=mask)

    return convert


def _rebased(array: Any) -> tuple[pa.Array, pa.Array]:
    """Offsets from 0 and the values they reach: a slice carries its whole parent's otherwise."""
    size = len(array) + 1
    raw = np.frombuffer(array.buffers()[1], np.int32, size, array.offset * 4) if len(array) else np.zeros(1, np.int32)
    values = array.values if not pa.types.is_map(array.type) else _map_entries(array)
    return pa.array(raw - raw[0]), values.slice(int(raw[0]), int(raw[-1] - raw[0]))


def _map_entries(array: Any) -> pa.Array:
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def _cast(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    try:
        cast = array.cast(target)
        if pa.types.is_float64(array.type) and pa.types.is_float32(target):
            _check_exact(array, cast)
        return cast
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(
            f"column {name!r} is {_shown(target)} in the table and {array.type} in the source, and a value does not fit: {error}"
        ) from error


def _check_exact(array: pa.Array, cast: pa.Array) -> None:
    """Arrow rounds a double to a float, or makes it infinite, without a word."""
    exact = pc.or_(pc.equal(cast.cast(array.type), array), pc.is_nan(array))
    if not pc.all(exact, min_count=0).as_py():
        first = array.filter(pc.invert(exact))[0]
        raise pa.ArrowInvalid(f"{first} has no equal among floats")


def _shown(kind: pa.DataType) -> str:
    if pa.types.is_decimal64(kind):
        return str(pa.decimal128(kind.precision, kind.scale))
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_text(kind: pa.DataType) -> bool:
    return _kind_of_bytes(kind) is not None


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list, of any kind that Arrow has."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _kind_of_bytes(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "bytes" if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind) else None


def _widens(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of `source` may become `target`. For times the cast itself refuses a value that would lose."""
    types = pa.types
    if types.is_null(source):
        return True
    if _kind_of_bytes(target) is not None:
        return _kind_of_bytes(source) == _kind_of_bytes(target)
    if isinstance(target, pa.UuidType):
        return bool(types.is_fixed_size_binary(source) and source.byte_width == 16)
    if types.is_integer(target):
        return bool(types.is_integer(source) and _holds(target, source))
    if types.is_floating(target):
        return bool(types.is_floating(source) and source.bit_width <= target.bit_width)
    if types.is_decimal(target):
        return bool(types.is_decimal(source) and _decimal_widens(source, target))
    if types.is_timestamp(target):
        return bool(types.is_timestamp(source) and (source.tz is None) == (target.tz is None))
    return bool((types.is_date(target) and types.is_date(source)) or (types.is_time(target) and types.is_time(source)))


def takes(kind: IcebergType, source: pa.DataType) -> bool:
    """Whether a column of a table takes values of a source's type as they are, without a change of its own."""
    if isinstance(kind, UnknownType):
        return bool(pa.types.is_null(source))
    try:
        _converter(source, _narrow_offsets(schema_to_pyarrow(kind)), "")
    except SchemaMismatch:
        return False
    return True


def _holds(target: Any, source: Any) -> bool:
    needed = source.bit_width + pa.types.is_unsigned_integer(source)
    return bool(needed <= target.bit_width)


def _narrows(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether some values of `source` may be values of `target`, and the cast refuses those that are not."""
    types = pa.types
    number = types.is_integer(target) or types.is_floating(target)
    if _kind_of_bytes(source) == "text":
        moment = types.is_date32(target) or types.is_timestamp(target)
        return bool(number or types.is_decimal(target) or types.is_boolean(target) or moment)
    if types.is_decimal(source):
        return bool(types.is_decimal(target) or types.is_integer(target))
    return bool(number and (types.is_integer(source) or types.is_floating(source)))


def _decimal_widens(source: Any, target: Any) -> bool:
    more_scale = target.scale - source.scale
    return bool(more_scale >= 0 and target.precision - source.precision >= more_scale)


def batches_of(data: Any) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow batch, table, reader or any object that offers itself as an Arrow stream."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif isinstance(data, pa.RecordBatchReader):
        yield from data
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    else:
        raise SchemaMismatch(f"{type(data).__name__} is not an Arrow batch, table or reader")


def check_fits(source: pa.Schema, schema: Schema, subject: str, *, narrow: bool = False) -> None:
    """Raise SchemaMismatch, beginning with `subject`, if batches of the `source` schema cannot be aligned to `schema`."""
    try:
        BatchAlignment(schema, narrow=narrow).align(pa.RecordBatch.from_pylist([], schema=source))
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{subject}: {error}") from None
