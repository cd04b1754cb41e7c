"""One schema: finding its fields by id and by name, what makes it valid, and giving it fresh field ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from frazil.catalog.document import Document, as_object, read_ints
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.types import (
    canonical_field,
    check_field,
    describe_field,
    describe_type,
    first_version_of,
    is_primitive,
    nested_fields,
    parse_primitive,
)

DEFAULTS_SINCE: Final = 3
"""The first format version in which a column may have a default."""

DEEPEST: Final = 64
"""How deep types may nest; no engine goes near it, and a request must not exhaust the stack."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A field and where it stands. `name`: the full name, dots between its parts."""

    field: Document
    name: str
    parents: tuple[Document, ...]


class SchemaIndex:
    """The fields of one schema, by id and by full name. Raises for a schema that is malformed or has a name or id twice."""

    def __init__(self, schema: Document) -> None:
        if schema.get("type", "struct") != "struct":
            raise IllegalArgument(f"Cannot create schema, not a struct type: {schema.get('type')}")
        self.by_id: dict[int, FieldPath] = {}
        self.by_name: dict[str, FieldPath] = {}
        for path in _walk({**schema, "type": "struct"}, "", ()):
            self._add(path)
        # A list of structs (or map of them) can be addressed without its "element" or "value", as Iceberg does.
        for path in list(self.by_id.values()):
            self.by_name.setdefault(_short_name(path), path)

    def _add(self, path: FieldPath) -> None:
        number = path.field["id"]
        if path.name in self.by_name:
            other = self.by_name[path.name].field["id"]
            raise ValidationFailed(f"Invalid schema: multiple fields for name {path.name}: {other} and {number}")
        if number in self.by_id:
            raise ValidationFailed(
                f"Invalid schema: multiple fields for id {number}: {self.by_id[number].name} and {path.name}"
            )
        self.by_id[number] = self.by_name[path.name] = path

    @property
    def highest_id(self) -> int:
        """The highest field id, or 0 in an empty schema."""
        return max(self.by_id, default=0)

    def type_of(self, number: int) -> Any | None:
        """The type of the field of that id, or None."""
        path = self.by_id.get(number)
        return None if path is None else path.field["type"]


def check_schema(schema: Document, format_version: int) -> SchemaIndex:
    """The schema's index, if it is well-formed and the format version can hold it."""
    index = SchemaIndex(as_object(schema, "schema"))
    for number in identifier_ids(schema):
        _check_identifier(number, index)
    problems = [problem for path in index.by_id.values() for problem in _problems(path, format_version)]
    if problems:
        raise ValidationFailed(f"Invalid schema for v{format_version}:\n- " + "\n- ".join(problems))
    return index


def identifier_ids(schema: Document) -> list[int]:
    """The ids of the identifier fields, [] when there are none."""
    return read_ints(schema, "identifier-field-ids") if schema.get("identifier-field-ids") else []


def same_schema(left: Document, right: Document) -> bool:
    """True when both have the same fields and identifier fields, whatever their schema ids."""
    return bool(_canonical(left) == _canonical(right))


def with_fresh_ids(schema: Document, schema_id: int) -> tuple[Document, dict[int, int]]:
    """The schema with field ids counted from 1, each level before what is nested in it; and each old id's new id."""
    new_ids: dict[int, int] = {}
    numbers = count(1)
    fresh = {**schema, "type": "struct", "fields": _renumbered_fields(schema["fields"], lambda: next(numbers), new_ids)}
    fresh["schema-id"] = schema_id
    if schema.get("identifier-field-ids"):
        fresh["identifier-field-ids"] = [new_ids[old] for old in schema["identifier-field-ids"]]
    return fresh, new_ids


def _walk(kind: Any, prefix: str, parents: tuple[Document, ...]) -> Iterator[FieldPath]:
    if len(parents) > DEEPEST:
        raise IllegalArgument(f"Cannot create schema, types are nested more than {DEEPEST} deep")
    for field in nested_fields(kind):
        check_field(field)
        yield FieldPath(field, prefix + field["name"], parents)
        yield from _walk(field["type"], f"{prefix}{field['name']}.", (*parents, field))


def _short_name(path: FieldPath) -> str:
    """The full name without the "element" or "value" between a list or map and the struct it holds."""
    names: list[str] = []
    line = (*path.parents, path.field)
    for position, field in enumerate(line):
        outer = line[position - 1]["type"] if position else None
        in_struct = outer is None or outer["type"] == "struct"
        holds_struct = isinstance(field["type"], dict) and field["type"]["type"] == "struct"
        if in_struct or not holds_struct or field["name"] == "key" or position == len(line) - 1:
            names.append(field["name"])
    return ".".join(names)


def _canonical(schema: Document) -> Any:
    return [canonical_field(field) for field in schema["fields"]], set(identifier_ids(schema))


def _problems(path: FieldPath, format_version: int) -> Iterator[str]:
    since = first_version_of(path.field["type"])
    if format_version < since:
        yield f"Invalid type for {path.name}: {describe_type(path.field['type'])} is not supported until v{since}"
    default = path.field.get("initial-default")
    if default is not None and format_version < DEFAULTS_SINCE:
        yield (
            f"Invalid initial default for {path.name}: "
            f"non-null default ({default}) is not supported until v{DEFAULTS_SINCE}"
        )


def _check_identifier(number: int, index: SchemaIndex) -> None:
    path = index.by_id.get(number)
    if path is None:
        raise IllegalArgument(f"Cannot add fieldId {number} as an identifier field: field does not exist")
    name, kind = path.field["name"], path.field["type"]
    if reason := _why_no_identifier(path, kind):
        raise IllegalArgument(f"Cannot add field {name} as an identifier field: {reason}")


def _why_no_identifier(path: FieldPath, kind: Any) -> str | None:
    if not is_primitive(kind):
        return "not a primitive type field"
    if not path.field["required"]:
        return "not a required field"
    if parse_primitive(kind) in ("float", "double"):
        return "must not be float or double field"
    for parent in path.parents:
        if parent["type"]["type"] != "struct":
            return f"must not be nested in {describe_field(parent)}"
        if not parent["required"]:
            return f"must not be nested in an optional field {describe_field(parent)}"
    return None


def _renumbered_fields(fields: list[Document], fresh: Callable[[], int], new_ids: dict[int, int]) -> list[Document]:
    for field in fields:
        new_ids[field["id"]] = fresh()
    return [
        {**field, "id": new_ids[field["id"]], "type": _renumbered(field["type"], fresh, new_ids)} for field in fields
    ]


def _renumbered(kind: Any, fresh: Callable[[], int], new_ids: dict[int, int]) -> Any:
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": _renumbered_fields(kind["fields"], fresh, new_ids)}
    parts = ["element"] if kind["type"] == "list" else ["key", "value"]
    renumbered = dict(kind)
    for part in parts:
        renumbered[f"{part}-id"] = new_ids[kind[f"{part}-id"]] = fresh()
    for part in parts:
        renumbered[part] = _renumbered(kind[part], fresh, new_ids)
    return renumbered
