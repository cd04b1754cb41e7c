"""The format's schemas of manifests and manifest lists, versions 1 to 3, and their Avro JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

BLOCK_SIZE_IN_BYTES = 64 * 1024 * 1024
"""What v1 entries say in their deprecated field 105."""

_INT, _LONG, _STRING, _BINARY, _BOOLEAN = IntegerType(), LongType(), StringType(), BinaryType(), BooleanType()


def _required(field_id: int, name: str, field_type: IcebergType, initial_default: Any = None) -> NestedField:
    return NestedField(field_id, name, field_type, required=True, initial_default=initial_default)


def _optional(field_id: int, name: str, field_type: IcebergType) -> NestedField:
    return NestedField(field_id, name, field_type, required=False)


def _map(key_id: int, value_id: int, value_type: IcebergType) -> MapType:
    return MapType(key_id, _INT, value_id, value_type, value_required=True)


_STATISTICS = (
    _optional(108, "column_sizes", _map(117, 118, _LONG)),
    _optional(109, "value_counts", _map(119, 120, _LONG)),
    _optional(110, "null_value_counts", _map(121, 122, _LONG)),
    _optional(137, "nan_value_counts", _map(138, 139, _LONG)),
    _optional(125, "lower_bounds", _map(126, 127, _BINARY)),
    _optional(128, "upper_bounds", _map(129, 130, _BINARY)),
    _optional(131, "key_metadata", _BINARY),
    _optional(132, "split_offsets", ListType(133, _LONG, element_required=True)),
)
_SORT_ORDER = _optional(140, "sort_order_id", _INT)
_REFERENCED_DATA_FILE = _optional(143, "referenced_data_file", _STRING)
_ROW_LINEAGE_AND_VECTORS = (
    _optional(142, "first_row_id", _LONG),
    _REFERENCED_DATA_FILE,
    _optional(144, "content_offset", _LONG),
    _optional(145, "content_size_in_bytes", _LONG),
)


def _data_file(format_version: int, partition: StructType, equality_id: IcebergType = _INT) -> StructType:
    content = () if format_version == 1 else (_required(134, "content", _INT, initial_default=0),)
    block_size = (_required(105, "block_size_in_bytes", _LONG),) if format_version == 1 else ()
    equality_ids = _optional(135, "equality_ids", ListType(136, equality_id, element_required=True))
    tail = {1: (_SORT_ORDER,), 2: (equality_ids, _SORT_ORDER, _REFERENCED_DATA_FILE)}
    return StructType(
        *content,
        _required(100, "file_path", _STRING),
        _required(101, "file_format", _STRING),
        _required(102, "partition", partition),
        _required(103, "record_count", _LONG),
        _required(104, "file_size_in_bytes", _LONG),
        *block_size,
        *_STATISTICS,
        *tail.get(format_version, (equality_ids, _SORT_ORDER, *_ROW_LINEAGE_AND_VECTORS)),
    )


def partition_type(spec: PartitionSpec, schema: Schema) -> StructType:
    """The struct of a spec's partition values. Every field is optional: `void` is null, whatever the column is."""
    bound = spec.partition_type(schema)
    return StructType(*(_optional(field.field_id, field.name, field.field_type) for field in bound.fields))


def manifest_entry_schema(format_version: int, partition: StructType) -> Schema:
    """What a manifest of this version holds, field by field, in the order in which it is written."""
    data_file = _required(2, "data_file", _data_file(format_version, partition))
    if format_version == 1:
        return Schema(_required(0, "status", _INT), _required(1, "snapshot_id", _LONG), data_file)
    return Schema(
        _required(0, "status", _INT),
        _optional(1, "snapshot_id", _LONG),
        _optional(3, "sequence_number", _LONG),
        _optional(4, "file_sequence_number", _LONG),
        data_file,
    )


# The struct of partition values is left empty here, which makes PyIceberg read whatever the file has. Equality ids are
# long, because some writers declare them so and a long cannot be read as an int.
ENTRY_READ_SCHEMA = Schema(
    *manifest_entry_schema(3, StructType()).fields[:-1],
    _required(2, "data_file", _data_file(3, StructType(), equality_id=_LONG)),
)

_FIELD_SUMMARY = StructType(
    _required(509, "contains_null", _BOOLEAN),
    _optional(518, "contains_nan", _BOOLEAN),
    _optional(510, "lower_bound", _BINARY),
    _optional(511, "upper_bound", _BINARY),
)


def manifest_list_schema(format_version: int) -> Schema:
    """What a manifest list of this version holds, field by field, in the order in which it is written."""
    return _list_schema(format_version, counts=_optional if format_version == 1 else _required)


def _list_schema(format_version: int, counts: Callable[[int, str, IcebergType], NestedField]) -> Schema:
    since_v2 = (
        _required(517, "content", _INT, initial_default=0),
        _required(515, "sequence_number", _LONG, initial_default=0),
        _required(516, "min_sequence_number", _LONG, initial_default=0),
    )
    return Schema(
        _required(500, "manifest_path", _STRING),
        _required(501, "manifest_length", _LONG),
        _required(502, "partition_spec_id", _INT),
        *(() if format_version == 1 else since_v2),
        _required(503, "added_snapshot_id", _LONG),
        counts(504, "added_files_count", _INT),
        counts(505, "existing_files_count", _INT),
        counts(506, "deleted_files_count", _INT),
        counts(512, "added_rows_count", _LONG),
        counts(513, "existing_rows_count", _LONG),
        counts(514, "deleted_rows_count", _LONG),
        _optional(507, "partitions", ListType(508, _FIELD_SUMMARY, element_required=True)),
        _optional(519, "key_metadata", _BINARY),
        *((_optional(520, "first_row_id", _LONG),) if format_version >= 3 else ()),
    )


LIST_READ_SCHEMA = _list_schema(3, counts=_optional)


def avro_json(schema: Schema, name: str) -> str:
    """The Avro schema of records called `name`, as a file's header holds it."""
    record = AvroSchemaConversion().iceberg_to_avro(schema, schema_name=name)
    _correct(record, set())
    return json.dumps(record)


def _correct(node: Any, fixed_names: set[str]) -> None:
    # PyIceberg's conversion leaves three things that Avro forbids: a `fixed` type defined twice under one name, the
    # union of null and null for a partition field whose column was dropped, and names with letters beyond ASCII.
    for child in _children(node):
        _correct(child, fixed_names)
    if not isinstance(node, dict):
        return
    if node.get("type") == "fixed":
        while node["name"] in fixed_names:
            node["name"] += "_"
        fixed_names.add(node["name"])
    if node.get("type") == ["null", "null"]:
        node["type"] = "null"
    if "field-id" in node and not node["name"].isascii():
        node.setdefault("iceberg-field-name", node["name"])
        node["name"] = re.sub(r"[^A-Za-z0-9_]", lambda match: f"_x{ord(match[0]):X}", node["name"])


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return [node[key] for key in ("type", "items", "fields", "values") if key in node]
    return node if isinstance(node, list) else ()
