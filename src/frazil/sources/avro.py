"""Avro files, cut into shards at the markers between their blocks."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.errors import SourceUnreadable
from frazil.sources.avro_container import Block, Header, cut_points, read_blocks, read_header
from frazil.sources.avro_decoder import RecordDecoder
from frazil.sources.avro_types import record_of
from frazil.sources.files import SourceFile, check_unchanged, source_system
from frazil.sources.merged_schema import merged_schema
from frazil.sources.open import SourceRequest
from frazil.sources.pieces import grouped, shard_name
from frazil.sources.source import LocatedBatch, OnBadRow
from frazil.sources.text_files import each_at_once

_BATCH_BYTES = 4 * 1024 * 1024
_SMALLEST_RANGE = 64 * 1024
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    OverflowError,
    struct.error,
    pa.ArrowException,
)


@dataclass(frozen=True, slots=True)
class AvroRange:
    """The blocks of one file from byte `start` up to `end`."""

    file: SourceFile
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """Bytes to read."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class AvroShard:
    """Ranges of one or more Avro files."""

    name: str
    pieces: tuple[AvroRange, ...]

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes to read, compressed where the blocks are."""
        return sum(piece.bytes for piece in self.pieces)

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows; a file that changed since it was planned is refused, and so is a block that is damaged."""
        return (located.batch for located in self.located(storage))

    def located(
        self,
        storage: Mapping[str, str],
        on_bad_row: OnBadRow | None = None,  # noqa: ARG002  no row is bad by itself
    ) -> Iterator[LocatedBatch]:
        """The same with positions: the byte at which the row's block begins, and the row's number in it."""
        for piece in self.pieces:
            system, path = source_system(piece.file.path, storage)
            check_unchanged(system, path, piece.file)
            with _reading(piece.file):
                yield from _rows(piece, system, path)

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        pieces = [[p.file.path, p.file.size, p.file.modified_ms, p.start, p.end] for p in self.pieces]
        return {"kind": "avro", "pieces": pieces}


class AvroSource:
    """Avro files. Every header is read at the start, so that bad input shows before any write."""

    def __init__(self, request: SourceRequest) -> None:
        self.description = request.description
        self._storage = request.storage
        headers = each_at_once(self._header, request.files)
        self._files = list(zip(request.files, headers, strict=True))
        self._schemas = [(file.path, _schema(header, file.path)) for file, header in self._files]

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file, _ in self._files)

    def for_table(self, schema: Schema) -> AvroSource:  # noqa: ARG002  the files have types of their own
        """The source itself."""
        return self

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the first file that has it."""
        distinct: list[tuple[str, pa.Schema]] = []
        for path, schema in self._schemas:
            if not any(schema.equals(known) for _, known in distinct):
                distinct.append((path, schema))
        return distinct

    def schema(self) -> pa.Schema:
        """One schema that all files have: columns in order of appearance, optional where a file lacks them."""
        return merged_schema(self.schemas())

    def shards(self, count: int) -> list[AvroShard]:
        """About `count` shards of like size."""
        step = max(_SMALLEST_RANGE, -(-self.bytes // max(1, count)))
        ranges = each_at_once(lambda entry: self._ranges(*entry, step), self._files)
        groups = grouped([piece for pieces in ranges for piece in pieces], lambda piece: piece.bytes, count)
        return [AvroShard(shard_name(number), tuple(group)) for number, group in enumerate(groups)]

    def _header(self, file: SourceFile) -> Header:
        system, path = source_system(file.path, self._storage)
        with _reading(file), system.open_input_file(path) as stream:
            return read_header(stream)

    def _ranges(self, file: SourceFile, header: Header, step: int) -> list[AvroRange]:
        parts = round((file.size - header.size) / step)
        targets = [header.size + (file.size - header.size) * part // parts for part in range(1, parts)]
        cuts: list[int] = []
        if targets:
            system, path = source_system(file.path, self._storage)
            with _reading(file), system.open_input_file(path) as stream:
                cuts = cut_points(stream, header, file.size, targets)
        borders = [header.size, *cuts, file.size]
        return [AvroRange(file, start, end) for start, end in pairwise(borders) if start < end]


def open_source(request: SourceRequest) -> AvroSource:
    """The kind's way in; see `frazil.sources.open`."""
    return AvroSource(request)


def shard_from_document(name: str, document: Mapping[str, Any]) -> AvroShard:
    """The kind's way back from a job's log."""
    return AvroShard(name, tuple(AvroRange(SourceFile(*p[:3]), p[3], p[4]) for p in document["pieces"]))


@contextmanager
def _reading(file: SourceFile) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise SourceUnreadable(f"source {file.path} is damaged or not readable Avro: {reason}") from error


def _schema(header: Header, path: str) -> pa.Schema:
    try:
        return RecordDecoder(record_of(header.schema, path)).schema
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SourceUnreadable(f"source {path} has a schema that cannot be read: {error!r}") from error


def _rows(piece: AvroRange, system: Any, path: str) -> Iterator[LocatedBatch]:
    with system.open_input_file(path) as stream:
        header = read_header(stream)
        decoder = RecordDecoder(record_of(header.schema, piece.file.path))
        blocks: list[Block] = []
        size = 0
        for block in read_blocks(stream, header, piece.start, piece.end):
            blocks.append(block)
            size += len(block.data)
            if size >= _BATCH_BYTES:
                yield from _decoded(decoder, blocks, piece.file.path)
                blocks, size = [], 0
        yield from _decoded(decoder, blocks, piece.file.path)


def _decoded(decoder: RecordDecoder, blocks: Sequence[Block], path: str) -> Iterator[LocatedBatch]:
    """The rows of these blocks, of a large one a part at a time: a row takes much more room while it is decoded."""
    data, records = b"".join(block.data for block in blocks), sum(block.records for block in blocks)
    at_once = max(1, records * _BATCH_BYTES // max(1, len(data)))
    end = 0
    for first in range(0, records, at_once):
        batch, end = decoder.decode(data, end, min(at_once, records - first))
        yield LocatedBatch(batch, _positions(blocks, path, first))
    if end != len(data):
        raise ValueError(f"the blocks from byte {blocks[0].offset} on hold more bytes than records")


def _positions(blocks: Sequence[Block], path: str, first: int) -> Callable[[int], str]:
    def position(row: int) -> str:
        row += first
        for block in blocks:
            if row < block.records:
                return f"{path}, block at byte {block.offset}, row {row + 1}"
            row -= block.records
        raise IndexError(row)

    return position
