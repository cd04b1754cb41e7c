"""A Parquet file that was written elsewhere as a data file of a table, from its footer alone."""

from __future__ import annotations

import struct
from math import isnan

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.types import DoubleType, FloatType

from frazil.errors import BadInput, SchemaMismatch, SourceUnreadable
from frazil.snapshot.column_metrics import ColumnMetrics, LeafColumn, column_metrics, leaf_columns
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.file_columns import FileColumns, file_columns
from frazil.snapshot.inferred_partition import PartitionInference, column_bounds
from frazil.snapshot.name_mapping import name_mapping
from frazil.snapshot.parquet_footer import PlannedFile, read_footer

_KEPT_LAYOUTS = 64


class FileRegistrar:
    """Makes data files of Parquet files for one reserved snapshot. Files of the same layout are matched to it once."""

    def __init__(self, snapshot: DistributedSnapshot, io: FileIO) -> None:
        self._snapshot = snapshot
        self._io = io
        self._mapping = name_mapping(snapshot.table_properties)
        self._leaves = {leaf.field_id: leaf for leaf in leaf_columns(snapshot.schema, snapshot.table_properties)}
        self._layouts: list[tuple[pq.ParquetSchema, _Layout]] = []

    def data_file(self, file: PlannedFile) -> DataFile | None:
        """The file as the table's manifests list it; None for a file without rows, which has nothing to list.

        BadInput, with the file and the column, if it does not fit the table, if its partition cannot be told, or if it
        cannot be read.
        """
        footer = read_footer(file, self._io)
        layout = self._layout(file.path, footer)
        if not footer.num_rows:
            return None
        layout.check_nulls(file.path, footer)
        try:
            metrics = column_metrics(footer, layout.leaves)
        except (UnicodeDecodeError, struct.error) as error:
            raise SourceUnreadable(f"{file.path} has statistics that no reader can use: {error}") from error
        _drop_nans(metrics, layout.floats)
        return DataFile(
            file_path=file.path,
            record_count=footer.num_rows,
            file_size_in_bytes=file.size,
            partition=layout.partitions.partition(file.path, footer),
            spec_id=self._snapshot.spec.spec_id,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=metrics.split_offsets,
        )

    def _layout(self, path: str, footer: pq.FileMetaData) -> _Layout:
        schema = footer.schema
        for known, layout in self._layouts:
            if known.equals(schema):
                return layout
        try:
            layout = self._matched(schema, footer)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{path} does not fit table {self._snapshot.name}: {error}") from error
        self._layouts = [(schema, layout), *self._layouts[: _KEPT_LAYOUTS - 1]]
        return layout

    def _matched(self, schema: pq.ParquetSchema, footer: pq.FileMetaData) -> _Layout:
        try:
            arrow = schema.to_arrow_schema()
        except pa.ArrowException as error:
            raise SchemaMismatch(f"it has a column of a kind that is not known: {error}") from error
        columns = file_columns(arrow, self._snapshot.schema, self._mapping)
        if len(columns.field_ids) != footer.num_columns:
            raise SchemaMismatch(
                f"it has {footer.num_columns} columns, of which {len(columns.field_ids)} are understood"
            )
        identities = {field.source_id for field in self._snapshot.spec.fields}
        for field in columns.missing:
            if field.required and field.field_id not in identities:
                raise SchemaMismatch(f"column {field.name!r} ({field.field_type}) is required and missing in the file")
        return _Layout(self._snapshot, columns, tuple(self._leaves[field_id] for field_id in columns.field_ids))


class _Layout:
    """What all files of one Parquet schema share."""

    def __init__(self, snapshot: DistributedSnapshot, columns: FileColumns, leaves: tuple[LeafColumn, ...]) -> None:
        places = {field_id: place for place, field_id in enumerate(columns.field_ids)}
        self.leaves = leaves
        self.partitions = PartitionInference(snapshot.spec, snapshot.schema, places)
        self.floats = [
            (leaf.field_id, struct.Struct("<f" if isinstance(leaf.field_type, FloatType) else "<d"))
            for leaf in leaves
            if isinstance(leaf.field_type, FloatType | DoubleType)
        ]
        self._may_be_null = [(place, leaves[place].path) for place in columns.may_be_null]

    def check_nulls(self, path: str, footer: pq.FileMetaData) -> None:
        """Refuse nulls, and ignorance of them, where the table has none."""
        for place, column in self._may_be_null:
            bounds = column_bounds(footer, place)
            if bounds.nulls or not bounds.known:
                how = "holds nulls" if bounds.nulls else "may hold nulls, as it has no statistics"
                raise BadInput(f"{path} {how} in column {column!r}, which the table requires; ingest its other rows")


def _drop_nans(metrics: ColumnMetrics, floats: list[tuple[int, struct.Struct]]) -> None:
    """Some writers put NaN into their statistics, where the format wants none."""
    for field_id, codec in floats:
        for bounds in (metrics.lower_bounds, metrics.upper_bounds):
            found = bounds.get(field_id)
            if found is not None and isnan(codec.unpack(found)[0]):
                del bounds[field_id]
