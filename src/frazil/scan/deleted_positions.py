"""The rows of one data file that position delete files and deletion vectors delete."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds
from pyiceberg.io import FileIO
from pyroaring import BitMap64

from frazil.errors import StorageFailed
from frazil.scan.delete_index import DeleteFile
from frazil.snapshot.storage import file_system

Positions = npt.NDArray[np.int64]

_VECTOR_MAGIC = bytes((0xD1, 0xD3, 0x39, 0x64))
_NONE: Positions = np.empty(0, np.int64)


class DeletedPositions:
    """Row numbers of a data file, counted from 0, each once and in order."""

    def __init__(self, positions: Positions = _NONE) -> None:
        self._positions = positions

    def __bool__(self) -> bool:
        return bool(self._positions.size)

    @classmethod
    def read(cls, io: FileIO, data_file: str, deletes: Sequence[DeleteFile]) -> DeletedPositions:
        """All that these files delete of `data_file`. Equality deletes among them are passed over."""
        found = [_read(io, data_file, each) for each in deletes if not each.equality_ids]
        return cls(np.unique(np.concatenate(found))) if found else cls()

    def kept_of(self, first: int, rows: int) -> pa.Array | None:
        """Which of the `rows` rows from `first` on are left, as a mask; None for all of them."""
        begin, end = np.searchsorted(self._positions, (first, first + rows))
        if begin == end:
            return None
        kept = np.ones(rows, np.bool_)
        kept[self._positions[begin:end] - first] = False
        return pa.array(kept)


def _read(io: FileIO, data_file: str, delete: DeleteFile) -> Positions:
    try:
        return _vector(io, delete) if delete.offset is not None else _positions(io, data_file, delete)
    except (OSError, pa.ArrowException, ValueError, KeyError) as error:
        raise StorageFailed(f"delete file {delete.path} of data file {data_file} cannot be read: {error}") from error


def _positions(io: FileIO, data_file: str, delete: DeleteFile) -> Positions:
    if delete.format != "PARQUET":
        raise ValueError(f"it is of format {delete.format}, and only Parquet can be read")
    system, path = file_system(io, delete.path)
    fragment: Any = ds.ParquetFileFormat().make_fragment(path, system)
    rows = fragment.to_table(columns=["pos"], filter=ds.field("file_path") == data_file, use_threads=False)
    return np.asarray(rows["pos"].to_numpy(), np.int64)


def _vector(io: FileIO, delete: DeleteFile) -> Positions:
    """The blob: its length, the magic number, a 64-bit Roaring bitmap in the portable format, a checksum."""
    with io.new_input(delete.path).open() as stream:
        stream.seek(delete.offset or 0)
        blob = stream.read(delete.length)
    body, checksum = blob[4:-4], int.from_bytes(blob[-4:], "big")
    if int.from_bytes(blob[:4], "big") != len(body) or not body.startswith(_VECTOR_MAGIC):
        raise ValueError(f"there is no deletion vector of {delete.length} bytes at {delete.offset}")
    if zlib.crc32(body) != checksum:
        raise ValueError(f"the deletion vector at {delete.offset} does not fit its checksum")
    bitmap = BitMap64.deserialize(body[len(_VECTOR_MAGIC) :])
    return np.asarray(bitmap.to_array(), np.int64)
