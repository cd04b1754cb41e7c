"""JSON lines parsed into Arrow: by PyArrow's parser, with times, UUIDs and bytes read from its texts."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from frazil.sources.columns import type_text
from frazil.sources.json_values import batch_of, has_map, loads
from frazil.sources.text_values import is_uuid, read_texts

_BLANK = re.compile(rb"\n[ \t\r\f\v]*+\n")
_LINE = re.compile(rb"[^\n]*[^\s][^\n]*\n?")


class JsonParser:
    """Parses lines of JSON objects into `schema`. A field that is not in it is refused; one that is missing is null."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._wire = pa.schema([pa.field(field.name, _wire(field.type)) for field in schema])
        self._by_python = any(has_map(field.type) for field in schema)

    def last_end(self, text: bytes) -> int:
        """Every line end ends a record: in JSON's strings there is none."""
        return text.rfind(b"\n") + 1

    def is_whole(self, tail: bytes) -> bool:  # noqa: ARG002  if it is not, it is not JSON either
        """Always."""
        return True

    def records(self, text: bytes) -> list[tuple[int, int]]:
        """Where each line that is not blank begins and ends."""
        return [match.span() for match in _LINE.finditer(text)]

    def parse(self, text: bytes) -> pa.RecordBatch:
        """The rows of these lines; ValueError if there is a bad one among them."""
        text.decode()  # PyArrow takes any bytes for UTF-8
        if self._by_python:
            batch: Any = batch_of([loads(text[slice(*span)]) for span in self.records(text)], self._wire)
        else:
            batch = _read(text, self._wire)
            if batch.num_rows != self._count(text):
                raise ValueError("there is not one object on each line")
        return _with_types(batch, self._schema)

    def fault(self, record: bytes) -> str:
        """Why this one line is refused."""
        try:
            value = loads(record)
        except ValueError as error:
            return f"it is not JSON: {error}"
        if not isinstance(value, dict):
            return "it is not a JSON object"
        if unknown := _unknown(value, pa.struct(list(self._schema)), ""):
            return (
                f"field {unknown!r} is not known: it is in neither the table nor the sample that types were told from; "
                "name it by --schema"
            )
        for wire, field in zip(self._wire, self._schema, strict=True):
            try:
                _with_types(batch_of([{field.name: value.get(field.name)}], pa.schema([wire])), pa.schema([field]))
            except ValueError:
                return f"column {field.name!r} is {type_text(field.type)}, and {_shown(value.get(field.name))} is not"
        return "its values cannot be read"

    def _count(self, text: bytes) -> int:
        """How many records there are; told apart one by one only if there may be a blank line."""
        if text[:1].isspace() or not text.endswith(b"\n") or _BLANK.search(text):
            return len(self.records(text))
        return text.count(b"\n")


def _read(text: bytes, schema: pa.Schema) -> pa.Table:
    if not text.strip():
        return schema.empty_table()
    return pajson.read_json(
        pa.BufferReader(text),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


def _with_types(batch: Any, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [read_texts(_whole(column), field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _wire(kind: pa.DataType) -> pa.DataType:
    """The type as JSON's own values can hold it."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([(field.name, _wire(field.type)) for field in kind])
    if types.is_list(kind):
        return pa.list_(_wire(kind.value_type))
    if types.is_map(kind):
        return pa.map_(_wire(kind.key_type), _wire(kind.item_type))
    if types.is_temporal(kind) or is_uuid(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.string()
    return kind


def _whole(column: Any) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _unknown(value: Any, kind: Any, path: str) -> str | None:
    """The first field in the value that its type does not have."""
    if isinstance(value, dict) and pa.types.is_struct(kind):
        for name, inner in value.items():
            at = kind.get_field_index(name)
            found = f"{path}{name}" if at < 0 else _unknown(inner, kind.field(at).type, f"{path}{name}.")
            if found:
                return found
    if isinstance(value, list) and pa.types.is_list(kind):
        return next((found for item in value if (found := _unknown(item, kind.value_type, path))), None)
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
