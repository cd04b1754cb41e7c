"""Files that come in numbered parts, each readable by itself (stripes, record batches), cut into shards of whole parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.errors import SourceUnreadable
from frazil.sources.files import SourceFile, check_unchanged, source_system
from frazil.sources.merged_schema import merged_schema, plain_field
from frazil.sources.open import SourceRequest
from frazil.sources.pieces import grouped, shard_name
from frazil.sources.source import LocatedBatch, OnBadRow, numbered
from frazil.sources.text_files import each_at_once

_BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file says about itself; `rows` is 0 if it does not say."""

    schema: pa.Schema
    parts: int
    rows: int


class PartsFormat(Protocol):
    """A format of files in parts."""

    @property
    def kind(self) -> str:
        """Its name among the kinds of sources."""

    @property
    def part(self) -> str:
        """What a part is called."""

    def contents(self, system: Any, path: str) -> Contents:
        """Look into a file."""

    def read(self, system: Any, path: str, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The parts from `first` up to `last`, each with its number."""


@dataclass(frozen=True, slots=True)
class FileParts:
    """The parts of one file from `first` up to `last`, with their share of its bytes."""

    file: SourceFile
    first: int
    last: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PartsShard:
    """Parts of one or more files."""

    name: str
    pieces: tuple[FileParts, ...]
    format: PartsFormat

    @property
    def rows(self) -> int:
        """Not known before reading."""
        return 0

    @property
    def bytes(self) -> int:
        """Bytes to read, as far as parts are of like size."""
        return sum(piece.bytes for piece in self.pieces)

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows, part by part; a file that changed since it was planned is refused."""
        return (located.batch for located in self.located(storage))

    def located(
        self,
        storage: Mapping[str, str],
        on_bad_row: OnBadRow | None = None,  # noqa: ARG002  no row is bad by itself
    ) -> Iterator[LocatedBatch]:
        """The same with positions: rows are counted within their part, from 1 on."""
        for piece in self.pieces:
            system, path = source_system(piece.file.path, storage)
            check_unchanged(system, path, piece.file)
            try:
                for number, batch in self.format.read(system, path, piece.first, piece.last):
                    yield from _sliced(batch, f"{piece.file.path}, {self.format.part} {number + 1}")
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(piece.file, self.format, error) from error

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        pieces = [[p.file.path, p.file.size, p.file.modified_ms, p.first, p.last, p.bytes] for p in self.pieces]
        return {"kind": self.format.kind, "pieces": pieces}


class PartsSource:
    """Files in parts. Each is looked into at the start, so that bad input shows before any write."""

    def __init__(self, request: SourceRequest, form: PartsFormat) -> None:
        self.description = request.description
        self._format = form
        self._storage = request.storage
        self._files = list(zip(request.files, each_at_once(self._look_into, request.files), strict=True))

    @property
    def rows(self) -> int:
        """Rows in all files, as far as they say."""
        return sum(contents.rows for _, contents in self._files)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file, _ in self._files)

    def for_table(self, schema: Schema) -> PartsSource:  # noqa: ARG002  the files have types of their own
        """The source itself."""
        return self

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the first file that has it."""
        distinct: list[tuple[str, pa.Schema]] = []
        for file, contents in self._files:
            schema = pa.schema([plain_field(field) for field in contents.schema])
            if not any(schema.equals(known) for _, known in distinct):
                distinct.append((file.path, schema))
        return distinct

    def schema(self) -> pa.Schema:
        """One schema that all files have: columns in order of appearance, optional where a file lacks them."""
        return merged_schema(self.schemas())

    def shards(self, count: int) -> list[PartsShard]:
        """About `count` shards of like size."""
        pieces = [piece for file, contents in self._files for piece in _single_parts(file, contents.parts)]
        groups = grouped(pieces, lambda piece: piece.bytes, count)
        return [PartsShard(shard_name(number), _joined(group), self._format) for number, group in enumerate(groups)]

    def _look_into(self, file: SourceFile) -> Contents:
        system, path = source_system(file.path, self._storage)
        try:
            return self._format.contents(system, path)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(file, self._format, error) from error


def parts_of(document: Mapping[str, Any]) -> tuple[FileParts, ...]:
    """The pieces that a shard's document describes."""
    return tuple(FileParts(SourceFile(p[0], p[1], p[2]), p[3], p[4], p[5]) for p in document["pieces"])


def _single_parts(file: SourceFile, parts: int) -> list[FileParts]:
    return [
        FileParts(file, number, number + 1, file.size * (number + 1) // parts - file.size * number // parts)
        for number in range(parts)
    ]


def _joined(pieces: Sequence[FileParts]) -> tuple[FileParts, ...]:
    """Neighbouring parts of a file as one piece."""
    joined: list[FileParts] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and last.file == piece.file and last.last == piece.first:
            joined[-1] = FileParts(last.file, last.first, piece.last, last.bytes + piece.bytes)
        else:
            joined.append(piece)
    return tuple(joined)


def _sliced(batch: pa.RecordBatch, place: str) -> Iterator[LocatedBatch]:
    slices = (batch.slice(start, _BATCH_ROWS) for start in range(0, batch.num_rows, _BATCH_ROWS))
    return numbered(slices, place)


def _unreadable(file: SourceFile, form: PartsFormat, error: Exception) -> SourceUnreadable:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return SourceUnreadable(f"source {file.path} is damaged or not readable {form.kind.upper()}: {reason}")
