"""Delete files: position deletes written as Parquet, and equality deletes described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from frazil.errors import BadInput, StorageFailed
from frazil.snapshot.data_file import DataFile, FileContent

FILE_PATH_ID = 2147483546
POSITION_ID = 2147483545

_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(FILE_PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION_ID)}),
    ]
)


def write_position_deletes(
    io: FileIO,
    path: str,
    positions: Mapping[str, Iterable[int]],
    *,
    partition: tuple[Any, ...] = (),
    spec_id: int = 0,
    compression: str = "zstd",
) -> DataFile:
    """Write the rows to delete (data file path to row positions) as one file, sorted, each row once.

    The data files must all be of the given partition. BadInput if there is nothing to delete or a position is
    negative; StorageFailed if the file cannot be written.
    """
    rows = sorted((file, position) for file, each in positions.items() for position in set(each))
    if not rows:
        raise BadInput(f"delete file {path}: no position is given, so there is nothing to delete")
    if any(position < 0 for _, position in rows):
        raise BadInput(f"delete file {path}: row positions count from 0, and one is negative")
    files, places = [file for file, _ in rows], [position for _, position in rows]
    table = pa.table([pa.array(files, pa.string()), pa.array(places, pa.int64())], schema=_SCHEMA)
    length, footer = _store(io, path, table, compression)
    return DataFile(
        file_path=path,
        record_count=len(rows),
        file_size_in_bytes=length,
        partition=partition,
        spec_id=spec_id,
        content=FileContent.POSITION_DELETES,
        column_sizes=_column_sizes(footer),
        value_counts={FILE_PATH_ID: len(rows), POSITION_ID: len(rows)},
        null_value_counts={FILE_PATH_ID: 0, POSITION_ID: 0},
        lower_bounds={FILE_PATH_ID: files[0].encode(), POSITION_ID: pack("<q", min(places))},
        upper_bounds={FILE_PATH_ID: files[-1].encode(), POSITION_ID: pack("<q", max(places))},
        referenced_data_file=files[0] if files[0] == files[-1] else None,
    )


def equality_delete(written: DataFile, equality_ids: Sequence[int]) -> DataFile:
    """Describe a written file of rows as deletes of all rows equal to one of them in the columns of these field ids."""
    if not equality_ids:
        raise BadInput(f"delete file {written.file_path}: name at least one column by which rows are equal")
    return replace(written, content=FileContent.EQUALITY_DELETES, equality_ids=tuple(equality_ids), first_row_id=None)


def _store(io: FileIO, path: str, table: pa.Table, compression: str) -> tuple[int, pq.FileMetaData]:
    footers: list[pq.FileMetaData] = []
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression=compression, metadata_collector=footers) as writer:
        writer.write_table(table)
    content = sink.getvalue()
    try:
        with io.new_output(path).create(overwrite=True) as stream:
            stream.write(content.to_pybytes())
    except OSError as error:
        raise StorageFailed(f"cannot write delete file {path}: {error}") from error
    return content.size, footers[0]


def _column_sizes(footer: pq.FileMetaData) -> dict[int, int]:
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return {
        field_id: sum(group.column(column).total_compressed_size for group in groups)
        for column, field_id in enumerate((FILE_PATH_ID, POSITION_ID))
    }
