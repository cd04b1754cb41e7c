"""Parquet files, cut into shards by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema

from frazil.errors import SourceUnreadable
from frazil.sources.files import SourceFile, check_unchanged, find_files, source_system
from frazil.sources.merged_schema import merged_schema, plain_field
from frazil.sources.open import SourceRequest
from frazil.sources.parquet_read import read_row_groups
from frazil.sources.pieces import grouped, shard_name
from frazil.sources.source import LocatedBatch, OnBadRow, numbered

SUFFIXES = (".parquet", ".parq", ".pq")
_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of one file."""

    path: str
    size: int
    modified_ms: int
    numbers: tuple[int, ...]
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ParquetShard:
    """Row groups of one or more files."""

    name: str
    pieces: tuple[RowGroups, ...]

    @property
    def rows(self) -> int:
        """Rows in it, as the footers say."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def bytes(self) -> int:
        """Compressed bytes in it, as the footers say."""
        return sum(piece.bytes for piece in self.pieces)

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows, row group by row group; a file that changed since it was planned is refused."""
        return (located.batch for located in self.located(storage))

    def located(
        self,
        storage: Mapping[str, str],
        on_bad_row: OnBadRow | None = None,  # noqa: ARG002  no row is bad by itself
    ) -> Iterator[LocatedBatch]:
        """The same with positions: rows are counted from the piece's first row group on."""
        for piece in self.pieces:
            system, path = source_system(piece.path, storage)
            check_unchanged(system, path, SourceFile(piece.path, piece.size, piece.modified_ms))
            try:
                batches = read_row_groups(system, path, piece.numbers)
                yield from numbered(batches, f"{piece.path}, from row group {piece.numbers[0]}")
            except (OSError, pa.ArrowException) as error:
                raise SourceUnreadable(
                    f"source {piece.path} is damaged or not readable Parquet: {_first_line(error)}"
                ) from error

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "kind": "parquet",
            "pieces": [[p.path, p.size, p.modified_ms, p.numbers, p.rows, p.bytes] for p in self.pieces],
        }

    @classmethod
    def from_document(cls, name: str, document: Mapping[str, Any]) -> ParquetShard:
        """The value that `to_document` gave."""
        return cls(name, tuple(RowGroups(p[0], p[1], p[2], tuple(p[3]), p[4], p[5]) for p in document["pieces"]))


@dataclass(frozen=True, slots=True)
class Footer:
    """What a Parquet file says about itself."""

    file: SourceFile
    schema: pa.Schema
    row_groups: tuple[RowGroups, ...]


def open_source(request: SourceRequest) -> ParquetSource:
    """The kind's way in; see `frazil.sources.open`."""
    return ParquetSource(request.patterns, request.storage, request.files)


def shard_from_document(name: str, document: Mapping[str, Any]) -> ParquetShard:
    """The kind's way back from a job's log."""
    return ParquetShard.from_document(name, document)


class ParquetSource:
    """Parquet files, folders and globs. Every footer is read at the start, so that bad input shows before any write."""

    def __init__(
        self, patterns: Sequence[str], storage: Mapping[str, str], files: Sequence[SourceFile] | None = None
    ) -> None:
        files = find_files(patterns, storage, SUFFIXES) if files is None else files
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            self.footers = list(pool.map(lambda file: _read_footer(file, storage), files))
        self.description = ", ".join(patterns)

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(group.rows for footer in self.footers for group in footer.row_groups)

    @property
    def bytes(self) -> int:
        """Compressed bytes in all files."""
        return sum(group.bytes for footer in self.footers for group in footer.row_groups)

    def for_table(self, schema: Schema) -> ParquetSource:  # noqa: ARG002  the files have types of their own
        """The source itself."""
        return self

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the first file that has it."""
        distinct: list[tuple[str, pa.Schema]] = []
        for footer in self.footers:
            if not any(footer.schema.equals(schema) for _, schema in distinct):
                distinct.append((footer.file.path, footer.schema))
        return distinct

    def schema(self) -> pa.Schema:
        """One schema that all files have: columns in order of appearance, optional where a file lacks them."""
        return merged_schema(self.schemas())

    def shards(self, count: int) -> list[ParquetShard]:
        """About `count` shards of like size, each of neighbours; fewer where there are fewer row groups."""
        groups = [group for footer in self.footers for group in footer.row_groups if group.rows]
        shards = grouped(groups, lambda group: group.bytes, count)
        return [_shard(number, members) for number, members in enumerate(shards)]


def _shard(number: int, groups: Iterable[RowGroups]) -> ParquetShard:
    """Join neighbouring row groups of a file into one piece."""
    pieces: list[RowGroups] = []
    for group in groups:
        last = pieces[-1] if pieces else None
        if last is not None and last.path == group.path:
            pieces[-1] = RowGroups(
                last.path,
                last.size,
                last.modified_ms,
                last.numbers + group.numbers,
                last.rows + group.rows,
                last.bytes + group.bytes,
            )
        else:
            pieces.append(group)
    return ParquetShard(shard_name(number), tuple(pieces))


def _read_footer(file: SourceFile, storage: Mapping[str, str]) -> Footer:
    system, path = source_system(file.path, storage)
    try:
        metadata = pq.read_metadata(path, filesystem=system)
        schema = pa.schema([plain_field(field) for field in metadata.schema.to_arrow_schema()])
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(f"source {file.path} is not a readable Parquet file: {_first_line(error)}") from error
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = sum(group.column(column).total_compressed_size for column in range(group.num_columns))
        groups.append(RowGroups(file.path, file.size, file.modified_ms, (number,), group.num_rows, size))
    return Footer(file, schema, tuple(groups))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
