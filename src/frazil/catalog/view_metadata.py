"""The first metadata of a view, and the check of view metadata that was written elsewhere."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_object,
    read_int,
    read_long,
    read_object,
    read_objects,
    read_optional_string,
    read_string,
    read_string_map,
)
from frazil.catalog.errors import IllegalArgument
from frazil.catalog.schema import check_schema
from frazil.catalog.table_draft import find
from frazil.catalog.table_updates import SUPPORTED_VERSION, strip_slashes
from frazil.catalog.view_updates import (
    SUPPORTED_VIEW_VERSION,
    ViewDraft,
    add_version,
    add_view_schema,
    finish_view,
    set_current_version,
)
from frazil.catalog.view_version import parse_version

FIRST_VERSION: Final = 1


def check_create_view_request(request: Any) -> Document:
    """The CreateViewRequest, if it is well-formed."""
    document = as_object(request, "create view request")
    if not read_string(document, "name"):
        raise IllegalArgument("Invalid view name: null")
    read_optional_string(document, "location")
    read_object(document, "schema")
    version = parse_version(read_object(document, "view-version"))
    if not version["representations"]:
        raise IllegalArgument("Cannot create view without specifying a query")
    if document.get("properties") is not None:
        read_string_map(document, "properties")
    return document


def new_view_metadata(request: Any, *, view_uuid: str, location: str, now_ms: int) -> Document:
    """The first metadata for a CreateViewRequest: one schema, one version, which is the current one."""
    document = check_create_view_request(request)
    base: Document = {
        "view-uuid": view_uuid,
        "format-version": SUPPORTED_VIEW_VERSION,
        "location": strip_slashes(location),
        "schemas": [],
        "current-version-id": 0,
        "versions": [],
        "version-log": [],
        "properties": dict(document.get("properties") or {}),
    }
    draft = ViewDraft(base, now_ms)
    schema_id = add_view_schema(draft, document["schema"])
    version = parse_version(document["view-version"]) | {"version-id": FIRST_VERSION, "schema-id": schema_id}
    set_current_version(draft, add_version(draft, version))
    return finish_view(draft)


def check_view_metadata(document: Any) -> Document:
    """View metadata that was written elsewhere, if it is valid: whatever is done with it later cannot break."""
    metadata = as_object(document, "view metadata")
    version = read_int(metadata, "format-version")
    if not 0 < version <= SUPPORTED_VIEW_VERSION:
        raise IllegalArgument(f"Unsupported format version: {version}")
    read_string(metadata, "view-uuid")
    strip_slashes(read_string(metadata, "location"))
    schemas, versions = read_objects(metadata, "schemas"), read_objects(metadata, "versions")
    for schema in schemas:
        read_int(schema, "schema-id")
        check_schema(schema, SUPPORTED_VERSION)
    for one in versions:
        parse_version(one)
    for entry in read_objects(metadata, "version-log"):
        read_int(entry, "version-id")
        read_long(entry, "timestamp-ms")
    if metadata.get("properties") is not None:
        read_string_map(metadata, "properties")
    current = find(versions, "version-id", read_int(metadata, "current-version-id"))
    if current is None:
        raise IllegalArgument(f"Cannot find current version {metadata['current-version-id']} in view versions")
    if find(schemas, "schema-id", current["schema-id"]) is None:
        raise IllegalArgument(f"Cannot find current schema with id {current['schema-id']} in schemas")
    return {**metadata, "properties": metadata.get("properties") or {}}
