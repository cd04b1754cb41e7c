"""Every format is cut and read on an object store as it is on a disk."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import ipc, orc

from frazil.sources.open import open_source

if TYPE_CHECKING:
    from services.seaweedfs import SeaweedFS

ROWS = pa.table({"id": range(30_000), "t": [f'row "{number}"' for number in range(30_000)]})
AVRO = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "t", "type": "string"}]}


def as_csv(rows: pa.Table) -> bytes:
    return ("id,t\n" + "".join(f'{row["id"]},"row ""{row["id"]}"""\n' for row in rows.to_pylist())).encode()


def as_json(rows: pa.Table) -> bytes:
    return "".join(f'{{"id": {row["id"]}, "t": "row \\"{row["id"]}\\""}}\n' for row in rows.to_pylist()).encode()


def as_avro(rows: pa.Table) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(AVRO), rows.to_pylist(), codec="null")
    return stream.getvalue()


def as_arrow(rows: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    with ipc.new_file(stream, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=4000)
    return bytes(stream.getvalue())


def as_orc(rows: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    orc.write_table(rows, stream)
    return bytes(stream.getvalue())


FORMATS: dict[str, tuple[Callable[[pa.Table], bytes], int]] = {
    "a.csv": (as_csv, 3),
    "a.csv.gz": (lambda rows: gzip.compress(as_csv(rows)), 1),
    "a.jsonl": (as_json, 3),
    "a.avro": (as_avro, 3),
    "a.arrow": (as_arrow, 3),
    "a.orc": (as_orc, 1),
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_object_is_cut_and_read_like_a_file(seaweedfs: SeaweedFS, name: str) -> None:
    write, shards = FORMATS[name]
    path = f"{seaweedfs.bucket}/formats/{name}"
    with seaweedfs.filesystem().open_output_stream(path, compression=None) as stream:
        stream.write(write(ROWS))
    storage: dict[str, Any] = seaweedfs.file_io_properties()
    found = open_source([f"s3://{path}"], storage).shards(3)
    assert len(found) == shards
    rows = [row for shard in found for batch in shard.batches(storage) for row in batch.to_pylist()]
    assert rows == ROWS.to_pylist()
