"""The first metadata of a view, and the check of view metadata that was written elsewhere."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_object,
    read_int,
    read_object,
    read_objects,
    read_optional_string,
    read_string,
    read_string_map,
)
from frazil.catalog.errors import IllegalArgument
from frazil.catalog.table_draft import find
from frazil.catalog.table_updates import strip_slashes
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
    """View metadata that was written elsewhere, if it is valid."""
    metadata = as_object(document, "view metadata")
    version = read_int(metadata, "format-version")
    if not 0 < version <= SUPPORTED_VIEW_VERSION:
        raise IllegalArgument(f"Unsupported format version: {version}")
    for name in ("view-uuid", "location"):
        read_string(metadata, name)
    schemas, versions = read_objects(metadata, "schemas"), read_objects(metadata, "versions")
    read_objects(metadata, "version-log")
    current = find(versions, "version-id", read_int(metadata, "current-version-id"))
    if current is None:
        raise IllegalArgument(f"Cannot find current version {metadata['current-version-id']} in view versions")
    if find(schemas, "schema-id", read_int(current, "schema-id")) is None:
        raise IllegalArgument(f"Cannot find current schema with id {current['schema-id']} in schemas")
    return {**metadata, "properties": metadata.get("properties") or {}}
