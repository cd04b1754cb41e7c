"""Data and delete files of a scan as the document's JSON."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from typing import Any, Final

from pyiceberg.conversions import from_bytes, to_json
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, NestedField, PrimitiveType

from frazil.catalog.document import Document

_CONTENT: Final = {
    DataFileContent.DATA: "data",
    DataFileContent.POSITION_DELETES: "position-deletes",
    DataFileContent.EQUALITY_DELETES: "equality-deletes",
}
_PLACES: Final = {field.name: place for place, field in enumerate(DATA_FILE_TYPE[3].fields)}
"""Where each field of format version 3 stands in a record, since PyIceberg has no names for the newest."""


def of_v3(file: DataFile, name: str) -> Any:
    """A field that format version 3 has, or None in files of older manifests."""
    place = _PLACES[name]
    return file._data[place] if place < len(file._data) else None


def content_file_document(
    file: DataFile, spec: PartitionSpec, schema: Schema, stats: AbstractSet[int] = frozenset()
) -> Document:
    """The file as JSON. `stats`: the ids of the columns whose metrics are asked for."""
    document: Document = {
        "spec-id": file.spec_id,
        "content": _CONTENT[file.content],
        "file-path": file.file_path,
        "file-format": "puffin" if _is_puffin(file) else str(file.file_format.value).lower(),
        "partition": _partition(file, spec, schema),
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    optional = {
        "key-metadata": file.key_metadata.hex().upper() if file.key_metadata else None,
        "split-offsets": file.split_offsets,
        "sort-order-id": file.sort_order_id,
    }
    optional |= _data_fields(file, schema, stats) if file.content is DataFileContent.DATA else _delete_fields(file)
    return document | {name: value for name, value in optional.items() if value is not None}


def _is_puffin(file: DataFile) -> bool:
    return file.file_format is FileFormat.PUFFIN


def _data_fields(file: DataFile, schema: Schema, stats: AbstractSet[int]) -> Document:
    fields: Document = {"first-row-id": of_v3(file, "first_row_id")}
    if stats:
        fields |= {
            "column-sizes": _counts(file.column_sizes, stats),
            "value-counts": _counts(file.value_counts, stats),
            "null-value-counts": _counts(file.null_value_counts, stats),
            "nan-value-counts": _counts(file.nan_value_counts, stats),
            "lower-bounds": _bounds(file.lower_bounds, schema, stats),
            "upper-bounds": _bounds(file.upper_bounds, schema, stats),
        }
    return fields


def _delete_fields(file: DataFile) -> Document:
    if file.content is DataFileContent.EQUALITY_DELETES:
        return {"equality-ids": file.equality_ids}
    return {
        "referenced-data-file": of_v3(file, "referenced_data_file"),
        "content-offset": of_v3(file, "content_offset"),
        "content-size-in-bytes": of_v3(file, "content_size_in_bytes"),
    }


def _partition(file: DataFile, spec: PartitionSpec, schema: Schema) -> list[Any]:
    kinds = spec.partition_type(schema).fields
    return [_value(kind.field_type, file.partition[place]) for place, kind in enumerate(kinds)]


def _counts(counts: dict[int, int] | None, stats: AbstractSet[int]) -> Document | None:
    if counts is None:
        return None
    kept = {number: count for number, count in counts.items() if number in stats}
    return {"keys": list(kept), "values": list(kept.values())}


def _bounds(bounds: dict[int, bytes] | None, schema: Schema, stats: AbstractSet[int]) -> Document | None:
    """Bounds as values of their columns' types; a column that is gone, or whose type has no JSON, has none."""
    if bounds is None:
        return None
    kept: dict[int, Any] = {}
    for number in sorted(stats & bounds.keys()):
        column = _primitive(schema, number)
        if column is not None:
            value = _value(column, from_bytes(column, bounds[number]))
            if value is not None:
                kept[number] = value
    return {"keys": list(kept), "values": list(kept.values())}


def _primitive(schema: Schema, number: int) -> PrimitiveType | None:
    found: NestedField | None = schema._lazy_id_to_field.get(number)
    return found.field_type if found is not None and isinstance(found.field_type, PrimitiveType) else None


def _value(kind: Any, value: Any) -> Any:
    """A value as the document's JSON has it, or None for one that it cannot hold."""
    if value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(kind, BinaryType | FixedType):
        return bytes(value).hex().upper()
    try:
        return to_json(kind, value)
    except (TypeError, NotImplementedError):
        return None
