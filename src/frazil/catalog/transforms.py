"""Partition and sort transforms: their names, and which types each can be applied to."""

from __future__ import annotations

import re
from typing import Any, Final

from frazil.catalog.errors import IllegalArgument
from frazil.catalog.types import is_primitive, parse_primitive, root_of

_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d+)\]", re.IGNORECASE)
_MOMENTS: Final = frozenset({"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_DAYS: Final = _MOMENTS | {"date"}
_NOT_IDENTITY: Final = frozenset({"variant", "geometry", "geography"})
_SOURCES: Final[dict[str, frozenset[str]]] = {
    "year": _DAYS,
    "month": _DAYS,
    "day": _DAYS,
    "hour": _MOMENTS,
    "bucket": _DAYS | {"int", "long", "time", "string", "binary", "fixed", "decimal", "uuid"},
    "truncate": frozenset({"int", "long", "string", "binary", "decimal"}),
}
VOID: Final = "void"


def parse_transform(name: str) -> str:
    """The transform's canonical name. An unknown one is kept: a newer client may know it."""
    if match := _WITH_WIDTH.fullmatch(name):
        width = int(match[2])
        if not 0 < width < 2**31:
            what = "number of buckets" if match[1].lower() == "bucket" else "truncate width"
            raise IllegalArgument(f"Invalid {what}: {width} (must be > 0)")
        return f"{match[1].lower()}[{width}]"
    lower = name.lower()
    return lower if lower in _SOURCES or lower in ("identity", VOID) else name


def can_transform(transform: str, source: Any) -> bool:
    """True when values of the type can go through the transform, or when nothing is known of the transform."""
    name = root_of(transform)
    if name == VOID:
        return True
    if not is_primitive(source):
        return False
    kind = root_of(parse_primitive(source))
    if name == "identity":
        return kind not in _NOT_IDENTITY
    return name not in _SOURCES or kind in _SOURCES[name]
