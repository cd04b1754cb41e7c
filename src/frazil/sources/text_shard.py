"""Shards of text files: blocks of records parsed straight into Arrow, and records that cannot be, told one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from frazil.errors import SourceUnreadable
from frazil.sources.files import SourceFile
from frazil.sources.source import BadRow, LocatedBatch, OnBadRow
from frazil.sources.text_blocks import TextBlock, TextRange, read_blocks

_LONGEST_RAW = 32 * 1024
_PARTS = 16

Span = tuple[int, int]


class RecordParser(Protocol):
    """How one format reads the records of one range."""

    def last_end(self, text: bytes) -> int:
        """See `text_blocks.LastEnd`."""

    def is_whole(self, tail: bytes) -> bool:
        """Whether the last record of a file, which has no line end, is finished."""

    def records(self, text: bytes) -> list[Span]:
        """Where each record that becomes a row begins and ends."""

    def parse(self, text: bytes) -> pa.RecordBatch:
        """The rows of these records, one for each; ValueError if there is a bad one among them."""

    def fault(self, record: bytes) -> str:
        """Why `parse` refuses this one record."""


class TextFormat(Protocol):
    """A text format with all that a task needs to know of it."""

    @property
    def kind(self) -> str:
        """Its name among the kinds of sources."""

    def parser(self, piece: TextRange) -> RecordParser:
        """The parser for one range."""

    def to_document(self) -> dict[str, Any]:
        """As JSON values."""


@dataclass(frozen=True, slots=True)
class TextShard:
    """Ranges of one or more text files."""

    name: str
    pieces: tuple[TextRange, ...]
    format: TextFormat

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes to read, compressed where the files are."""
        return sum(piece.bytes for piece in self.pieces)

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows. SourceUnreadable names the file and the byte of a record that cannot be read, and why."""
        return (located.batch for located in self.located(storage))

    def located(self, storage: Mapping[str, str], on_bad_row: OnBadRow | None = None) -> Iterator[LocatedBatch]:
        """The rows with their positions; records that cannot be read go to `on_bad_row`."""
        for piece in self.pieces:
            parser = self.format.parser(piece)
            for block in read_blocks(piece, storage, parser.last_end):
                yield from _rows(_Parsing(piece, parser, block), on_bad_row or _refuse)

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        pieces = [
            [p.file.path, p.file.size, p.file.modified_ms, p.start, p.end, p.compression, p.columns, p.is_cut]
            for p in self.pieces
        ]
        return {"kind": self.format.kind, "pieces": pieces, **self.format.to_document()}


def ranges_of(document: Mapping[str, Any]) -> tuple[TextRange, ...]:
    """The pieces that a text shard's document describes."""
    return tuple(
        TextRange(SourceFile(p[0], p[1], p[2]), p[3], p[4], p[5], tuple(p[6]), p[7]) for p in document["pieces"]
    )


def _refuse(row: BadRow) -> None:
    raise SourceUnreadable(
        f"source {row.position}: {row.reason}; mend it there, or say with --schema or --option how it is meant"
    )


@dataclass(frozen=True, slots=True)
class _Parsing:
    """A block on its way to rows."""

    piece: TextRange
    parser: RecordParser
    block: TextBlock

    @property
    def text(self) -> bytes:
        return self.block.text

    def position(self, span: Span) -> str:
        return f"{self.piece.file.path}, {self.piece.unit} {self.block.offset + span[0]}"

    def text_of(self, spans: Sequence[Span]) -> bytes:
        """These neighbouring records."""
        return self.text[spans[0][0] : spans[-1][1]]


def _rows(parsing: _Parsing, on_bad_row: OnBadRow) -> Iterator[LocatedBatch]:
    if parsing.block.is_tail and not parsing.parser.is_whole(parsing.text):
        begin = parsing.parser.records(parsing.text)[-1]
        raise SourceUnreadable(
            f"source {parsing.position(begin)}: this record is the file's last and a quoted field in it is never closed; "
            "the file is damaged, or its quotes are not what --option quote, escape and multiline=true say"
        )
    try:
        batch = parsing.parser.parse(parsing.text)
    except ValueError:
        yield from _rows_one_by_one(parsing, on_bad_row)
        return
    if batch.num_rows:
        yield LocatedBatch(batch, _positions(parsing))


def _rows_one_by_one(parsing: _Parsing, on_bad_row: OnBadRow) -> Iterator[LocatedBatch]:
    """The rows of a block with bad records in it, parted until each of those stands alone."""
    spans: list[Span] = []
    batches: list[pa.RecordBatch] = []

    def read(records: list[Span]) -> None:
        try:
            batches.append(_parsed(parsing, records))
            spans.extend(records)
        except ValueError:
            if len(records) == 1:
                on_bad_row(_bad_row(parsing, records[0]))
                return
            step = max(1, len(records) // _PARTS)
            for first in range(0, len(records), step):
                read(records[first : first + step])

    read(parsing.parser.records(parsing.text))
    if batches:
        table = pa.Table.from_batches(batches).combine_chunks()
        yield LocatedBatch(table.to_batches()[0], _positions(parsing, spans))


def _parsed(parsing: _Parsing, records: list[Span]) -> pa.RecordBatch:
    batch = parsing.parser.parse(parsing.text_of(records))
    if batch.num_rows != len(records):
        raise ValueError(f"{batch.num_rows} rows in {len(records)} records")
    return batch


def _bad_row(parsing: _Parsing, span: Span) -> BadRow:
    record = parsing.text_of([span])
    raw = record[:_LONGEST_RAW].decode("utf-8", "backslashreplace").rstrip("\r\n")
    return BadRow(parsing.position(span), parsing.parser.fault(record), raw)


def _positions(parsing: _Parsing, spans: list[Span] | None = None) -> Callable[[int], str]:
    """Records are told apart only when a position is asked for."""
    known: list[list[Span]] = [] if spans is None else [spans]

    def position(row: int) -> str:
        if not known:
            known.append(parsing.parser.records(parsing.text))
        return parsing.position(known[0][row])

    return position
