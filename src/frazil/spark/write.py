"""A batch write through Spark's data source: Arrow batches in each task, one commit on the driver.

Spark makes the writer on the driver, sends it to the tasks, and commits or aborts with a copy of it in yet another
process on the driver, so all that these need travels in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.table import Table
from pyspark.sql.datasource import DataSourceArrowWriter

from frazil.errors import BadInput, CommitRefused, FrazilError, OutcomeUnknown
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import begin_snapshot, cancel
from frazil.snapshot.warehouse import drop_unused, find_table, open_catalog
from frazil.spark.options import WriteOptions
from frazil.spark.target import taken_back
from frazil.spark.write_target import find_target, prepare_target
from frazil.spark.write_task import ShardWritten, has_mark, write_partition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED_FOR = timedelta(days=7)


def batch_writer(options: WriteOptions, rows: StructType) -> DataSourceArrowWriter:
    """The writer of a batch of this schema, its table there and its snapshot reserved."""
    if options.if_exists != "append" and find_target(options) is not None:
        if options.if_exists == "ignore":
            return NothingToWrite()
        raise BadInput(f"table {options.table} exists already, and if-exists is error; choose another table")
    target = prepare_target(options, rows)
    with taken_back(target.catalog, target.table, target.created):
        snapshot = begin_snapshot(target.table, options.summary, options.branch, RESERVED_FOR)
    # The table's own storage properties may hold credentials that the catalog lent for this table alone.
    return BatchWriter(options, snapshot.with_storage(target.table.io.properties), target.created)


@dataclass(frozen=True, slots=True)
class NothingToWrite(DataSourceArrowWriter):  # type: ignore[misc]
    """For a table that exists and is to stay as it is."""

    def write(self, iterator: Iterator[Any]) -> ShardWritten:  # noqa: ARG002  Spark's signature
        """Take no row."""
        return ShardWritten(b"", retried=False)

    def commit(self, messages: Sequence[Any]) -> None:
        """Change nothing."""

    def abort(self, messages: Sequence[Any]) -> None:
        """Change nothing."""


@dataclass(frozen=True, slots=True)
class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One write of one DataFrame. `created`: the table was made for it, and goes again if it fails."""

    options: WriteOptions
    snapshot: DistributedSnapshot
    created: bool

    def write(self, iterator: Iterator[Any]) -> ShardWritten:
        """In a task: the rows of one partition."""
        return write_partition(self.snapshot, iterator)

    def commit(self, messages: Sequence[ShardWritten]) -> None:
        """On the driver: publish what the tasks wrote, each partition's rows from the one attempt that Spark accepted."""
        table = self._table()
        reports = [Report.from_protobuf(message.report) for message in messages]
        if self.options.overwrite is None and not any(report.manifests for report in reports):
            cancel(table, self.snapshot)
        else:
            self._publish(table, reports)
        if any(message.retried for message in messages) or has_mark(self.snapshot):
            sweep(table, self.snapshot.commit_uuid, force=True)

    def abort(self, messages: Sequence[ShardWritten | None]) -> None:
        """On the driver: leave nothing behind, where it is proven that nothing was published.

        Spark aborts after a commit that failed too, and then every task has its message. What became of that commit
        only the commit itself can tell, and it has removed what could be removed.
        """
        if all(message is not None for message in messages):
            return
        self._leave_nothing(self._table())

    def _publish(self, table: Table, reports: Sequence[Report]) -> None:
        try:
            publish_snapshot(
                table,
                self.snapshot,
                reports,
                overwrite=self.options.overwrite is not None,
                conflict="abort" if self.options.conflict == "abort" else "rebase",
            )
        except FrazilError as error:
            if error.landed is False:
                self._leave_nothing(table)
            raise
        except Exception as error:
            raise OutcomeUnknown(
                f"publishing to table {self.snapshot.name} broke off ({type(error).__name__}: {error}); nothing was "
                f"deleted. Look for snapshot {self.snapshot.snapshot_id} in the table before you write again"
            ) from error

    def _leave_nothing(self, table: Table) -> None:
        sweep(table, self.snapshot.commit_uuid, force=True)
        if self.created:
            drop_unused(open_catalog(self.options.catalog), table)

    def _table(self) -> Table:
        table = find_table(open_catalog(self.options.catalog), self.snapshot.table)
        if table is None:
            raise CommitRefused(f"table {self.snapshot.name} is not there any more; nothing was published")
        return table
