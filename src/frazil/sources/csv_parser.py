"""Records of CSV parsed into Arrow by PyArrow's parser, with the table's types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from frazil.sources.columns import type_text
from frazil.sources.csv_dialect import CsvDialect
from frazil.sources.text_values import is_uuid, read_texts

_TRUE = ["true", "True", "TRUE", "t", "T", "1"]
_FALSE = ["false", "False", "FALSE", "f", "F", "0"]


class CsvParser:
    """Parses records of a file with these `columns`, each to its type among `types`.

    `hint` goes behind the reason why a record does not have them.
    """

    def __init__(
        self, dialect: CsvDialect, columns: Sequence[str], types: Mapping[str, pa.DataType], hint: str = ""
    ) -> None:
        self._dialect = dialect
        self._hint = hint
        self._columns = list(columns)
        self._schema = pa.schema([(name, types[name]) for name in columns])
        self._skips_empty_lines = len(self._columns) > 1  # of one column, an empty line is a null
        self.last_end = dialect.last_end

    @classmethod
    def values(cls, dialect: CsvDialect, record: bytes) -> list[str]:
        """The fields of one record as texts."""
        record = record.rstrip(b"\r\n") + b"\n"
        counted = cls(dialect, [], {})._read(record, [], count_columns=True)
        parser = cls(dialect, counted.column_names, dict.fromkeys(counted.column_names, pa.string()))
        return [column[0].as_py() or "" for column in parser.parse(record).columns]

    def is_whole(self, tail: bytes) -> bool:
        """Whether the last record of a file is finished: no quote is left open."""
        records = self._dialect.records(tail)
        return not records or not self._dialect.has_open_quote(tail[slice(*records[-1])])

    def records(self, text: bytes) -> list[tuple[int, int]]:
        """Where each record that becomes a row begins and ends."""
        spans = self._dialect.records(text)
        return [span for span in spans if not self._skips_empty_lines or text[slice(*span)].strip(b"\r\n")]

    def parse(self, text: bytes) -> pa.RecordBatch:
        """The rows of these records; ValueError if there is a bad one among them."""
        return self._converted(self._read(text, self._schema.names))

    def fault(self, record: bytes) -> str:
        """Why this one record is refused: the first column whose value does not fit, with the value."""
        try:
            texts = self._read(record, self._columns, texts=True)
        except ValueError as error:
            return _plain(error) + self._hint
        for name in self._columns:
            try:
                self._converted(self._read(record, [name]))
            except ValueError:
                value = texts.column(name)[0].as_py() if texts.num_rows else None
                return f"column {name!r} is {type_text(self._schema.field(name).type)}, and {value!r} is not"
        return "it is not one row"

    def texts(self, text: bytes) -> pa.Table:
        """All columns as texts, records and characters that cannot be read left out."""
        text = text.decode(self._dialect.encoding, "ignore").encode(self._dialect.encoding)
        return self._read(text, self._columns, texts=True, skip_bad=True)

    def _read(
        self,
        text: bytes,
        columns: list[str],
        *,
        texts: bool = False,
        skip_bad: bool = False,
        count_columns: bool = False,
    ) -> pa.Table:
        if self._dialect.encoding != "utf-8":
            text = text.decode(self._dialect.encoding).encode()
        if not text:
            return self._schema.empty_table().select(columns)
        kinds = {field.name: pa.string() if texts or is_uuid(field.type) else field.type for field in self._schema}
        return pacsv.read_csv(
            pa.BufferReader(text),
            read_options=pacsv.ReadOptions(
                use_threads=False,
                block_size=len(text) + 1,
                column_names=self._columns,
                autogenerate_column_names=count_columns,
            ),
            parse_options=self._parse_options(skip_bad=skip_bad),
            convert_options=pacsv.ConvertOptions(
                column_types=kinds,
                include_columns=columns,
                null_values=list(self._dialect.null_values),
                true_values=_TRUE,
                false_values=_FALSE,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _parse_options(self, *, skip_bad: bool) -> Any:
        return pacsv.ParseOptions(
            delimiter=self._dialect.delimiter,
            quote_char=self._dialect.quote or False,
            escape_char=self._dialect.escape or False,
            newlines_in_values=True,
            ignore_empty_lines=self._skips_empty_lines,
            invalid_row_handler=(lambda _: "skip") if skip_bad else None,
        )

    def _converted(self, table: pa.Table) -> pa.RecordBatch:
        schema = pa.schema([self._schema.field(name) for name in table.column_names])
        arrays = [read_texts(_whole(column), field.type) for column, field in zip(table.columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _plain(error: ValueError) -> str:
    """PyArrow's sentence without its own count of rows."""
    text = str(error).removeprefix("CSV parse error: ")
    head, colon, tail = text.partition(": ")
    return (tail if colon and head.startswith("Row #") else text).split("\n")[0]
