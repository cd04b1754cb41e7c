"""The first metadata of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_object,
    read_bool,
    read_int,
    read_optional_string,
    read_string,
    read_string_map,
)
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.layout_updates import check_layout
from frazil.catalog.partition_spec import check_spec, parse_spec
from frazil.catalog.schema import SchemaIndex, check_schema, with_fresh_ids
from frazil.catalog.snapshot_updates import ROW_LINEAGE_SINCE
from frazil.catalog.sort_order import check_order, parse_order
from frazil.catalog.table_draft import NO_SNAPSHOT, UNPARTITIONED_LAST_ID, TableDraft
from frazil.catalog.table_updates import SUPPORTED_VERSION, strip_slashes
from frazil.catalog.updates import finish, run_updates

FORMAT_VERSION: Final = "format-version"
DEFAULT_VERSION: Final = 2

RESERVED_PROPERTIES: Final = frozenset(
    {
        FORMAT_VERSION, "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
        "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
    }
)  # fmt: skip
"""Names under which engines show what stands elsewhere in the metadata. They are read at creation and not kept."""

_FOR_NEW_TABLES: Final = {"write.parquet.compression-codec": "zstd"}
_COMMIT_PROPERTIES: Final = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
)
_ENCRYPTION_PROPERTIES: Final = ("encryption.key-id", "encryption.data-key-length")
_COLUMN_METRICS: Final = "write.metadata.metrics.column."
_METRICS_MODE: Final = re.compile(r"none|counts|full|truncate\([1-9]\d*\)", re.IGNORECASE)


def check_create_request(request: Any) -> Document:
    """The CreateTableRequest, if it is well-formed."""
    document = as_object(request, "create table request")
    if not read_optional_string(document, "name"):
        raise IllegalArgument("Invalid table name: null")
    if document.get("schema") is None:
        raise IllegalArgument("Invalid schema: null")
    read_optional_string(document, "location")
    if document.get("stage-create") is not None:
        read_bool(document, "stage-create")
    properties_of(document)
    return document


def properties_of(request: Document) -> dict[str, str]:
    """The request's properties, {} when it has none."""
    return {} if request.get("properties") is None else read_string_map(request, "properties")


def new_table_metadata(request: Any, *, table_uuid: str, location: str, now_ms: int) -> Document:
    """The first metadata for a CreateTableRequest, with field ids counted anew: those of the request are the client's guess."""
    document = check_create_request(request)
    properties = properties_of(document)
    version = requested_version(properties)
    schema = as_object(document["schema"], "schema")
    old = check_schema(schema, version)
    fresh, new_ids = with_fresh_ids(schema, 0)
    index = SchemaIndex(fresh)
    spec = _fresh_spec(document.get("partition-spec"), old, new_ids, index)
    order = _fresh_order(document.get("write-order"), old, new_ids, index)
    kept = {**_FOR_NEW_TABLES, **{key: value for key, value in properties.items() if key not in RESERVED_PROPERTIES}}
    _check_properties(kept, version, index)
    metadata = _first_document(version, table_uuid, location, now_ms)
    metadata |= {
        "last-column-id": index.highest_id,
        "schemas": [fresh],
        "partition-specs": [spec],
        "last-partition-id": max([UNPARTITIONED_LAST_ID, *(field["field-id"] for field in spec["fields"])]),
        "default-sort-order-id": order["order-id"],
        "sort-orders": [order],
        "properties": kept,
    }
    if version == 1:
        metadata |= {"schema": fresh, "partition-spec": spec["fields"]}
    return metadata


def metadata_from_updates(updates: Iterable[Any], *, table_uuid: str, location: str, now_ms: int) -> Document:
    """The first metadata of a table whose creation is committed as updates alone, with no staged metadata to start from.

    The updates decide the uuid, the format version and the location; the arguments stand in where they do not.
    """
    listed = [as_object(update, "metadata update") for update in updates]
    version = next((read_int(one, FORMAT_VERSION) for one in listed if _is(one, "upgrade-format-version")), None)
    uuid = next((read_string(one, "uuid") for one in listed if _is(one, "assign-uuid")), table_uuid)
    base = _first_document(_supported(DEFAULT_VERSION if version is None else version), uuid, location, now_ms)
    base |= {
        "last-column-id": 0,
        "schemas": [],
        "partition-specs": [],
        "last-partition-id": UNPARTITIONED_LAST_ID,
        "default-sort-order-id": 0,
        "sort-orders": [],
        "properties": {},
    }
    draft = TableDraft(base, now_ms)
    run_updates(draft, listed)
    check_layout(draft)
    return finish(draft, base, None)


