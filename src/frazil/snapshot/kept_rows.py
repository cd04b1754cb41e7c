"""Copy on write: the rows that an overwrite leaves alone, moved out of the files that it replaces in part."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask, Table

from frazil.errors import BadInput
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.report import Report
from frazil.snapshot.row_filter import RowFilter
from frazil.snapshot.write_shard import write_shard

KEPT_SHARD = "overwrite-kept"
_MOST_ATTEMPTS = 2**31


def keep_rows(table: Table, snapshot: DistributedSnapshot, rows: RowFilter, files: Sequence[DataFile]) -> Report:
    """Write again the rows of these files that `rows` does not take, as a shard of the snapshot. Deletes are applied.

    File by file and batch by batch, so that memory is bounded, but here and in one process: a filter along the
    partitions of a table leaves little or nothing to move.
    """
    attempt = secrets.randbelow(_MOST_ATTEMPTS)  # two coordinators must never write the same file
    kept = _kept(table, rows, _tasks(table, snapshot, rows, {file.file_path for file in files}))
    return write_shard(snapshot, KEPT_SHARD, kept, attempt=attempt, io=table.io)


def _kept(table: Table, rows: RowFilter, tasks: Sequence[FileScanTask]) -> Iterator[pa.RecordBatch]:
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue(), case_sensitive=True)
    for task in tasks:
        for batch in scan.to_record_batches([task]):
            kept = batch.filter(pc.invert(rows.takes(batch)))
            if kept.num_rows:
                yield kept


def _tasks(table: Table, snapshot: DistributedSnapshot, rows: RowFilter, wanted: set[str]) -> list[FileScanTask]:
    """How PyIceberg reads these files, with the deletes that apply to each."""
    # Not planned by the filter: PyIceberg would ask it of the delete files too, and leave out those that matter.
    scan = table.scan(snapshot_id=snapshot.parent_snapshot_id)
    try:
        tasks = [task for task in scan.plan_files() if task.file.file_path in wanted]
    except ValueError as error:
        raise BadInput(
            f"the filter {rows.text!r} takes some rows but not all of {len(wanted)} files of table {snapshot.name}, and "
            f"these cannot be rewritten ({error}); choose a filter along the table's partitions"
        ) from error
    if missing := wanted - {task.file.file_path for task in tasks}:
        raise BadInput(
            f"{len(missing)} files of table {snapshot.name} that the filter {rows.text!r} takes in part cannot be read "
            f"again, such as {min(missing)}; choose a filter along the table's partitions"
        )
    return tasks
