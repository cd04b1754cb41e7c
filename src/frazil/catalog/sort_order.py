"""One sort order: its shape and what makes it valid for a schema."""

from __future__ import annotations

from typing import Any, Final

from frazil.catalog.document import Document, as_object, read_int, read_objects, read_string
from frazil.catalog.errors import IllegalArgument, ValidationFailed
from frazil.catalog.schema import SchemaIndex
from frazil.catalog.transforms import can_transform, parse_transform
from frazil.catalog.types import describe_type, is_primitive

UNSORTED_ID: Final = 0
_DIRECTIONS: Final = frozenset({"asc", "desc"})
_NULL_ORDERS: Final = frozenset({"nulls-first", "nulls-last"})


def parse_order(order: Any) -> Document:
    """The order, if it is well-formed. Only the order 0 is unsorted, and nothing else is order 0."""
    document = as_object(order, "sort order")
    number, fields = read_int(document, "order-id"), read_objects(document, "fields")
    for field in fields:
        read_int(field, "source-id")
        parse_transform(read_string(field, "transform"))
        if read_string(field, "direction").lower() not in _DIRECTIONS:
            raise IllegalArgument(f"Invalid sort direction: {field['direction']}")
        if read_string(field, "null-order").lower() not in _NULL_ORDERS:
            raise IllegalArgument(f"Unexpected null order: {field['null-order']}")
    if not fields and number != UNSORTED_ID:
        raise IllegalArgument("Unsorted order ID must be 0")
    if fields and number == UNSORTED_ID:
        raise IllegalArgument("Sort order ID 0 is reserved for unsorted order")
    return document


def check_order(order: Document, index: SchemaIndex) -> None:
    """Refuse an order that does not fit the schema."""
    for field in order["fields"]:
        kind, transform = index.type_of(field["source-id"]), parse_transform(field["transform"])
        if kind is None:
            raise ValidationFailed(f"Cannot find source column for sort field: {_describe(field)}")
        if not is_primitive(kind):
            raise ValidationFailed(f"Cannot sort by non-primitive source field: {describe_type(kind)}")
        if not can_transform(transform, kind):
            raise ValidationFailed(f"Invalid source type {describe_type(kind)} for transform: {transform}")


def same_order(left: Document, right: Document) -> bool:
    """True when both sort rows alike, whatever their ids."""
    return _canonical(left) == _canonical(right)


def _canonical(order: Document) -> list[Any]:
    return [
        (
            parse_transform(field["transform"]),
            field["source-id"],
            field["direction"].lower(),
            field["null-order"].lower(),
        )
        for field in order["fields"]
    ]


def _describe(field: Document) -> str:
    nulls = field["null-order"].upper().replace("-", " ")
    return f"{parse_transform(field['transform'])}({field['source-id']}) {field['direction'].upper()} {nulls}"
