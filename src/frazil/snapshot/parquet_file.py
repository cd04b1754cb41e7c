"""One open Parquet data file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.types import DoubleType, FloatType

from frazil.errors import StorageFailed
from frazil.snapshot.column_metrics import LeafColumn, column_metrics
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.parquet_properties import ParquetProperties
from frazil.steps import step


class ParquetFile:
    """Rows go in as row groups; `close` returns the file as a DataFile, without reading it again.

    `schema` is the Arrow schema of every row group, with field ids; `leaves` are its Parquet columns in order.
    `dictionary_columns` are the paths of the Parquet columns worth a dictionary. After any error, and after `abort`,
    nothing may be called but `abort`. StorageFailed if the storage refuses.
    """

    def __init__(
        self,
        io: FileIO,
        path: str,
        schema: pa.Schema,
        leaves: tuple[LeafColumn, ...],
        properties: ParquetProperties,
        dictionary_columns: Sequence[str],
    ) -> None:
        self.path = path
        self.rows = 0
        self._io = io
        self._leaves = leaves
        self._floats = [
            leaf
            for leaf in leaves
            if leaf.steps and leaf.mode.counts and isinstance(leaf.field_type, FloatType | DoubleType)
        ]
        self._nans: Counter[int] = Counter({leaf.field_id: 0 for leaf in self._floats})
        self._footers: list[pq.FileMetaData] = []
        with _storage(path):
            self._stream: Any = io.new_output(path).create(overwrite=True)
        try:
            self._writer = pq.ParquetWriter(
                self._stream,
                schema,
                metadata_collector=self._footers,
                use_dictionary=list(dictionary_columns),
                **properties.writer_arguments(),
            )
        except BaseException:
            self._stream.close()
            io.delete(path)
            raise
        step("write:file-opened")

    def write_row_group(self, rows: pa.Table) -> None:
        """Write all of `rows` as one row group. None of it is kept in memory afterwards."""
        if not rows.num_rows:
            return
        with _storage(self.path):
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows
        for leaf in self._floats:
            self._nans[leaf.field_id] += _count_nans(rows, leaf.steps)

    @property
    def bytes_written(self) -> int:
        """How large the file is so far."""
        return int(self._stream.tell())

    def close(self, partition: tuple[Any, ...] = (), spec_id: int = 0) -> DataFile:
        """Complete the file."""
        with _storage(self.path):
            self._writer.close()
            size = self.bytes_written
            self._stream.close()
        step("write:file-closed")
        metrics = column_metrics(self._footers[0], self._leaves)
        return DataFile(
            file_path=self.path,
            record_count=self.rows,
            file_size_in_bytes=size,
            partition=partition,
            spec_id=spec_id,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts=dict(self._nans),
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
        )

    def abort(self) -> None:
        """Give the file up: whatever of it is stored is deleted."""
        # A stream that cannot be closed has failed already, and whoever aborts knows; what counts is the deletion.
        # (PyArrow raises RuntimeError where a footer was never made.)
        with suppress(OSError, pa.ArrowException, RuntimeError):
            self._writer.close()
        with suppress(OSError, pa.ArrowException):
            self._stream.close()
        with _storage(self.path), suppress(FileNotFoundError):
            self._io.delete(self.path)


def _count_nans(rows: pa.Table, steps: tuple[str, ...]) -> int:
    column = rows.column(steps[0])
    if len(steps) > 1:
        column = pc.struct_field(column, list(steps[1:]))
    return pc.sum(pc.is_nan(column)).as_py() or 0


@contextmanager
def _storage(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"data file {path} cannot be written: {error}") from error
