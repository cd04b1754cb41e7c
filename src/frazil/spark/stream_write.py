"""A stream's batches through Spark's data source, each one snapshot, exactly once.

For every batch Spark makes a writer on the driver, sends it to the tasks, and then makes another, in a process of its
own, to commit or abort: what the second needs comes with the tasks' messages. A third that only commits reserves nothing,
so the reservation is made where the two ways part: as the writer is pickled for the tasks.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.table import Table
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from frazil.errors import CommitRefused
from frazil.snapshot.batch_progress import BATCH_PROPERTY_PREFIX, NumberedBatch, uuids_of_query
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import begin_snapshot, cancel
from frazil.snapshot.storage import delete_files
from frazil.snapshot.warehouse import find_table, open_catalog, table_identifier
from frazil.spark.options import WriteOptions
from frazil.spark.stream_commit import BatchCommit
from frazil.spark.stream_query import batch_of_task, query_of_checkpoint
from frazil.spark.write import refuse_what_cannot_be_done
from frazil.spark.write_target import prepare_target
from frazil.spark.write_task import ShardWritten, has_mark, write_partition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED_FOR = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class BatchPart(WriterCommitMessage):  # type: ignore[misc]
    """What a task sends to the driver. `written` is None where the batch was in the table before it began."""

    snapshot: str
    batch: NumberedBatch
    written: ShardWritten | None


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """One batch on its way to the tasks, or the end of one."""

    def __init__(self, options: WriteOptions, rows: StructType, checkpoint: str | None) -> None:
        refuse_what_cannot_be_done(options)
        self._options = options
        self._rows = rows
        self._checkpoint = checkpoint
        self._snapshot: DistributedSnapshot | None = None
        self._landed: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        if self._snapshot is None:
            self._reserve()
        return self.__dict__

    def write(self, iterator: Iterator[Any]) -> BatchPart:
        """In a task: the rows of one partition of the batch, unless the batch is in the table already."""
        assert self._snapshot is not None, "a task has a writer that was pickled"
        batch = batch_of_task()
        last = self._landed.get(batch.key, "")
        if last.isdigit() and int(last) >= batch.batch_id:
            for _ in iterator:
                pass
            written = None
        else:
            written = write_partition(self._snapshot, iterator)
        return BatchPart(self._snapshot.with_storage({}).to_json(), batch, written)

    def commit(self, messages: Sequence[BatchPart], batchId: int) -> None:  # noqa: ARG002, N803  Spark's names
        """On the driver: publish the batch. One that brought no row, or is in the table already, changes nothing."""
        if not messages:
            return
        table = self._table()
        snapshot = DistributedSnapshot.from_json(messages[0].snapshot).with_storage(table.io.properties)
        ending = BatchCommit(table, snapshot, messages[0].batch)
        written = [message.written for message in messages if message.written is not None]
        losers = any(each.retried for each in written) or has_mark(snapshot)
        if len(written) < len(messages):
            ending.leave_nothing()
            return
        reports = [Report.from_protobuf(each.report) for each in written]
        if any(report.manifests for report in reports) or self._replaces:
            aborts = self._options.conflict == "abort"
            if ending.publish(reports, replace=self._replaces, abort_on_conflict=aborts):
                ending.sweep_leftovers(of_losers=losers)
        elif losers:
            ending.leave_nothing()
        else:
            ending.give_back()

    def abort(self, messages: Sequence[BatchPart | None], batchId: int) -> None:  # noqa: ARG002, N803  Spark's names
        """On the driver: leave no file of a batch whose tasks failed.

        Spark aborts after a commit that failed too, with every task's message there: that has cleaned up what it could.
        A task that failed has removed its own files, so without a message of any other nothing is left. Tasks that
        are still being killed may write on: the reservation's mark stays, by which the next batch sweeps theirs.
        """
        done = [message for message in messages if message is not None]
        if not done or len(done) == len(messages):
            return
        table, snapshot = self._table(), DistributedSnapshot.from_json(done[0].snapshot)
        cancel(table, snapshot)
        found = sweep(table, snapshot.commit_uuid, force=True, dry_run=True)
        delete_files(table.io, [file.path for file in found.files])

    @property
    def _replaces(self) -> bool:
        return self._options.overwrite is not None

    def _reserve(self) -> None:
        """Reserve the batch's snapshot, under a commit uuid by which the query's later runs find it."""
        table = prepare_target(self._options, self._rows).table
        storage = dict(table.io.properties)
        query_id = query_of_checkpoint(self._checkpoint, storage)
        new_uuid = uuids_of_query(query_id) if query_id else uuid.uuid4
        options = self._options
        snapshot = begin_snapshot(table, options.summary, options.branch, RESERVED_FOR, new_uuid=new_uuid)
        self._landed = {k: v for k, v in table.metadata.properties.items() if k.startswith(BATCH_PROPERTY_PREFIX)}
        self._snapshot = snapshot.with_storage(storage)

    def _table(self) -> Table:
        table = find_table(open_catalog(self._options.catalog), table_identifier(self._options.table))
        if table is None:
            raise CommitRefused(f"table {self._options.table} is not there any more; nothing was published")
        return table
