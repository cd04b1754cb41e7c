"""Typed reading of JSON documents: a field is there and of its type, or the request is refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import orjson

from frazil.catalog.errors import IllegalArgument

Document: TypeAlias = dict[str, Any]

INT_RANGE = range(-(2**31), 2**31)
LONG_RANGE = range(-(2**63), 2**63)


def as_object(value: object, what: str) -> Document:
    """`value` if it is a JSON object; `what` names it in the refusal."""
    if not isinstance(value, dict):
        raise IllegalArgument(f"Cannot parse {what} from non-object: {as_json(value)}")
    return value


def read(document: Document, name: str) -> Any:
    """The field, which must be there and not null."""
    value = document.get(name)
    if value is None:
        raise IllegalArgument(f"Cannot parse missing field: {name}")
    return value


def read_int(document: Document, name: str) -> int:
    """A field that must be a 32-bit integer."""
    return _integer(document, name, "int", "an integer", INT_RANGE)


def read_long(document: Document, name: str) -> int:
    """A field that must be a 64-bit integer."""
    return _integer(document, name, "long", "a long", LONG_RANGE)


def read_optional_int(document: Document, name: str) -> int | None:
    """A 32-bit integer, or None where the field is missing or null."""
    return None if document.get(name) is None else read_int(document, name)


def read_optional_long(document: Document, name: str) -> int | None:
    """A 64-bit integer, or None where the field is missing or null."""
    return None if document.get(name) is None else read_long(document, name)


def read_string(document: Document, name: str) -> str:
    """A field that must be a string."""
    if name not in document:
        raise IllegalArgument(f"Cannot parse missing string: {name}")
    value = document[name]
    if not isinstance(value, str):
        raise IllegalArgument(f"Cannot parse to a string value: {name}: {as_json(value)}")
    return value


def read_optional_string(document: Document, name: str) -> str | None:
    """A string, or None where the field is missing or null."""
    return None if document.get(name) is None else read_string(document, name)


def read_bool(document: Document, name: str) -> bool:
    """A field that must be true or false."""
    if name not in document:
        raise IllegalArgument(f"Cannot parse missing boolean: {name}")
    value = document[name]
    if not isinstance(value, bool):
        raise IllegalArgument(f"Cannot parse to a boolean value: {name}: {as_json(value)}")
    return value


def read_object(document: Document, name: str) -> Document:
    """A field that must be an object."""
    return as_object(read(document, name), name)


def read_list(document: Document, name: str) -> list[Any]:
    """A field that must be a list."""
    if name not in document:
        raise IllegalArgument(f"Cannot parse missing list: {name}")
    value = document[name]
    if not isinstance(value, list):
        raise IllegalArgument(f"Cannot parse JSON array from non-array value: {name}: {as_json(value)}")
    return value


def read_objects(document: Document, name: str) -> list[Document]:
    """A field that must be a list of objects."""
    return [as_object(element, name) for element in read_list(document, name)]


def read_ints(document: Document, name: str) -> list[int]:
    """A field that must be a list of 32-bit integers."""
    return _integers(document, name, "an integer", INT_RANGE)


def read_longs(document: Document, name: str) -> list[int]:
    """A field that must be a list of 64-bit integers."""
    return _integers(document, name, "a long", LONG_RANGE)


def read_strings(document: Document, name: str) -> list[str]:
    """A field that must be a list of strings."""
    values = read_list(document, name)
    for value in values:
        if not isinstance(value, str):
            raise IllegalArgument(f"Cannot parse string from non-text value in {name}: {as_json(value)}")
    return values


def read_string_map(document: Document, name: str) -> dict[str, str]:
    """A field that must be an object whose values are strings."""
    if name not in document:
        raise IllegalArgument(f"Cannot parse missing map: {name}")
    values = document[name]
    if not isinstance(values, dict):
        raise IllegalArgument(f"Cannot parse string map from non-object value: {name}: {as_json(values)}")
    for key, value in values.items():
        if not isinstance(value, str):
            raise IllegalArgument(f"Cannot parse to a string value: {key}: {as_json(value)}")
    return values


def without_nulls(document: Document, *left_out: str) -> Document:
    """A copy without the named fields and without fields that are null, which mean the same as missing ones."""
    return {key: value for key, value in document.items() if value is not None and key not in left_out}


def as_json(value: object, limit: int = 200) -> str:
    """A value for an error message: its JSON, cut short."""
    text = orjson.dumps(value, default=repr).decode()
    return text if len(text) <= limit else text[:limit] + "…"


def join(names: Iterable[object]) -> str:
    """Names for an error message."""
    return ", ".join(map(str, names))


def _integer(document: Document, name: str, kind: str, article: str, bounds: range) -> int:
    if name not in document:
        raise IllegalArgument(f"Cannot parse missing {kind}: {name}")
    value = document[name]
    if not isinstance(value, int) or isinstance(value, bool) or value not in bounds:
        raise IllegalArgument(f"Cannot parse to {article} value: {name}: {as_json(value)}")
    return value


def _integers(document: Document, name: str, article: str, bounds: range) -> list[int]:
    values = read_list(document, name)
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or value not in bounds:
            raise IllegalArgument(f"Cannot parse to {article} value in {name}: {as_json(value)}")
    return values
