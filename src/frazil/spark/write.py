"""A batch write through Spark's data source: Arrow batches in each task, one commit on the driver.

Spark makes the writer on the driver, sends it to the tasks, and commits or aborts with a copy of it in yet another
process on the driver, so all that these need travels in it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.table import Table
from pyspark.sql.datasource import DataSourceArrowWriter

from frazil.errors import BadInput, CommitRefused, FrazilError, OutcomeUnknown
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.overwrite_scope import MatchingRows, WholeTable
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import Ended, begin_snapshot, now_ms, release
from frazil.snapshot.row_filter import RowFilter, check_rows_match
from frazil.snapshot.table import CatalogTable
from frazil.snapshot.warehouse import drop_unused, find_table, open_catalog
from frazil.spark.options import WriteOptions
from frazil.spark.target import taken_back
from frazil.spark.write_rejects import FrameRejects
from frazil.spark.write_target import WriteTarget, find_target, prepare_target
from frazil.spark.write_task import ShardWritten, has_mark, write_partition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

RESERVED_FOR = timedelta(days=7)
# A Python worker whose task has failed or is being killed may close a file or two yet. Spark waits two seconds for one
# that it kills (spark.python.task.killTimeout).
_LOOKS = 10
_SECONDS_BETWEEN_LOOKS = 1.0
_QUIET_LOOKS = 2


def batch_writer(options: WriteOptions, rows: StructType) -> DataSourceArrowWriter:
    """The writer of a batch of this schema, its table there and its snapshot reserved."""
    if options.if_exists != "append" and find_target(options) is not None:
        if options.if_exists == "ignore":
            return NothingToWrite()
        raise BadInput(f"table {options.table} exists already, and if-exists is error; choose another table")
    refuse_what_cannot_be_done(options)
    target = prepare_target(options, rows)
    with taken_back(target.catalog, target.table, target.created):
        if isinstance(options.scope, MatchingRows):
            RowFilter(options.scope.filter, target.table.schema())  # refuses what does not go with the table
        snapshot = begin_snapshot(target.table, options.summary, options.branch, RESERVED_FOR)
        rejects = _rejects(options, target, snapshot)
    # The table's own storage properties may hold credentials that the catalog lent for this table alone.
    return BatchWriter(options, snapshot.with_storage(target.table.io.properties), target.created, rejects)


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
    rejects: FrameRejects | None = None

    def write(self, iterator: Iterator[Any]) -> ShardWritten:
        """In a task: the rows of one partition."""
        rejects = self.rejects.beside(self.snapshot) if self.rejects else None
        return write_partition(self.snapshot, self._checked(iterator), rejects)

    def commit(self, messages: Sequence[ShardWritten]) -> None:
        """On the driver: publish what the tasks wrote, each partition's rows from the one attempt that Spark accepted."""
        table = self._table()
        reports = [Report.from_protobuf(message.report) for message in messages]
        rejected = any(report.rejected_rows for report in reports)
        if any(report.manifests for report in reports) or rejected or self._removes_rows_by_itself:
            self._publish(table, reports)
        else:
            self._give_back(table)
        self._sweep_after_losers(table, messages, reports)

    def abort(self, messages: Sequence[ShardWritten | None]) -> None:
        """On the driver: leave nothing behind, where it is proven that nothing was published.

        Spark aborts after a commit that failed too, and then every task has its message. What became of that commit
        only the commit itself can tell, and it has removed what could be removed.
        """
        if any(message is None for message in messages):
            self._leave_nothing(self._table(), still_writing=True)

    @property
    def _removes_rows_by_itself(self) -> bool:
        """Whether there is something to publish though no row was written."""
        return isinstance(self.options.scope, WholeTable | MatchingRows)

    def _sweep_after_losers(self, table: Table, messages: Sequence[ShardWritten], reports: Sequence[Report]) -> None:
        """Remove what attempts left that Spark did not accept. What landed has landed, whatever becomes of this."""
        try:
            if any(message.retried for message in messages) or has_mark(self.snapshot):
                sweep(table, self.snapshot.commit_uuid, force=True)
            if self.rejects is not None:
                self.rejects.close(reports)
        except Exception as error:  # noqa: BLE001
            warnings.warn(
                f"snapshot {self.snapshot.snapshot_id} of table {self.snapshot.name} landed, but spare files could not be "
                f"removed ({error}): frazil sweep {self.snapshot.name} --commit {self.snapshot.commit_uuid} --force",
                stacklevel=2,
            )

    def _publish(self, table: Table, reports: Sequence[Report]) -> None:
        try:
            if self.rejects is not None:
                self.rejects.publish(reports, self.snapshot)
            publish_snapshot(
                table,
                self.snapshot,
                reports,
                overwrite=self.options.scope or False,
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

    def _give_back(self, table: Table) -> None:
        """No row and no file came: end the reservation as if it had never been."""
        mark = Ended(self.snapshot.snapshot_id, self.snapshot.commit_uuid, now_ms())
        release(CatalogTable(table), mark, self.snapshot.table_uuid, leave_mark=False)

    def _checked(self, batches: Iterator[Any]) -> Iterator[Any]:
        """For an overwrite by a filter: the same batches, each of whose rows must be among those that it replaces."""
        if not isinstance(self.options.scope, MatchingRows):
            return batches
        rows = RowFilter(self.options.scope.filter, self.snapshot.schema)
        return (check_rows_match(rows, batch) for batch in batches)

    def _leave_nothing(self, table: Table, *, still_writing: bool = False) -> None:
        _sweep(table, self.snapshot.commit_uuid, _LOOKS if still_writing else 1)
        if self.rejects is not None:
            self.rejects.undo()
        if self.created:
            drop_unused(open_catalog(self.options.catalog), table)

    def _table(self) -> Table:
        table = find_table(open_catalog(self.options.catalog), self.snapshot.table)
        if table is None:
            raise CommitRefused(f"table {self.snapshot.name} is not there any more; nothing was published")
        return table


def _rejects(options: WriteOptions, target: WriteTarget, snapshot: DistributedSnapshot) -> FrameRejects | None:
    if options.on_bad_row != "reject":
        return None
    try:
        return FrameRejects.begin(options.catalog, target.catalog, snapshot.table, RESERVED_FOR)
    except BaseException:
        sweep(target.table, snapshot.commit_uuid, force=True)
        raise


def _sweep(table: Table, commit_uuid: str, looks: int) -> None:
    """Remove a commit's files, again and again until none has come for a while."""
    quiet = 0
    for look in range(looks):
        if look:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        found = sweep(table, commit_uuid, force=True)
        quiet = 0 if found.files else quiet + 1
        if quiet > _QUIET_LOOKS:
            return


def refuse_what_cannot_be_done(options: WriteOptions) -> None:
    """Options that are understood, but not followed here."""
    if options.distribution != "none":
        raise BadInput(
            f"distribution={options.distribution} cannot be had by an option, for Spark lets no Python data source ask for "
            f"a shuffle; write frazil.spark.distribute(df, {options.table!r}, {options.distribution!r}) instead of df"
        )
