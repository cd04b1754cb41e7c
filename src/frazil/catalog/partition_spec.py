"""One partition spec: its shape, what makes it valid for a schema, and partition field ids."""

from __future__ import annotations

from typing import Any

from frazil.catalog.document import Document, as_object, read_int, read_objects, read_optional_int, read_string
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.schema import SchemaIndex
from frazil.catalog.table_draft import UNPARTITIONED_LAST_ID
from frazil.catalog.transforms import VOID, can_transform, parse_transform
from frazil.catalog.types import describe_type, is_primitive


def parse_spec(spec: Any) -> Document:
    """The spec, if it is well-formed: each field has a source, a transform and a name, and all or none have an id."""
    document = as_object(spec, "spec")
    fields = read_objects(document, "fields")
    for field in fields:
        read_int(field, "source-id")
        parse_transform(read_string(field, "transform"))
        read_string(field, "name")
    missing = sum(read_optional_int(field, "field-id") is None for field in fields)
    if missing not in (0, len(fields)):
        raise IllegalArgument(f"Cannot parse spec with missing field IDs: {missing} missing of {len(fields)} fields.")
    return document


def check_spec(spec: Document, index: SchemaIndex) -> None:
    """Refuse a spec that does not fit the schema."""
    names: set[str] = set()
    for field in spec["fields"]:
        _check_name(field, names, index)
    check_sources(spec, index)


def check_sources(spec: Document, index: SchemaIndex) -> None:
    """Refuse a spec whose transforms cannot be applied to the schema's columns."""
    for field in spec["fields"]:
        transform = parse_transform(field["transform"])
        if transform != VOID:
            _check_source(field, transform, index)


def _check_name(field: Document, names: set[str], index: SchemaIndex) -> None:
    name = field["name"]
    same_name = index.by_name.get(name)
    if same_name is not None and field["source-id"] in index.by_id and same_name.field["id"] != field["source-id"]:
        raise IllegalArgument(f"Cannot create identity partition sourced from different field in schema: {name}")
    if not name:
        raise IllegalArgument("Cannot use empty partition name: ")
    if name in names:
        raise IllegalArgument(f"Cannot use partition name more than once: {name}")
    names.add(name)


def _check_source(field: Document, transform: str, index: SchemaIndex) -> None:
    path = index.by_id.get(field["source-id"])
    if path is None:
        raise ValidationFailed(f"Cannot find source column for partition field: {describe_partition_field(field)}")
    kind = path.field["type"]
    if not is_primitive(kind):
        raise ValidationFailed(f"Cannot partition by non-primitive source field: {describe_type(kind)}")
    if not can_transform(transform, kind):
        raise ValidationFailed(f"Invalid source type {describe_type(kind)} for transform: {transform}")
    for parent in path.parents:
        if parent["type"]["type"] != "struct":
            raise ValidationFailed(f"Invalid partition field parent: {describe_type(parent['type'])}")


def describe_partition_field(field: Document) -> str:
    """The field as Iceberg's messages print it."""
    return f"{field.get('field-id')}: {field['name']}: {parse_transform(field['transform'])}({field['source-id']})"


def same_spec(left: Document, right: Document) -> bool:
    """True when both give every row the same partition under the same names, whatever their ids."""
    return _canonical(left) == _canonical(right)


def _canonical(spec: Document) -> list[Any]:
    return [(field["source-id"], parse_transform(field["transform"]), field["name"]) for field in spec["fields"]]


def with_field_ids(spec: Document, known: list[Document], last_assigned: int) -> Document:
    """The spec with partition field ids: as given; else that of an equal field in a known spec; else the next unused one."""
    if all(field.get("field-id") is not None for field in spec["fields"]):
        return spec
    ids = {
        (field["source-id"], parse_transform(field["transform"])): field["field-id"]
        for one in known
        for field in one["fields"]
    }
    fields = []
    for field in spec["fields"]:
        key = (field["source-id"], parse_transform(field["transform"]))
        if key not in ids:
            ids[key] = last_assigned = last_assigned + 1
        fields.append({**field, "field-id": ids[key]})
    return {**spec, "fields": fields}


def check_sequential_ids(spec: Document) -> None:
    """Refuse a spec that v1 cannot hold, where a field's id is its position."""
    for position, field in enumerate(spec["fields"], start=UNPARTITIONED_LAST_ID + 1):
        if field["field-id"] != position:
            listed = ", ".join(describe_partition_field(one) for one in spec["fields"])
            raise ValidationFailed(f"Spec does not use sequential IDs that are required in v1: [{listed}]")
