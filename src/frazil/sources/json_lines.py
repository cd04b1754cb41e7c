"""JSON lines, cut into shards by byte range; types from a sample, from `--schema`, or from the table."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.errors import BadInput, SourceUnreadable
from frazil.sources.columns import columns_text, parse_columns, table_columns
from frazil.sources.json_parser import JsonParser
from frazil.sources.json_types import SeenValues
from frazil.sources.json_values import loads
from frazil.sources.open import SourceRequest
from frazil.sources.pieces import shard_name
from frazil.sources.text_blocks import TextRange
from frazil.sources.text_files import TextHead, read_heads, shards_of_ranges
from frazil.sources.text_shard import TextShard, ranges_of

_SAMPLE_BYTES = 16 * 1024 * 1024
_SAMPLE_OF_A_FILE = 2 * 1024 * 1024
_ANY = JsonParser(pa.schema([]))


@dataclass(frozen=True)
class JsonFormat:
    """All that a task needs to know to read ranges of JSON lines."""

    columns: str
    kind: str = "json"

    def parser(self, piece: TextRange) -> JsonParser:  # noqa: ARG002  all files are read alike
        """The parser for all files."""
        return JsonParser(parse_columns(self.columns))

    def to_document(self) -> dict[str, Any]:
        """As JSON values."""
        return {"columns": self.columns}


class JsonSource:
    """Files of JSON lines. The beginning of each is read at the start, to tell types from."""

    def __init__(self, request: SourceRequest) -> None:
        self.description = request.description
        self._storage = request.storage
        schema = request.options.get("schema")
        self._known = parse_columns(schema) if schema else pa.schema([])
        heads = read_heads(request.files, request.storage, _SAMPLE_BYTES, _SAMPLE_OF_A_FILE)
        self._heads = [head for head in heads if head.text.strip() or not head.is_all]
        self._seen: dict[str, SeenValues] = {}
        for head in self._heads:
            self._look_at(head)
        if not self._seen and not self._known.names:
            raise BadInput(f"source {self.description} is empty: there is no JSON object to tell columns from")

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes of all files, compressed where they are."""
        return sum(head.file.size for head in self._heads)

    def for_table(self, schema: Schema) -> JsonSource:
        """The source with values read as the table's types, but for columns that `--schema` names."""
        fitted = copy(self)
        fitted.__dict__.pop("_schema", None)
        columns = table_columns(schema)
        fitted._known = pa.schema([*self._known, *(field for field in columns if field.name not in self._known.names)])
        return fitted

    def schema(self) -> pa.Schema:
        """The known columns, then those of the sample in the order of their appearance, all optional."""
        return self._schema

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """The one schema that all files are read by."""
        return [(self.description, self._schema)]

    def shards(self, count: int) -> list[TextShard]:
        """About `count` shards of like size; large files that are not compressed are cut at line ends."""
        ranges = [TextRange(head.file, head.skipped, None, head.compression) for head in self._heads]
        groups = shards_of_ranges(ranges, count, self._storage, None)
        form = JsonFormat(columns_text(self._schema))
        return [TextShard(shard_name(number), tuple(group), form) for number, group in enumerate(groups)]

    @cached_property
    def _schema(self) -> pa.Schema:
        known = {field.name: field.type for field in self._known}
        return pa.schema(
            [
                (name, self._seen.get(name, SeenValues()).type(name, known.get(name)))
                for name in dict.fromkeys([*known, *self._seen])
            ]
        )

    def _look_at(self, head: TextHead) -> None:
        """Add the sample's values. A line that is not an object is for the task to refuse, where it can be placed."""
        text = head.whole_records(_ANY.last_end)
        objects = 0
        for start, end in _ANY.records(text):
            try:
                value = loads(text[start:end])
            except ValueError:
                continue
            if isinstance(value, dict):
                objects += 1
                where = f"{head.file.path}, byte {head.skipped + start}"
                for name, inner in value.items():
                    self._seen.setdefault(name, SeenValues()).add(inner, where)
        if not objects:
            raise SourceUnreadable(
                f"source {head.file.path} has no line in its first {len(head.text):,} bytes that is a JSON object; JSON "
                "lines are read, one object on each line (a document or an array can be turned into them: jq -c '.[]')"
            )


def open_source(request: SourceRequest) -> JsonSource:
    """The kind's way in; see `frazil.sources.open`."""
    return JsonSource(request)


def shard_from_document(name: str, document: Mapping[str, Any]) -> TextShard:
    """The kind's way back from a job's log."""
    return TextShard(name, ranges_of(document), JsonFormat(document["columns"]))
