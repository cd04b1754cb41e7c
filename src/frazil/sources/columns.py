"""Columns as text, `id bigint, price decimal(10,2), tags list<string>`: what `--schema` takes and a job's log keeps.

The names of types are Iceberg's, and Spark's where they differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema

from frazil.errors import BadInput

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
    "uuid": pa.uuid(),
}
_ALSO = {
    "bool": "boolean",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "numeric": "decimal",
    "array": "list",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamptz",
}
_WORD = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s,:<>()`]+|[,:<>()])")


def parse_columns(text: str) -> pa.Schema:
    """The columns that the text names. BadInput says where it cannot be understood."""
    reader = _Reader(text)
    fields = [reader.field()]
    while reader.take(","):
        fields.append(reader.field())
    reader.end()
    names = [field.name for field in fields]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"schema {text!r} names column {', '.join(twice)} twice")
    return pa.schema(fields)


def columns_text(schema: pa.Schema) -> str:
    """The text that `parse_columns` turns into this schema."""
    return ", ".join(f"{_quoted(field.name)} {type_text(field.type)}" for field in schema)


def table_columns(schema: Schema) -> pa.Schema:
    """A table's columns as the types that values are read as: narrow offsets, no field ids, all optional."""
    return pa.schema([(field.name, _plain(field.type)) for field in schema_to_pyarrow(schema, include_field_ids=False)])


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._words = _WORD.findall(text)
        self._at = 0

    def field(self) -> pa.Field:
        name = self._next("a name")
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        self.take(":")
        return pa.field(name, self._type())

    def take(self, word: str) -> bool:
        if self._at < len(self._words) and self._words[self._at] == word:
            self._at += 1
            return True
        return False

    def end(self) -> None:
        if self._at < len(self._words):
            raise self._error(f"a comma or the end, not {self._words[self._at]!r}")

    def _type(self) -> pa.DataType:
        word = self._next("a type").lower()
        name = _ALSO.get(word, word)
        if name in _SIMPLE:
            if word == "varchar" and self.take("("):
                self._number(")")
            return _SIMPLE[name]
        made = {"decimal": self._decimal, "fixed": self._fixed, "list": self._list, "map": self._map}
        if name == "struct":
            return self._struct()
        if name not in made:
            raise self._error(f"a type; {word!r} is none of {', '.join([*_SIMPLE, *made, 'struct'])}")
        return made[name]()

    def _decimal(self) -> pa.DataType:
        self._want("(")
        precision = self._number(",")
        scale = self._number(")")
        if not (1 <= precision <= 38 and scale <= precision):
            raise self._error(f"a decimal of up to 38 digits, not decimal({precision},{scale})")
        return pa.decimal128(precision, scale)

    def _fixed(self) -> pa.DataType:
        self._want("(")
        return pa.binary(self._number(")"))

    def _list(self) -> pa.DataType:
        self._want("<")
        kind = pa.list_(self._type())
        self._want(">")
        return kind

    def _map(self) -> pa.DataType:
        self._want("<")
        key = self._type()
        self._want(",")
        kind = pa.map_(key, self._type())
        self._want(">")
        return kind

    def _struct(self) -> pa.DataType:
        self._want("<")
        fields = [self.field()]
        while self.take(","):
            fields.append(self.field())
        self._want(">")
        return pa.struct(fields)

    def _number(self, closing: str) -> int:
        word = self._next("a number")
        if not word.isdecimal():
            raise self._error(f"a number, not {word!r}")
        self._want(closing)
        return int(word)

    def _want(self, word: str) -> None:
        if not self.take(word):
            raise self._error(repr(word))

    def _next(self, wanted: str) -> str:
        if self._at == len(self._words):
            raise self._error(wanted)
        self._at += 1
        return str(self._words[self._at - 1])

    def _error(self, wanted: str) -> BadInput:
        before = " ".join(self._words[: self._at])
        return BadInput(
            f"schema {self._text!r} is not understood after {before!r}: there should be {wanted}; "
            "write it as 'id bigint, price decimal(10,2), tags list<string>'"
        )


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else "`" + name.replace("`", "``") + "`"


def type_text(kind: pa.DataType) -> str:
    """A type as `parse_columns` knows it."""
    types = pa.types
    for name, simple in _SIMPLE.items():
        if kind.equals(simple):
            return name
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_fixed_size_binary(kind):
        return f"fixed({kind.byte_width})"
    if types.is_list(kind):
        return f"list<{type_text(kind.value_type)}>"
    if types.is_map(kind):
        return f"map<{type_text(kind.key_type)}, {type_text(kind.item_type)}>"
    return f"struct<{', '.join(f'{_quoted(field.name)}: {type_text(field.type)}' for field in kind)}>"


_NARROW: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
)


def _plain(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    for is_kind, narrow in _NARROW:
        if is_kind(kind):
            return narrow
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    return kind
