"""Iceberg's types as they stand in JSON: a name for a primitive, an object for a struct, a list or a map."""

from __future__ import annotations

import re
from typing import Any, Final

from frazil.catalog.document import Document, as_json, read, read_bool, read_int, read_objects, read_string
from frazil.catalog.errors import IllegalArgument

_PRIMITIVES: Final = frozenset(
    {
        "boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
        "timestamptz_ns", "string", "uuid", "binary", "unknown", "variant", "geometry", "geography",
    }
)  # fmt: skip
_WITH_ARGUMENTS: Final = re.compile(
    r"(fixed)\[\s*(\d+)\s*\]|(decimal)\(\s*(\d+)\s*,\s*(\d+)\s*\)|(geometry|geography)\(([^)]*)\)", re.IGNORECASE
)
_LATER: Final = {"timestamp_ns": 3, "timestamptz_ns": 3, "variant": 3, "unknown": 3, "geometry": 3, "geography": 3}
_MAXIMUM_PRECISION: Final = 38


def parse_primitive(name: str) -> str:
    """The type's canonical name. Raises `IllegalArgument` for one that Iceberg does not have."""
    lower = name.lower()
    if lower in _PRIMITIVES:
        return lower
    match = _WITH_ARGUMENTS.fullmatch(name)
    if match is None:
        raise IllegalArgument(f"Cannot parse type string to primitive: {name}")
    if match[1]:
        return f"fixed[{int(match[2])}]"
    if match[3]:
        if int(match[4]) > _MAXIMUM_PRECISION:
            raise IllegalArgument(f"Decimals with precision larger than 38 are not supported: {int(match[4])}")
        return f"decimal({int(match[4])}, {int(match[5])})"
    arguments = ", ".join(part.strip() for part in match[7].split(","))
    return f"{match[6].lower()}({arguments})"


def root_of(name: str) -> str:
    """A canonical primitive's name without its arguments."""
    return re.split(r"[\[(]", name, maxsplit=1)[0]


def is_primitive(kind: Any) -> bool:
    """True for a type that is not nested. (A variant is neither nested nor primitive.)"""
    return isinstance(kind, str) and kind.lower() != "variant"


def first_version_of(kind: Any) -> int:
    """The first format version that has the type itself, whatever is nested in it."""
    return _LATER.get(root_of(kind.lower()), 1) if isinstance(kind, str) else 1


def nested_fields(kind: Any) -> list[Document]:
    """The fields directly within a type, with list elements, map keys and values as fields of those names."""
    if isinstance(kind, str):
        return []
    if not isinstance(kind, dict):
        raise IllegalArgument(f"Cannot parse type from json: {as_json(kind)}")
    match kind.get("type"):
        case "struct":
            return read_objects(kind, "fields")
        case "list":
            return [_part(kind, "element", read_bool(kind, "element-required"))]
        case "map":
            return [_part(kind, "key", True), _part(kind, "value", read_bool(kind, "value-required"))]
    raise IllegalArgument(f"Cannot parse type from json: {as_json(kind)}")


def _part(kind: Document, name: str, required: bool) -> Document:
    return {"id": read_int(kind, f"{name}-id"), "name": name, "type": read(kind, name), "required": required}


def canonical(kind: Any) -> Any:
    """A value that is equal for equal types, however they are spelt."""
    if isinstance(kind, str):
        return parse_primitive(kind)
    return kind["type"], tuple(canonical_field(field) for field in nested_fields(kind))


def canonical_field(field: Document) -> Any:
    """A value that is equal for equal fields: id, name, type, need, doc and defaults."""
    return (
        field["id"],
        field["name"],
        field["required"],
        canonical(field["type"]),
        field.get("doc"),
        as_json(field.get("initial-default"), limit=1 << 30),
        as_json(field.get("write-default"), limit=1 << 30),
    )


def describe_type(kind: Any) -> str:
    """The type as Iceberg's messages print it."""
    if isinstance(kind, str):
        return parse_primitive(kind)
    fields = nested_fields(kind)
    match kind["type"]:
        case "struct":
            return f"struct<{', '.join(describe_field(field) for field in fields)}>"
        case "list":
            return f"list<{describe_type(fields[0]['type'])}>"
    return f"map<{describe_type(fields[0]['type'])}, {describe_type(fields[1]['type'])}>"


def describe_field(field: Document) -> str:
    """The field as Iceberg's messages print it."""
    need = "required" if field["required"] else "optional"
    return f"{field['id']}: {field['name']}: {need} {describe_type(field['type'])}"


def check_field(field: Document) -> None:
    """Refuse a field that lacks what every field has."""
    read_int(field, "id")
    read_string(field, "name")
    read_bool(field, "required")
    kind = read(field, "type")
    if isinstance(kind, str):
        parse_primitive(kind)
