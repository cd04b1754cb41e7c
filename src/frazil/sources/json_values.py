"""JSON values as Arrow arrays by way of Python: slower than PyArrow's parser, but it knows maps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa


def has_map(kind: pa.DataType) -> bool:
    """Whether a map is in this type."""
    if pa.types.is_struct(kind):
        return any(has_map(field.type) for field in kind)
    return bool(pa.types.is_map(kind) or (pa.types.is_list(kind) and has_map(kind.value_type)))


def loads(record: bytes) -> Any:
    """The value of one record; ValueError if it is not JSON. Numbers keep all their digits."""
    return json.loads(record, parse_float=Decimal, object_pairs_hook=_object)


def batch_of(values: Sequence[Any], schema: pa.Schema) -> pa.RecordBatch:
    """One row for each object; ValueError if one does not fit."""
    kind = pa.struct(list(schema))
    rows = [_value(value, kind) for value in values]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has two fields of one name")
    return found


def _value(value: Any, kind: Any) -> Any:
    """The value as `pa.array` takes it for `kind`; ValueError where that would bend it."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind):
        _want(isinstance(value, dict) and all(kind.get_field_index(name) >= 0 for name in value), value, kind)
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    if types.is_map(kind):
        _want(isinstance(value, dict), value, kind)
        return [(_key(key, kind.key_type), _value(item, kind.item_type)) for key, item in value.items()]
    if types.is_list(kind):
        _want(isinstance(value, list), value, kind)
        return [_value(item, kind.value_type) for item in value]
    if types.is_string(kind):
        _want(isinstance(value, str), value, kind)
        return value
    if types.is_boolean(kind):
        _want(isinstance(value, bool), value, kind)
        return value
    return _number(value, kind)


def _number(value: Any, kind: Any) -> Any:
    types = pa.types
    if isinstance(value, str) and types.is_decimal(kind):
        return pa.scalar(value).cast(kind).as_py()
    _want(isinstance(value, int | Decimal | float) and not isinstance(value, bool), value, kind)
    if types.is_integer(kind):
        _want(isinstance(value, int) and (value if value >= 0 else ~value).bit_length() < kind.bit_width, value, kind)
        return value
    return float(value) if types.is_floating(kind) else Decimal(value)


def _key(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind):
        return text
    return _number(loads(text.encode()), kind)


def _want(fits: bool, value: Any, kind: pa.DataType) -> None:
    if not fits:
        raise ValueError(f"{value!r} is not {kind}")
