"""An Avro schema as a tree of what stands in the bytes, with the Arrow type of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.errors import SchemaMismatch


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without parts. `form` says how its bytes are read: long, boolean, float, double, bytes, fixed, enum, null."""

    form: str
    type: pa.DataType
    size: int = 0
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value. `null_branch` is the place of null in its union; `in_union` says that a branch is written."""

    value: Leaf | List | Map | Record
    in_union: bool = False
    null_branch: int | None = None

    def field(self, name: str) -> pa.Field:
        """The place as an Arrow field."""
        kind = self.value.type
        return pa.field(name, kind, self.null_branch is not None or kind == pa.null())


@dataclass(frozen=True, slots=True)
class List:
    """An array."""

    items: Slot

    @property
    def type(self) -> pa.DataType:
        """As Arrow has it."""
        return pa.list_(self.items.field("element"))


@dataclass(frozen=True, slots=True)
class Map:
    """A map from strings."""

    items: Slot

    @property
    def type(self) -> pa.DataType:
        """As Arrow has it."""
        return pa.map_(pa.string(), self.items.field("value"))


@dataclass(frozen=True, slots=True)
class Record:
    """A record."""

    fields: tuple[tuple[str, Slot], ...]

    @property
    def type(self) -> pa.DataType:
        """As Arrow has it."""
        return pa.struct([slot.field(name) for name, slot in self.fields])


_PLAIN = {
    "null": Leaf("null", pa.null()),
    "boolean": Leaf("boolean", pa.bool_()),
    "int": Leaf("long", pa.int32()),
    "long": Leaf("long", pa.int64()),
    "float": Leaf("float", pa.float32()),
    "double": Leaf("double", pa.float64()),
    "bytes": Leaf("bytes", pa.binary()),
    "string": Leaf("bytes", pa.string()),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{local}timestamp-{name}"): pa.timestamp(unit, zone)
        for local, zone in (("", "UTC"), ("local-", None))
        for name, unit in (("millis", "ms"), ("micros", "us"), ("nanos", "ns"))
    },
}


def record_of(schema: Any, path: str) -> Record:
    """The record that a file holds. SchemaMismatch, naming the file, for what no table can hold."""
    found = _Types(path).value(schema, "")
    if not isinstance(found, Record):
        raise SchemaMismatch(f"source {path} holds values that are not records, so it has no columns")
    return found


class _Types:
    """The types of one file, by name once they have been met."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._named: dict[str, Leaf | Record | None] = {}

    def value(self, schema: Any, place: str, space: str = "") -> Leaf | List | Map | Record:
        if isinstance(schema, str):
            return _PLAIN[schema] if schema in _PLAIN else self._by_name(schema, place, space)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.value(kind, place, space)
        if kind == "array":
            return List(self._slot(schema["items"], f"{place}.element", space))
        if kind == "map":
            return Map(self._slot(schema["values"], f"{place}.value", space))
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(schema, kind, place, space)
        if kind not in _PLAIN:
            return self._by_name(kind, place, space)
        return self._logical(schema, _PLAIN[kind], place)

    def _slot(self, schema: Any, place: str, space: str) -> Slot:
        if not isinstance(schema, list):
            return Slot(self.value(schema, place, space))
        nulls = [at for at, branch in enumerate(schema) if branch == "null" or branch == {"type": "null"}]
        others = [branch for at, branch in enumerate(schema) if at not in nulls]
        if len(others) > 1:
            raise self._refused(place, f"a union of {len(others)} types")
        return Slot(self.value(others[0] if others else "null", place, space), True, nulls[0] if nulls else None)

    def _define(self, schema: Mapping[str, Any], kind: str, place: str, space: str) -> Leaf | Record:
        name = _full_name(schema["name"], schema.get("namespace", space))
        made: Leaf | Record
        if kind == "enum":
            made = Leaf("enum", pa.string(), symbols=tuple(schema["symbols"]))
        elif kind == "fixed":
            made = self._logical(schema, Leaf("fixed", pa.binary(schema["size"]), schema["size"]), place)
        else:
            self._named[name] = None
            inner = name.rpartition(".")[0]
            fields = [(f["name"], self._slot(f["type"], f"{place}.{f['name']}", inner)) for f in schema["fields"]]
            made = Record(tuple(fields))
        self._named[name] = made
        return made

    def _by_name(self, name: str, place: str, space: str) -> Leaf | Record:
        full = _full_name(name, space)
        full = full if full in self._named else name
        if full not in self._named:
            raise self._refused(place, f"of a type {name!r} that the file does not define")
        found = self._named[full]
        if found is None:
            raise self._refused(place, f"a {name} within a {name}")
        return found

    def _logical(self, schema: Mapping[str, Any], value: Leaf, place: str) -> Leaf:
        """A logical type that is not known, or not valid, is ignored, as Avro has it."""
        logical = schema.get("logicalType")
        if logical == "decimal" and value.form in ("bytes", "fixed"):
            precision, scale = schema["precision"], schema.get("scale", 0)
            if not 0 < precision <= 38:
                raise self._refused(place, f"a decimal of {precision} digits, more than 38")
            return Leaf(value.form, pa.decimal128(precision, scale), value.size)
        if logical == "uuid" and (value.form == "bytes" or value.size == 16):
            return Leaf(value.form, pa.uuid(), value.size)
        kind = _LOGICAL.get((str(schema["type"]), str(logical)))
        return value if kind is None else Leaf(value.form, kind)

    def _refused(self, place: str, what: str) -> SchemaMismatch:
        return SchemaMismatch(f"column {place.strip('.')!r} of {self._path} is {what}, which a table cannot hold")


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
