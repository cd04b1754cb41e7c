"""Parquet files, cut into shards by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import SchemaMismatch, SourceUnreadable
from frazil.sources.files import SourceFile, find_files, source_system
from frazil.sources.parquet_read import read_row_groups

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
        for piece in self.pieces:
            system, path = source_system(piece.path, storage)
            _check_unchanged(system, path, piece)
            try:
                yield from read_row_groups(system, path, piece.numbers)
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


class ParquetSource:
    """Parquet files, folders and globs. Every footer is read at the start, so that bad input shows before any write."""

    def __init__(self, patterns: Sequence[str], storage: Mapping[str, str]) -> None:
        files = find_files(patterns, storage, SUFFIXES)
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

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the first file that has it."""
        distinct: list[tuple[str, pa.Schema]] = []
        for footer in self.footers:
            if not any(footer.schema.equals(schema) for _, schema in distinct):
                distinct.append((footer.file.path, footer.schema))
        return distinct

    def schema(self) -> pa.Schema:
        """One schema that all files have: columns in order of appearance, optional where a file lacks them."""
        merged: dict[str, tuple[pa.Field, str]] = {}
        distinct = self.schemas()
        for path, schema in distinct:
            for field in schema:
                if field.name not in merged:
                    merged[field.name] = (field, path)
                else:
                    merged[field.name] = (_wider(merged[field.name], field, path), path)
        everywhere = set.intersection(*(set(schema.names) for _, schema in distinct))
        return pa.schema(
            [field if name in everywhere else field.with_nullable(True) for name, (field, _) in merged.items()]
        )

    def shards(self, count: int) -> list[ParquetShard]:
        """About `count` shards of like size; fewer where there are fewer row groups."""
        groups = [group for footer in self.footers for group in footer.row_groups if group.rows]
        total = sum(group.bytes for group in groups)
        shards: list[ParquetShard] = []
        filled = 0
        opened: list[RowGroups] = []
        for group in groups:
            opened.append(group)
            filled += group.bytes
            if filled * count >= total * (len(shards) + 1):
                shards.append(_shard(len(shards), opened))
                opened = []
        if opened:
            shards.append(_shard(len(shards), opened))
        return shards


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
    return ParquetShard(f"{number:05d}", tuple(pieces))


def _read_footer(file: SourceFile, storage: Mapping[str, str]) -> Footer:
    system, path = source_system(file.path, storage)
    try:
        metadata = pq.read_metadata(path, filesystem=system)
        schema = metadata.schema.to_arrow_schema().remove_metadata()
    except (OSError, pa.ArrowException) as error:
        raise SourceUnreadable(f"source {file.path} is not a readable Parquet file: {_first_line(error)}") from error
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = sum(group.column(column).total_compressed_size for column in range(group.num_columns))
        groups.append(RowGroups(file.path, file.size, file.modified_ms, (number,), group.num_rows, size))
    return Footer(file, schema, tuple(groups))


def _wider(known: tuple[pa.Field, str], field: pa.Field, path: str) -> pa.Field:
    """The field that holds both, where Iceberg's own promotions reach from one to the other."""
    before, first = known
    nullable = before.nullable or field.nullable
    if before.type.equals(field.type):
        return before.with_nullable(nullable)
    for narrow, wide in ((before, field), (field, before)):
        if _promotes(narrow.type, wide.type):
            return wide.with_nullable(nullable)
    raise SchemaMismatch(
        f"the sources clash on column {field.name!r}: it is {before.type} in {first} and {field.type} in {path}; "
        "cast one of them, or ingest them into different tables"
    )


def _promotes(narrow: pa.DataType, wide: pa.DataType) -> bool:
    if pa.types.is_integer(narrow) and pa.types.is_integer(wide):
        return bool(narrow.bit_width <= wide.bit_width) and not pa.types.is_unsigned_integer(wide)
    if pa.types.is_floating(narrow) and pa.types.is_floating(wide):
        return bool(narrow.bit_width <= wide.bit_width)
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return bool(narrow.scale == wide.scale and narrow.precision <= wide.precision)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(is_text(narrow) for is_text in texts) and any(is_text(wide) for is_text in texts):
        return True
    return bool(pa.types.is_timestamp(narrow) and pa.types.is_timestamp(wide) and narrow.tz == wide.tz)


def _check_unchanged(system: Any, path: str, piece: RowGroups) -> None:
    info = system.get_file_info(path)
    if info.size != piece.size or (info.mtime_ns or 0) // 1_000_000 != piece.modified_ms:
        raise SourceUnreadable(
            f"source {piece.path} changed (or vanished) after this job was planned; start a new job, as rows from before "
            "and after must not mix"
        )


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
