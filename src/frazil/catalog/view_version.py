"""One version of a view: its shape, its dialects, and when two versions are the same."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.document import (
    Document,
    as_json,
    as_object,
    join,
    read_int,
    read_long,
    read_objects,
    read_optional_string,
    read_string,
    read_string_map,
    read_strings,
    without_nulls,
)
from frazil.catalog.errors import IllegalArgument, ValidationFailed

SQL: Final = "sql"
DROP_DIALECT: Final = "replace.drop-dialect.allowed"
_BEHAVIOUR: Final = ("summary", "representations", "default-catalog", "default-namespace", "schema-id")


def parse_version(version: Any) -> Document:
    """The version without its null fields, if it is well-formed and says each thing once per dialect."""
    document = as_object(version, "view version")
    read_int(document, "version-id")
    read_int(document, "schema-id")
    read_long(document, "timestamp-ms")
    read_string_map(document, "summary")
    read_optional_string(document, "default-catalog")
    read_strings(document, "default-namespace")
    for representation in read_objects(document, "representations"):
        _check_representation(representation)
    _check_dialects(document)
    return without_nulls(document)


def _check_representation(representation: Document) -> None:
    if read_string(representation, "type").lower() != SQL:
        raise IllegalArgument(f"Found unsupported view representations: [{as_json(representation['type'])}]")
    read_string(representation, "sql")
    read_string(representation, "dialect")


def _check_dialects(version: Document) -> None:
    seen: set[str] = set()
    for dialect in _dialects(version):
        if dialect in seen:
            raise IllegalArgument(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")
        seen.add(dialect)


def _dialects(version: Document) -> list[str]:
    return [one["dialect"].lower() for one in version["representations"] if str(one.get("type", SQL)).lower() == SQL]


def same_version(left: Document, right: Document) -> bool:
    """True when both versions behave alike, whatever their ids and times."""
    return all(left.get(name) == right.get(name) for name in _BEHAVIOUR)


def check_no_dialect_lost(previous: Document, current: Document, properties: dict[str, str]) -> None:
    """Refuse a current version that an engine can no longer read which could read the previous one."""
    if properties.get(DROP_DIALECT, "false").lower() == "true":
        return
    before, after = sorted(set(_dialects(previous))), sorted(set(_dialects(current)))
    if not set(before) <= set(after):
        raise ValidationFailed(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT}=false):\n"
            f"Previous dialects: [{join(before)}]\nNew dialects: [{join(after)}]"
        )
