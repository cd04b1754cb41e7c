"""Table metadata that was written elsewhere: whether it is what it says, so that whatever is done with it later cannot break."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_object,
    read_int,
    read_long,
    read_object,
    read_objects,
    read_optional_long,
    read_optional_string,
    read_string,
    read_string_map,
)
from frazil.catalog.errors import IllegalArgument
from frazil.catalog.layout_updates import check_layout
from frazil.catalog.partition_spec import parse_spec
from frazil.catalog.schema import check_schema
from frazil.catalog.snapshot_updates import ROW_LINEAGE_SINCE, check_refs, parse_ref
from frazil.catalog.sort_order import parse_order
from frazil.catalog.table_draft import TableDraft, with_modern_fields
from frazil.catalog.table_updates import SUPPORTED_VERSION, strip_slashes

_DEFAULTS: Final = {
    "schemas": "current-schema-id",
    "partition-specs": "default-spec-id",
    "sort-orders": "default-sort-order-id",
}
"""The lists that every table has since v2, each with the field that says which of it is in use."""


def check_table_metadata(document: Any) -> Document:
    """The metadata as a document whose updates can be applied, if it is valid. Raises `InvalidRequest` for what is not."""
    metadata = as_object(document, "metadata")
    version = read_int(metadata, "format-version")
    if not 1 <= version <= SUPPORTED_VERSION:
        raise IllegalArgument(f"Cannot read unsupported version {version}")
    strip_slashes(read_string(metadata, "location"))
    read_int(metadata, "last-column-id")
    read_long(metadata, "last-updated-ms")
    if version > 1:
        _check_since_v2(metadata, version)
    _check_parts(metadata)
    modern = with_modern_fields(metadata)
    draft = TableDraft(modern, modern["last-updated-ms"])
    check_layout(draft)
    check_refs(draft)
    return modern


def _check_since_v2(metadata: Document, version: int) -> None:
    """What v1 may leave out."""
    read_string(metadata, "table-uuid")
    read_long(metadata, "last-sequence-number")
    read_int(metadata, "last-partition-id")
    for name in _DEFAULTS:
        if metadata.get(name) is None:
            raise IllegalArgument(f"{name} must exist in format v{version}")
    if version >= ROW_LINEAGE_SINCE:
        read_long(metadata, "next-row-id")


def _check_parts(metadata: Document) -> None:
    """Everything that may be there, if it is."""
    read_optional_string(metadata, "table-uuid")
    for name in ("current-snapshot-id", "last-sequence-number", "next-row-id", "last-partition-id"):
        read_optional_long(metadata, name)
    if metadata.get("properties") is not None:
        read_string_map(metadata, "properties")
    if metadata.get("schema") is not None:
        check_schema(read_object(metadata, "schema"), SUPPORTED_VERSION)
    if metadata.get("partition-spec") is not None:
        parse_spec({"fields": metadata["partition-spec"]})
    for name, check in _PARTS.items():
        if metadata.get(name) is not None:
            for part in read_objects(metadata, name):
                check(part)
            if name in _DEFAULTS:
                read_int(metadata, _DEFAULTS[name])
    if metadata.get("refs") is not None:
        for ref in read_object(metadata, "refs").values():
            parse_ref(as_object(ref, "refs"))


def _check_schema(schema: Document) -> None:
    read_int(schema, "schema-id")
    check_schema(schema, SUPPORTED_VERSION)


def _check_spec(spec: Document) -> None:
    read_int(spec, "spec-id")
    parse_spec(spec)


def _check_order(order: Document) -> None:
    parse_order(order)


def _check_snapshot(snapshot: Document) -> None:
    """Less than of a new snapshot: old writers left out what is asked of those of today."""
    read_long(snapshot, "snapshot-id")
    read_long(snapshot, "timestamp-ms")
    for name in ("parent-snapshot-id", "sequence-number", "schema-id", "first-row-id", "added-rows"):
        read_optional_long(snapshot, name)
    read_optional_string(snapshot, "manifest-list")
    if snapshot.get("summary") is not None:
        read_string_map(snapshot, "summary")


def _check_log_entry(entry: Document) -> None:
    read_long(entry, "snapshot-id")
    read_long(entry, "timestamp-ms")


def _check_file_entry(entry: Document) -> None:
    read_string(entry, "metadata-file")
    read_long(entry, "timestamp-ms")


def _check_statistics(statistics: Document) -> None:
    read_long(statistics, "snapshot-id")


def _check_key(key: Document) -> None:
    read_string(key, "key-id")


_PARTS: Final[dict[str, Callable[[Document], None]]] = {
    "schemas": _check_schema,
    "partition-specs": _check_spec,
    "sort-orders": _check_order,
    "snapshots": _check_snapshot,
    "snapshot-log": _check_log_entry,
    "metadata-log": _check_file_entry,
    "statistics": _check_statistics,
    "partition-statistics": _check_statistics,
    "encryption-keys": _check_key,
}
