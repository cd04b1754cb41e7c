"""What is asked of each row's values before it is given: that no equality delete hits it, and that the filter is true."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from frazil.errors import StorageFailed
from frazil.scan.delete_index import DeleteFile
from frazil.scan.equality import DeletedKeys
from frazil.scan.plan import FileTask
from frazil.scan.projection import Projection
from frazil.scan.table_scan import TableScan
from frazil.scan.value_filter import ValueFilter
from frazil.snapshot.storage import file_system

_Keys = list[tuple[tuple[int, ...], DeletedKeys]]


class EqualityDeletes:
    """The equality deletes of one file after the other, read once where neighbours have the same."""

    def __init__(self, scan: TableScan, io: FileIO) -> None:
        self._scan = scan
        self._io = io
        self._last: tuple[tuple[DeleteFile, ...], _Keys] = ((), [])

    def of(self, task: FileTask) -> _Keys:
        """The keys deleted of the file, those of the same columns together, each with its columns' field ids."""
        deletes = tuple(delete for delete in task.deletes if delete.equality_ids)
        if deletes != self._last[0]:
            self._last = (deletes, _deleted_keys(self._scan, self._io, deletes))
        return self._last[1]


class RowCheck:
    """The checks of one file. They see the table's own types, whatever the reader wants."""

    def __init__(self, scan: TableScan, task: FileTask, file: Schema, keys: _Keys) -> None:
        self._keys = keys
        unfiltered = isinstance(scan.row_filter, AlwaysTrue)
        self._filter = None if unfiltered else ValueFilter(scan.schema, scan.row_filter)
        needed = {field_id for ids, _ in self._keys for field_id in ids}
        wanted = _fields(scan.schema, needed | (self._filter.field_ids if self._filter else set()))
        self._projection = Projection(task.path, file, wanted, _arrow(wanted), dict(task.constants))

    @property
    def columns(self) -> list[str]:
        """What must be read of the file for it."""
        return self._projection.columns

    def kept_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are left."""
        if self._filter is None and not self._keys:
            return rows
        seen = self._projection.batch(rows)
        for _, keys in self._keys:
            kept = keys.kept_of(seen)
            if kept is not None:
                seen, rows = seen.filter(kept), rows.filter(kept)
        if self._filter is None or not rows.num_rows:
            return rows
        left = self._filter.places_of(seen)
        return rows if len(left) == rows.num_rows else rows.take(left)


def _deleted_keys(scan: TableScan, io: FileIO, deletes: Iterable[DeleteFile]) -> _Keys:
    files: dict[tuple[int, ...], list[DeleteFile]] = defaultdict(list)
    for delete in deletes:
        files[tuple(sorted(delete.equality_ids))].append(delete)
    found = []
    for ids, members in files.items():
        wanted = _key_columns(scan, ids, members[0])
        keys = pa.concat_tables([_keys_of(scan, io, member, wanted) for member in members])
        if keys.num_rows:
            found.append((ids, DeletedKeys(keys.column_names, keys)))
    return found


def _keys_of(scan: TableScan, io: FileIO, delete: DeleteFile, wanted: Schema) -> pa.Table:
    if delete.format != "PARQUET":
        raise StorageFailed(f"delete file {delete.path} is of format {delete.format}, and only Parquet can be read")
    system, path = file_system(io, delete.path)
    try:
        with system.open_input_file(path) as stream:
            rows = pq.ParquetFile(stream).read(use_threads=False)
            file = pyarrow_to_schema(rows.schema, scan.name_mapping, format_version=scan.format_version)  # type: ignore[arg-type]
    except (OSError, pa.ArrowException, ValueError) as error:
        raise StorageFailed(f"delete file {delete.path} cannot be read: {error}") from error
    projection = Projection(delete.path, file, wanted, _arrow(wanted), {})
    batches = [projection.batch(batch) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, _arrow(wanted))


def _key_columns(scan: TableScan, ids: tuple[int, ...], delete: DeleteFile) -> Schema:
    """The columns by which rows are equal. They must be plain columns that the table still has."""
    there = {column.field_id: column for column in scan.schema.fields if column.field_type.is_primitive}
    if missing := [field_id for field_id in ids if field_id not in there]:
        raise StorageFailed(
            f"delete file {delete.path} of table {scan.table} deletes by fields {missing}, which are nested or no longer "
            "in the table, and cannot be applied; rewrite the table's files with the engine that wrote it"
        )
    return Schema(*(there[field_id] for field_id in ids))


def _fields(schema: Schema, field_ids: set[int]) -> Schema:
    """The columns that hold these fields."""
    return Schema(*(column for column in schema.fields if _holds(column, field_ids)))


def _holds(column: NestedField, field_ids: set[int]) -> bool:
    return bool(Schema(column).field_ids & field_ids)


def _arrow(wanted: Schema) -> pa.Schema:
    """PyIceberg's types, but plain ones in place of extension types, which Arrow's kernels do not take."""
    arrow = schema_to_pyarrow(wanted, include_field_ids=False)
    return pa.schema(
        [
            field.with_type(field.type.storage_type) if isinstance(field.type, pa.BaseExtensionType) else field
            for field in arrow
        ]
    )