def requested_version(properties: dict[str, str]) -> int:
    """The format version that the properties ask for."""
    text = properties.get(FORMAT_VERSION)
    if text is None:
        return DEFAULT_VERSION
    if not re.fullmatch(r"-?\d{1,9}", text):
        raise IllegalArgument(f"Table property {FORMAT_VERSION} must have integer value: {text}")
    return _supported(int(text))


def _supported(version: int) -> int:
    if not 1 <= version <= SUPPORTED_VERSION:
        raise IllegalArgument(f"Unsupported format version: v{version} (supported: v{SUPPORTED_VERSION})")
    return version


def _is(update: Document, action: str) -> bool:
    return bool(update.get("action") == action)


def _first_document(version: int, table_uuid: str, location: str, now_ms: int) -> Document:
    """What every new table has, in the order in which Iceberg writes it."""
    document: Document = {"format-version": version, "table-uuid": table_uuid, "location": strip_slashes(location)}
    if version > 1:
        document["last-sequence-number"] = 0
    document |= {"last-updated-ms": now_ms, "last-column-id": 0, "current-schema-id": 0, "schemas": []}
    document |= {"default-spec-id": 0, "partition-specs": [], "last-partition-id": UNPARTITIONED_LAST_ID}
    document |= {"default-sort-order-id": 0, "sort-orders": [], "properties": {}}
    document |= {"next-row-id": 0} if version >= ROW_LINEAGE_SINCE else {"current-snapshot-id": NO_SNAPSHOT}
    document |= {"refs": {}, "snapshots": [], "statistics": [], "partition-statistics": []}
    return document | {"snapshot-log": [], "metadata-log": []}


def _fresh_spec(spec: Any, old: SchemaIndex, new_ids: dict[int, int], index: SchemaIndex) -> Document:
    if spec is None:
        return {"spec-id": 0, "fields": []}
    parsed = parse_spec(spec)
    check_spec(parsed, old)
    fields = [
        {**field, "source-id": new_ids.get(field["source-id"], field["source-id"]), "field-id": number}
        for number, field in enumerate(parsed["fields"], start=UNPARTITIONED_LAST_ID + 1)
    ]
    fresh = {**parsed, "spec-id": 0, "fields": fields}
    check_spec(fresh, index)
    return fresh


def _fresh_order(order: Any, old: SchemaIndex, new_ids: dict[int, int], index: SchemaIndex) -> Document:
    if order is None:
        return {"order-id": 0, "fields": []}
    parsed = parse_order(order)
    check_order(parsed, old)
    fields = [{**field, "source-id": new_ids[field["source-id"]]} for field in parsed["fields"]]
    fresh = {**parsed, "order-id": 1 if fields else 0, "fields": fields}
    check_order(fresh, index)
    return fresh


def _check_properties(properties: dict[str, str], version: int, index: SchemaIndex) -> None:
    for name in _COMMIT_PROPERTIES:
        text = properties.get(name, "0")
        if not re.fullmatch(r"[+-]?\d+", text):
            raise ValidationFailed(f"Table property {name} must have integer value")
        if int(text) < 0:
            raise ValidationFailed(f"Table property {name} must have non negative integer value")
    if version < ROW_LINEAGE_SINCE and (encryption := [name for name in _ENCRYPTION_PROPERTIES if name in properties]):
        raise IllegalArgument(f"Invalid properties for v{version}: [{', '.join(encryption)}]")
    for name in properties:
        if name.startswith(_COLUMN_METRICS) and name.removeprefix(_COLUMN_METRICS) not in index.by_name:
            column = name.removeprefix(_COLUMN_METRICS)
            raise ValidationFailed(
                f"Invalid metrics config, could not find column {column} from table prop {name} in schema"
            )
