"""Arrow batches in, data files out: partitioned, rolled at the target size, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import load_location_provider

from frazil.errors import SchemaMismatch
from frazil.snapshot.alignment import BatchAlignment, ColumnMatch, batches_of
from frazil.snapshot.column_metrics import leaf_columns
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.dictionary_choice import dictionary_columns
from frazil.snapshot.parquet_file import ParquetFile
from frazil.snapshot.parquet_properties import ParquetProperties
from frazil.snapshot.partition import PartitionRows, PartitionSplitter
from frazil.snapshot.partition_path import PartitionPath
from frazil.snapshot.storage import delete_files

OnBadRows = Callable[[pa.RecordBatch, Mapping[int, str], int], None]

_MIB = 1024 * 1024
_PIECE_ROWS = 131_072
_PIECE_BYTES = 32 * _MIB
_ENOUGH_ROWS = 65_536
_ENOUGH_BYTES = 16 * _MIB
_ARRAY_OVERHEAD = 600
_SMALL_PAGE = 256 * 1024
_FIRST_RATIO = 2.0
_SMALL_SHARE = 0.25
_SHARED_DICTIONARY = 0.25
_KEPT_SHARE = 0.125


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What may be held: Arrow bytes waiting for their row group, over all partitions, and files open at once.

    A stream to an object store holds a part of some 10 MB until it is uploaded, so there both are lower.
    """

    buffered_bytes: int = 160 * _MIB
    open_files: int = 128

    @classmethod
    def of_location(cls, location: str) -> MemoryLimits:
        """The limits under which a process stays below 600 MB when it writes to `location`."""
        return cls() if urlparse(location).scheme in ("", "file") else cls(buffered_bytes=96 * _MIB, open_files=32)


@dataclass(slots=True)
class _Partition:
    values: tuple[Any, ...]
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    file: ParquetFile | None = None

    def add(self, batch: pa.RecordBatch, size: int) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += size

    def take(self) -> pa.Table:
        rows = pa.Table.from_batches(self.batches).unify_dictionaries()
        self.batches, self.rows, self.bytes = [], 0, 0
        return rows

    def copy_out(self) -> int:
        """Move the waiting rows to memory of their own; returns its size."""
        rows = self.take().combine_chunks()
        for batch in rows.to_batches():
            own = batch.take(pa.array(range(batch.num_rows), pa.int64()))
            self.add(own, _size(own))
        return self.bytes


