"""Metadata documents and requests for the tests of the catalog."""

from __future__ import annotations

import json
from typing import Any

from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from frazil.catalog.table_metadata import new_table_metadata
from frazil.catalog.updates import apply_updates

Document = dict[str, Any]

UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
LOCATION = "file:///warehouse/db/table"
NOW = 1_700_000_000_000


def field(number: int, name: str, kind: Any = "long", required: bool = False, **more: Any) -> Document:
    return {"id": number, "name": name, "type": kind, "required": required, **more}


def schema(*fields: Document, **more: Any) -> Document:
    return {"type": "struct", "fields": list(fields), **more}


def spec_field(source: int, name: str, transform: str = "identity", **more: Any) -> Document:
    return {"source-id": source, "name": name, "transform": transform, **more}


def sort_field(source: int, transform: str = "identity") -> Document:
    return {"source-id": source, "transform": transform, "direction": "asc", "null-order": "nulls-first"}


TAXI = schema(field(1, "id", required=True), field(2, "at", "timestamp"), field(3, "city", "string"))


def new_table(version: int = 2, table_schema: Document = TAXI, **request: Any) -> Document:
    properties = {"format-version": str(version), **request.pop("properties", {})}
    body = {"name": "table", "schema": table_schema, "properties": properties, **request}
    return new_table_metadata(body, table_uuid=UUID, location=LOCATION, now_ms=NOW)


def snapshot(number: int, sequence_number: int | None = None, **more: Any) -> Document:
    """An append; its sequence number is its id unless told."""
    return {
        "snapshot-id": number,
        "sequence-number": number if sequence_number is None else sequence_number,
        "timestamp-ms": NOW + number,
        "manifest-list": f"{LOCATION}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
        **more,
    }


def add(document: Document) -> Document:
    return {"action": "add-snapshot", "snapshot": document}


def point(number: int, name: str = "main", kind: str = "branch", **more: Any) -> Document:
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": number, **more}


def with_snapshots(metadata: Document, count: int) -> Document:
    """The table after `count` appends to main, each a commit of its own."""
    for number in range(1, count + 1):
        parent = {"parent-snapshot-id": number - 1} if number > 1 else {}
        rows = {"first-row-id": metadata["next-row-id"], "added-rows": 10} if metadata["format-version"] == 3 else {}
        sequence_number = 0 if metadata["format-version"] == 1 else number
        appended = snapshot(number, sequence_number, **parent, **rows)
        metadata = apply_updates(metadata, [add(appended), point(number)], now_ms=NOW + number)
    return metadata


def parsed(metadata: Document) -> TableMetadata:
    """The document as PyIceberg, which knows nothing of us, reads it."""
    return TableMetadataUtil.parse_raw(json.dumps(metadata))


JUNK = [None, 1, -1, 2**63, "x", True, 0.5, [], {}, [None], [1], [[]], [{}], {"a": None}, {"main": {}}, {"main": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def with_junk(document: Document, path: tuple[Any, ...], junk: Any) -> Any:
    """The document with junk in one place."""
    if not path:
        return junk
    damaged: Any = json.loads(json.dumps(document))
    inner = damaged
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = junk
    return damaged
