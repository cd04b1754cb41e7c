"""Delete files of every kind, published to a table."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import Table
from pyroaring import BitMap64

import frazil
from frazil import DataFile, FileContent, Landed
from frazil.snapshot.data_file_sink import DataFileSink
from frazil.snapshot.delete_file import equality_delete, write_position_deletes


def data_files(table: Table) -> list[str]:
    """The live data files, in the order of their names."""
    return sorted(task.file.file_path for task in table.scan().plan_files())


def delete_positions(
    table: Table, positions: Mapping[str, Sequence[int]], *, partition: tuple[Any, ...] = (), spec_id: int = 0
) -> Landed:
    """One file of position deletes, as one snapshot."""
    path = f"{table.location()}/data/deletes-{uuid.uuid4()}.parquet"
    file = write_position_deletes(table.io, path, positions, partition=partition, spec_id=spec_id)
    return _publish(table, [file])


def delete_by_vector(table: Table, positions: Mapping[str, Sequence[int]]) -> Landed:
    """One Puffin file with a deletion vector for each data file, as one snapshot."""
    path = f"{table.location()}/data/vectors-{uuid.uuid4()}.puffin"
    content, blobs = bytearray(b"PFA1"), []
    files = []
    for data_file, rows in positions.items():
        blob = vector_blob(rows)
        blobs.append(_blob_entry(data_file, len(content), len(blob), len(rows)))
        files.append((data_file, len(rows), len(content), len(blob)))
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    content += b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    with table.io.new_output(path).create() as stream:
        stream.write(bytes(content))
    return _publish(
        table,
        [
            DataFile(
                file_path=path,
                record_count=count,
                file_size_in_bytes=len(content),
                content=FileContent.POSITION_DELETES,
                file_format="PUFFIN",
                referenced_data_file=data_file,
                content_offset=offset,
                content_size_in_bytes=length,
            )
            for data_file, count, offset, length in files
        ],
    )


def vector_blob(rows: Sequence[int]) -> bytes:
    """A `deletion-vector-v1` as the Puffin specification lays it out."""
    body = bytes((0xD1, 0xD3, 0x39, 0x64)) + BitMap64(rows).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def delete_equal(table: Table, rows: pa.Table, *columns: str) -> Landed:
    """All earlier rows that equal one of these in these columns, deleted as one snapshot."""
    snapshot = frazil.begin_snapshot(table)
    schema = table.schema().select(*columns)
    sink = DataFileSink(
        schema=schema,
        spec=UNPARTITIONED_PARTITION_SPEC,
        location=table.location(),
        properties={},
        io=table.io,
        file_name=lambda: f"equality-{uuid.uuid4()}.parquet",
    )
    sink.write(rows.select(list(columns)))
    ids = [schema.find_field(column).field_id for column in columns]
    files = [equality_delete(file, ids) for file in sink.close()]
    return frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "deletes", files, io=table.io)])


def _blob_entry(data_file: str, offset: int, length: int, count: int) -> dict[str, Any]:
    return {
        "type": "deletion-vector-v1",
        "fields": [2147483645],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": offset,
        "length": length,
        "properties": {"referenced-data-file": data_file, "cardinality": str(count)},
    }


def _publish(table: Table, files: Sequence[DataFile]) -> Landed:
    snapshot = frazil.begin_snapshot(table)
    return frazil.publish_snapshot(table, snapshot, [frazil.report_files(snapshot, "deletes", files, io=table.io)])
