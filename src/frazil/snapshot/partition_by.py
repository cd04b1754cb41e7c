"""Reading `day(ts), bucket(16, id), region` into a partition spec."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import NestedField, PrimitiveType

from frazil.errors import BadInput, UnknownColumn

_TERM = re.compile(r"\s*(?:(?P<name>\w+)\s*\((?P<arguments>[^()]*)\)|(?P<column>[^(),]+?))\s*(?:,|$)")
_PLAIN: dict[str, type[Transform[Any, Any]]] = {
    "identity": IdentityTransform,
    "year": YearTransform,
    "years": YearTransform,
    "month": MonthTransform,
    "months": MonthTransform,
    "day": DayTransform,
    "days": DayTransform,
    "date": DayTransform,
    "hour": HourTransform,
    "hours": HourTransform,
    "void": VoidTransform,
}
_SIZED: dict[str, Callable[[int], Transform[Any, Any]]] = {"bucket": BucketTransform, "truncate": TruncateTransform}
_SUFFIX = {"bucket": "bucket", "truncate": "trunc"}


def partition_spec(text: str, schema: Schema) -> PartitionSpec:
    """The spec that `text` describes over this schema. What does not fit is refused by its own words."""
    fields: list[PartitionField] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise BadInput(
                f"--partition-by {text!r} cannot be read from {text[position:].strip()!r} on; write terms such as "
                "day(ts), bucket(16, id), truncate(4, code) or region, with commas between"
            )
        fields.append(_field(match, schema, PARTITION_FIELD_ID_START + len(fields)))
        position = match.end()
    if not fields:
        raise BadInput("--partition-by is empty; leave it out for a table without partitions")
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise BadInput(f"--partition-by {text!r} names the same partition twice")
    return PartitionSpec(*fields)


def _field(match: re.Match[str], schema: Schema, field_id: int) -> PartitionField:
    name = (match["name"] or "identity").lower()
    arguments = [part.strip() for part in (match["arguments"] or match["column"] or "").split(",")]
    transform, column = _transform(name, arguments, match[0].strip().rstrip(","))
    source = _source(column, schema)
    if not transform.can_transform(source.field_type):
        raise BadInput(f"{name}({column}) cannot partition: column {column} is of type {source.field_type}")
    suffix = "" if name == "identity" else "_" + _SUFFIX.get(name, name.rstrip("s") if name != "date" else "day")
    return PartitionField(
        source_id=source.field_id,
        field_id=field_id,
        transform=transform,
        name=f"{column}{suffix}",
    )


def _transform(name: str, arguments: list[str], term: str) -> tuple[Transform[Any, Any], str]:
    if name in _PLAIN and len(arguments) == 1:
        return _PLAIN[name](), arguments[0]
    if name in _SIZED and len(arguments) == 2:
        size, column = arguments if arguments[0].isdigit() else arguments[::-1]
        if size.isdigit() and int(size) > 0:
            return _SIZED[name](int(size)), column
    raise BadInput(
        f"{term!r} is not a partition transform; known are identity, year, month, day and hour of a column, "
        "bucket(N, column), truncate(W, column) and void(column)"
    )


def _source(column: str, schema: Schema) -> NestedField:
    try:
        source = schema.find_field(column)
    except ValueError:
        raise UnknownColumn(
            f"--partition-by names the column {column!r}, which is not there; the columns are "
            f"{', '.join(field.name for field in schema.fields)}"
        ) from None
    if not isinstance(source.field_type, PrimitiveType):
        raise BadInput(
            f"column {column} is of type {source.field_type} and cannot partition a table; name a plain column"
        )
    return source
