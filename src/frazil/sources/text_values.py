"""Texts that a parser has left as texts, brought to the types that are wanted, nested ones included."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from frazil.sources.text_types import on_a_day

_UUID = r"^[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}$"


def is_uuid(kind: pa.DataType) -> bool:
    """Whether this is Arrow's extension type for UUIDs."""
    return isinstance(kind, pa.UuidType)


def read_texts(array: Any, kind: pa.DataType) -> pa.Array:
    """The array as `kind`, where its values of times, UUIDs and bytes are still texts. ValueError names what does not fit."""
    types = pa.types
    if array.type.equals(kind):
        return array
    mask = pc.is_null(array) if array.null_count else None
    if types.is_struct(kind):
        # Flattened, since a field below a null is not null by itself.
        children = [read_texts(child, field.type) for child, field in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if types.is_list(kind):
        values = read_texts(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=mask)
    if types.is_map(kind):
        keys, items = read_texts(array.keys, kind.key_type), read_texts(array.items, kind.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=mask)
    if is_uuid(kind):
        return uuids(array)
    if types.is_time(kind):
        return on_a_day(array).cast(pa.timestamp(kind.unit)).cast(kind)
    if types.is_fixed_size_binary(kind):
        return _fixed(array, kind)
    return array.cast(kind)


def uuids(texts: pa.Array) -> pa.Array:
    """UUIDs from their hexadecimal digits, with or without hyphens."""
    fits = pc.match_substring_regex(texts, _UUID)
    if not pc.all(fits).as_py() and len(fits.drop_null()):
        raise ValueError(f"{pc.filter(texts, pc.invert(fits))[0].as_py()!r} is not a UUID")
    digits = pc.replace_substring(texts, "-", "")
    whole = pc.fill_null(digits, "0" * 32)
    data = pa.py_buffer(bytes.fromhex("".join(whole.to_pylist())))
    valid = pc.is_valid(texts).buffers()[1] if texts.null_count else None
    stored = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [valid, data])
    return pa.ExtensionArray.from_storage(pa.uuid(), stored)


def _fixed(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    wrong = pc.not_equal(pc.binary_length(texts), kind.byte_width)
    if pc.any(wrong).as_py():
        raise ValueError(f"{pc.filter(texts, wrong)[0].as_py()!r} does not have {kind.byte_width} bytes")
    return texts.cast(pa.binary()).cast(kind)
