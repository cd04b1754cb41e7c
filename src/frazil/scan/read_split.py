"""A reader's whole work: one split to Arrow batches, without its deleted rows and those that the filter rules out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.visitors import bind, extract_field_ids, translate_column_names
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import expression_to_pyarrow, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import UUIDType

from frazil.errors import SourceUnreadable, StorageFailed
from frazil.scan.deleted_positions import DeletedPositions
from frazil.scan.projection import Projection
from frazil.scan.row_check import EqualityDeletes, RowCheck
from frazil.scan.splits import Piece, Split
from frazil.scan.table_scan import TableScan
from frazil.snapshot.storage import file_io, file_system

_BATCH_ROWS = 65_536
_BATCH_BYTES = 16 * 1024 * 1024
_READ_AHEAD = 1024 * 1024


def read_split(scan: TableScan, split: Split, target: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the split, in the files' order, as `target` has them (PyIceberg's Arrow types if not told).

    Memory is bounded by the batches and by the deletes of one file. StorageFailed or SourceUnreadable name the file.
    """
    target = schema_to_pyarrow(scan.columns, include_field_ids=False) if target is None else target
    io = file_io(scan.storage, scan.location)
    equality = EqualityDeletes(scan, io)
    for piece in split.pieces:
        with _naming(piece.file.path, scan.table):
            yield from _read_piece(scan, io, piece, target, equality)


class OpenFile:
    """A Parquet file of the table with its schema by field ids."""

    def __init__(self, scan: TableScan, path: str, stream: Any) -> None:
        self.parquet = pq.ParquetFile(stream, pre_buffer=False, buffer_size=_READ_AHEAD)
        try:
            self.schema = pyarrow_to_schema(
                self.parquet.schema_arrow,
                scan.name_mapping,
                downcast_ns_timestamp_to_us=scan.format_version < 3,
                format_version=scan.format_version,  # type: ignore[arg-type]
            )
        except (ValueError, TypeError) as error:
            raise SourceUnreadable(f"the columns of {path} cannot be told apart: {error}") from error

    def groups(self, piece: Piece) -> list[int]:
        """The row groups that begin within the piece."""
        footer = self.parquet.metadata
        return [at for at in range(footer.num_row_groups) if piece.start <= _start_of(footer.row_group(at)) < piece.end]

    def batches(self, group: int, columns: list[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The row group's batches, each with the place of its first row in the file."""
        footer = self.parquet.metadata
        chunk = footer.row_group(group)
        first = sum(footer.row_group(at).num_rows for at in range(group))
        rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * chunk.num_rows // max(chunk.total_byte_size, 1)))
        for batch in self.parquet.iter_batches(rows, [group], columns, use_threads=False):
            yield first, batch
            first += batch.num_rows


def _read_piece(
    scan: TableScan, io: FileIO, piece: Piece, target: pa.Schema, equality: EqualityDeletes
) -> Iterator[pa.RecordBatch]:
    task = piece.file
    positions = DeletedPositions.read(io, task.path, task.deletes)
    system, path = file_system(io, task.path)
    with system.open_input_file(path) as stream:
        file = OpenFile(scan, task.path, stream)
        out = Projection(task.path, file.schema, scan.columns, target, dict(task.constants))
        check = RowCheck(scan, task, file.schema, equality.of(task))
        columns = list(dict.fromkeys([*out.columns, *check.columns]))
        for group in _worthwhile(scan, file, file.groups(piece), system, path):
            for first, rows in file.batches(group, columns):
                kept = positions.kept_of(first, rows.num_rows)
                rows = check.kept_of(rows if kept is None else rows.filter(kept))
                if rows.num_rows:
                    yield out.batch(rows)


def _worthwhile(scan: TableScan, file: OpenFile, groups: list[int], system: Any, path: str) -> list[int]:
    """Those of the row groups whose statistics do not rule out every row."""
    if isinstance(scan.pruning, AlwaysTrue) or len(groups) < 2:
        return groups
    bound = bind(scan.schema, scan.pruning, case_sensitive=True)
    if any(_differs(file.schema, scan.schema, each) for each in extract_field_ids(bound)):
        return groups
    by_file_names = bind(file.schema, translate_column_names(bound, file.schema), case_sensitive=True)
    fragment: Any = ds.ParquetFileFormat().make_fragment(path, system, row_groups=groups)
    left = fragment.subset(expression_to_pyarrow(by_file_names, file.schema), schema=fragment.physical_schema)
    return [each.id for each in left.row_groups]


def _differs(file: Schema, wanted: Schema, field_id: int) -> bool:
    """Whether a column's statistics in the file do not compare with the filter's values, which are of the wanted type.

    Arrow compares none of a uuid's.
    """
    kind = wanted.find_type(field_id)
    return field_id not in file.field_ids or file.find_type(field_id) != kind or isinstance(kind, UUIDType)


def _start_of(group: pq.RowGroupMetaData) -> int:
    """Where the row group's first column begins, as split offsets count."""
    column = group.column(0)
    pages = [column.data_page_offset]
    if column.has_dictionary_page and column.dictionary_page_offset:
        pages.append(column.dictionary_page_offset)
    return int(min(pages))


@contextmanager
def _naming(path: str, table: str) -> Iterator[None]:
    """Say which file it was that could not be read."""
    try:
        yield
    except FileNotFoundError as error:
        raise StorageFailed(
            f"{path} of table {table} is not there; if its snapshot was expired meanwhile, load the table again"
        ) from error
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageFailed(f"{path} of table {table} cannot be read: {error}") from error
