"""CSV files, cut into shards by byte range; types from a sample, from `--schema`, or from the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.sources.columns import columns_text, parse_columns, table_columns
from frazil.sources.csv_dialect import CsvDialect
from frazil.sources.csv_layout import CsvFile, CsvLayout
from frazil.sources.csv_parser import CsvParser
from frazil.sources.open import SourceRequest
from frazil.sources.pieces import shard_name
from frazil.sources.text_blocks import TextRange
from frazil.sources.text_files import each_at_once, read_heads, shards_of_ranges
from frazil.sources.text_shard import TextShard, ranges_of
from frazil.sources.text_types import common_type, type_of_texts

_SAMPLE_BYTES = 64 * 1024 * 1024
_SAMPLE_OF_A_FILE = 4 * 1024 * 1024
_TSV = re.compile(r"\.tsv(\.\w+)?$")
_CUT_WITHIN_QUOTES = " (if quoted fields hold line ends, say so by --option multiline=true)"


@dataclass(frozen=True)
class CsvFormat:
    """All that a task needs to know to read ranges of CSV files."""

    dialect: CsvDialect
    columns: str
    kind: str = "csv"

    def parser(self, piece: TextRange) -> CsvParser:
        """The parser for a file with the range's columns."""
        return CsvParser(self.dialect, piece.columns, self._types, _CUT_WITHIN_QUOTES if piece.is_cut else "")

    def to_document(self) -> dict[str, Any]:
        """As JSON values."""
        return {"dialect": self.dialect.to_document(), "columns": self.columns}

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in parse_columns(self.columns)}


class CsvSource:
    """CSV files. The beginning of each is read at the start: its header, and its share of the sample for types.

    `known` are types that are given and not told from the sample: by `--schema`, or by the table.
    """

    def __init__(self, request: SourceRequest) -> None:
        self.description = request.description
        self._storage = request.storage
        self._dialect = CsvDialect.from_options(request.options, _usual_delimiter(request))
        schema = request.options.get("schema")
        self._known = parse_columns(schema) if schema else pa.schema([])
        self._named = self._known.names
        self._names: tuple[str, ...] | None = tuple(self._named) or None
        self._has_header = _switch(request.options, "header", True)
        self._skip = _number(request.options, "skip-lines")
        heads = read_heads(request.files, request.storage, _SAMPLE_BYTES, _SAMPLE_OF_A_FILE)
        self._heads = [head for head in heads if head.text]
        if not self._heads and schema is None:
            raise BadInput(f"source {self.description} is empty: there is neither a header nor a row")
        self._multiline = _switch(request.options, "multiline", self._sample_has_multiline())

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes of all files, compressed where they are."""
        return sum(head.file.size for head in self._heads)

    def for_table(self, schema: Schema) -> CsvSource:
        """The source with values read as the table's types, but for columns that `--schema` names."""
        fitted = copy(self)
        for derived in ("_files", "_types"):
            fitted.__dict__.pop(derived, None)
        columns = table_columns(schema)
        fitted._known = pa.schema([*self._known, *(field for field in columns if field.name not in self._known.names)])
        fitted._names = self._names or tuple(columns.names)
        return fitted

    def schema(self) -> pa.Schema:
        """The columns of all files in the order of their appearance, all optional."""
        names = dict.fromkeys(name for file in self._files for name in file.range.columns)
        return pa.schema([(name, self._types[name]) for name in names])

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct set of columns with the first file that has it."""
        distinct: dict[tuple[str, ...], str] = {}
        for file in self._files:
            distinct.setdefault(file.range.columns, file.range.file.path)
        return [
            (path, pa.schema([(name, self._types[name]) for name in columns])) for columns, path in distinct.items()
        ]

    def shards(self, count: int) -> list[TextShard]:
        """About `count` shards of like size; large files that are not compressed are cut at line ends."""
        ranges = [file.range for file in self._files if not _nothing_after(file)]
        last_end = self._dialect.last_end if self._multiline else None
        groups = shards_of_ranges(ranges, count, self._storage, last_end)
        form = CsvFormat(self._dialect, columns_text(pa.schema(list(self._types.items()))))
        return [TextShard(shard_name(number), tuple(group), form) for number, group in enumerate(groups)]

    @cached_property
    def _files(self) -> list[CsvFile]:
        layout = CsvLayout(self._dialect, self._has_header, self._skip, self._names)
        return [layout.file(head) for head in self._heads]

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        """The type of each column: a known one, else what the samples of all files fit."""
        found: dict[str, list[pa.DataType]] = {}
        for kinds in each_at_once(self._sampled, self._files):
            for name, kind in kinds.items():
                found.setdefault(name, []).append(kind)
        types = {name: common_type(kinds) for name, kinds in found.items()}
        types = {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in types.items()}
        if (absent := [name for name in self._named if name not in types]) and types:
            raise SchemaMismatch(f"--schema names column {', '.join(absent)}, which {self.description} does not have")
        types |= {field.name: field.type for field in self._known if field.name in types}
        for name, kind in types.items():
            if pa.types.is_nested(kind):
                raise SchemaMismatch(
                    f"column {name!r} of {self.description} is to be {kind}, which CSV cannot hold; use JSON lines or Parquet"
                )
        return types

    def _sampled(self, file: CsvFile) -> dict[str, pa.DataType]:
        unknown = [name for name in file.range.columns if name not in self._known.names]
        kinds = dict.fromkeys(file.range.columns, pa.null())
        if not unknown:
            return kinds
        parser = CsvParser(self._dialect, file.range.columns, dict.fromkeys(file.range.columns, pa.string()))
        try:
            texts = parser.texts(file.sample)
        except ValueError as error:
            raise SourceUnreadable(
                f"source {file.range.file.path} cannot be read as CSV: {error}; see --option delimiter, quote and encoding"
            ) from error
        return kinds | {name: type_of_texts(texts[name].combine_chunks()) for name in unknown}

    def _sample_has_multiline(self) -> bool:
        quote = (self._dialect.quote or "").encode()
        return bool(quote) and any(
            text[start:end].rstrip(b"\r\n").count(b"\n")
            for text in (head.whole_records(self._dialect.last_end) for head in self._heads)
            if quote in text
            for start, end in self._dialect.records(text)
        )


def open_source(request: SourceRequest) -> CsvSource:
    """The kind's way in; see `frazil.sources.open`."""
    return CsvSource(request)


def shard_from_document(name: str, document: Mapping[str, Any]) -> TextShard:
    """The kind's way back from a job's log."""
    form = CsvFormat(CsvDialect.from_document(document["dialect"]), document["columns"])
    return TextShard(name, ranges_of(document), form)


def _usual_delimiter(request: SourceRequest) -> str:
    """A tab in `.tsv`, else a comma; BadInput if some are and some are not and nothing is said."""
    tabs = [_TSV.search(file.path.lower()) is not None for file in request.files]
    if any(tabs) and not all(tabs) and "delimiter" not in request.options:
        raise BadInput(
            f"the sources are both .tsv ({request.files[tabs.index(True)].path}) and not "
            f"({request.files[tabs.index(False)].path}); ingest them one after the other, or say --option delimiter"
        )
    return "\t" if any(tabs) else ","


def _nothing_after(file: CsvFile) -> bool:
    return file.range.compression is None and file.range.start >= file.range.file.size


def _switch(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name)
    if text is None:
        return default
    if text not in ("true", "false"):
        raise BadInput(f"--option {name}={text} is neither true nor false")
    return text == "true"


def _number(options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "0")
    if not text.isdecimal():
        raise BadInput(f"--option {name}={text} is not a number")
    return int(text)