class DataFileSink:
    """The data files of one attempt at a shard.

    `file_name` gives a new name at every call, extension included. Give `write` batches, tables or readers in any
    number; `close` completes the files and returns them; `abort` deletes every file, closed or open. SchemaMismatch
    if a batch does not fit the table, StorageFailed if the storage refuses: then `abort` is what is left to do.

    With `on_bad_rows` rows that do not fit are no error. They are left out, and it is given the batch they are in, their
    numbers in it with why each does not fit, and how many rows of the same `write` came before that batch.
    """

    def __init__(
        self,
        *,
        schema: Schema,
        spec: PartitionSpec,
        location: str,
        properties: Mapping[str, str],
        io: FileIO,
        file_name: Callable[[], str],
        match: ColumnMatch | None = None,
        limits: MemoryLimits | None = None,
        on_bad_rows: OnBadRows | None = None,
    ) -> None:
        self._schema = schema
        self._spec = spec
        self._io = io
        self._file_name = file_name
        self._locations = load_location_provider(location, dict(properties))
        self._properties = _parquet_properties(properties, spec)
        self._leaves = leaf_columns(schema, properties)
        self._alignment = BatchAlignment(schema, match, narrow=on_bad_rows is not None)
        self._on_bad_rows = on_bad_rows
        self._splitter = PartitionSplitter(schema, spec) if spec.fields else None
        self._limits = limits or MemoryLimits.of_location(self._locations.data_path)
        self._gathered = _Partition(())
        self._partitions: dict[tuple[Any, ...], _Partition] = {}
        self._open: dict[tuple[Any, ...], _Partition] = {}
        self._held = self._waiting = 0
        self._dictionaries: list[str] | None = None
        self._encoded_from = self._encoded_to = 0
        self._files: list[DataFile] = []

    def write(self, data: Any) -> int:
        """Take all rows of an Arrow batch, table or reader; returns how many. Some may wait in memory until `close`."""
        rows = 0
        for batch in batches_of(data):
            for piece in _pieces(batch):
                self._write_piece(self._fitting(piece, rows))
                rows += piece.num_rows
        return rows

    def close(self) -> list[DataFile]:
        """Complete all files and return them; none for no rows."""
        self._split_gathered()
        for partition in list(self._partitions.values()):
            self._flush(partition)
            self._finish(partition)
        return list(self._files)

    def abort(self) -> None:
        """Delete every file that was written."""
        for partition in list(self._open.values()):
            if partition.file is not None:
                partition.file.abort()
        self._open.clear()
        self._partitions.clear()
        self._gathered = _Partition(())
        delete_files(self._io, [file.file_path for file in self._files])
        self._files.clear()

    def _fitting(self, piece: pa.RecordBatch, before: int) -> pa.RecordBatch:
        """The rows of a batch that fit, aligned. Only where one does not is any row looked at by itself."""
        try:
            return self._alignment.align(piece)
        except SchemaMismatch:
            if self._on_bad_rows is None:
                raise
            bad = self._alignment.bad_rows(piece)
            self._on_bad_rows(piece, bad, before)
            good = np.ones(piece.num_rows, bool)
            good[list(bad)] = False
            return self._alignment.align(piece.filter(pa.array(good)))

    def _write_piece(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        size = _size(batch)
        if self._splitter is None:
            self._hold([PartitionRows((), batch)], size, batch.num_rows)
            return
        self._gathered.add(batch, size)
        if self._gathered.rows >= _ENOUGH_ROWS or self._gathered.bytes >= _ENOUGH_BYTES:
            self._split_gathered()

    def _split_gathered(self) -> None:
        if self._splitter is None or not self._gathered.rows:
            return
        for batch in self._gathered.take().combine_chunks().to_batches():
            self._hold(self._splitter.split(batch), _size(batch), batch.num_rows)

    def _hold(self, parts: Iterable[PartitionRows], size: int, rows: int) -> None:
        """Keep rows until their row group is full. `size` and `rows` are of all parts together: they share memory."""
        for part in parts:
            partition = self._partitions.setdefault(part.partition, _Partition(part.partition))
            if partition.rows + part.rows.num_rows > self._properties.row_group_rows:
                self._flush(partition)
            partition.add(part.rows, size * part.rows.num_rows // rows)
            self._waiting += part.rows.num_rows
            if partition.bytes >= self._row_group_bytes(partition):
                self._flush(partition)
        self._held += size
        if self._held > self._limits.buffered_bytes:
            self._release()

    def _release(self) -> None:
        """Let go of all that is held: memory is shared among partitions, so it is free only when all are written.

        Partitions far smaller than the others are copied out and go on waiting, or they would get a row group of a few
        rows at every turn.
        """
        waiting = sorted((each for each in self._partitions.values() if each.rows), key=lambda each: each.bytes)
        small = sum(each.bytes for each in waiting) / max(len(waiting), 1) * _SMALL_SHARE
        kept = 0
        for partition in waiting:
            if partition.bytes < small and kept + partition.bytes <= self._limits.buffered_bytes * _KEPT_SHARE:
                kept += partition.copy_out()
            else:
                self._flush(partition)
        self._held = kept

    def _row_group_bytes(self, partition: _Partition) -> float:
        """Arrow bytes that make a full row group, or all that still fits into the file."""
        written = partition.file.bytes_written if partition.file else 0
        ratio = self._encoded_from / self._encoded_to if self._encoded_to else _FIRST_RATIO
        room = (self._properties.target_file_bytes - written) * ratio
        return min(self._properties.row_group_bytes, max(room, 1.0))

    def _flush(self, partition: _Partition) -> None:
        if not partition.rows:
            return
        row_bytes = partition.bytes / partition.rows
        rows = partition.take()
        self._waiting -= rows.num_rows
        if not self._waiting:
            self._held = 0
        written = 0
        while written < rows.num_rows:
            fitting = max(1, round(self._row_group_bytes(partition) / row_bytes))
            # What is a little more than a row group is one all the same: a tail of few rows serves nobody.
            fitting = rows.num_rows if rows.num_rows - written <= 1.5 * fitting else fitting
            group = rows.slice(written, min(fitting, self._properties.row_group_rows))
            self._write_row_group(partition, group, int(row_bytes * group.num_rows))
            written += group.num_rows

    def _write_row_group(self, partition: _Partition, group: pa.Table, size: int) -> None:
        file = partition.file or self._open_file(partition, group)
        before = file.bytes_written
        file.write_row_group(group)
        self._encoded_from += size
        self._encoded_to += file.bytes_written - before
        if file.bytes_written >= self._properties.target_file_bytes:
            self._finish(partition)

    def _open_file(self, partition: _Partition, rows: pa.Table) -> ParquetFile:
        while len(self._open) >= self._limits.open_files:
            self._finish(max(self._open.values(), key=lambda opened: opened.file.bytes_written if opened.file else 0))
        if self._dictionaries is None:
            self._dictionaries = dictionary_columns(rows, self._leaves, self._properties.dictionary_bytes)
        path = self._locations.new_data_location(self._file_name(), self._partition_key(partition.values))
        partition.file = ParquetFile(
            self._io, path, self._alignment.layout, self._leaves, self._properties, self._dictionaries
        )
        self._open[partition.values] = partition
        return partition.file

    def _partition_key(self, values: tuple[Any, ...]) -> PartitionKey | None:
        # What providers call of a PyIceberg key is all that our path has.
        return cast("PartitionKey", PartitionPath(values, self._spec, self._schema)) if self._spec.fields else None

    def _finish(self, partition: _Partition) -> None:
        if partition.file is None:
            return
        self._files.append(partition.file.close(partition.values, self._spec.spec_id))
        partition.file = None
        del self._open[partition.values]


def _parquet_properties(properties: Mapping[str, str], spec: PartitionSpec) -> ParquetProperties:
    """An open file keeps the last page it wrote: many open files must have small ones, unless the table says otherwise."""
    small = {"write.parquet.page-size-bytes": str(_SMALL_PAGE)} if spec.fields else {}
    return ParquetProperties.of_table({**small, **properties})


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices of bounded size: what is made of a slice on its way is bounded with it."""
    if not batch.num_rows:
        return
    rows = max(1, min(_PIECE_ROWS, batch.num_rows * _PIECE_BYTES // max(batch.nbytes, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _size(batch: pa.RecordBatch) -> int:
    """The memory an aligned batch takes."""
    return sum(_ARRAY_OVERHEAD + _column_size(column) for column in batch.columns)


def _column_size(column: pa.Array) -> int:
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    # A small dictionary is shared by many batches; one that has nearly a value for each row is the batch's own.
    shared = len(column.dictionary) < _SHARED_DICTIONARY * len(column)
    return int(column.indices.nbytes + (0 if shared else column.dictionary.nbytes))
