"""The end of a stream's batch, on the driver: published once, or nothing of it left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyiceberg.table import Table

from frazil.errors import BatchAlreadyLanded, FrazilError, OutcomeUnknown
from frazil.snapshot.batch_progress import NumberedBatch, commits_of_query
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import Ended, now_ms, release
from frazil.snapshot.table import CatalogTable


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """A batch whose tasks have all ended well.

    What earlier runs of the query had reserved when this batch landed is swept then, and not before: from then on no
    commit of theirs can land, neither one that is still under way (this one has moved the branch from under it) nor a
    later one (the batch is there). A batch that finds itself landed already has moved nothing, so it sweeps its own
    files alone: others may be of a driver that is ahead of this one.
    """

    table: Table
    snapshot: DistributedSnapshot
    batch: NumberedBatch

    def publish(self, reports: Sequence[Report], *, replace: bool, abort_on_conflict: bool) -> bool:
        """Make the rows visible, and with them the batch's number. False if they were already.

        Anything else is an error, after which the query stops, and does this batch again when it is started again.
        """
        try:
            publish_snapshot(
                self.table,
                self.snapshot,
                reports,
                overwrite=replace,
                conflict="abort" if abort_on_conflict else "rebase",
                batch=self.batch,
            )
        except BatchAlreadyLanded:
            self.leave_nothing()
            return False
        except FrazilError as error:
            if error.landed is False:
                self.leave_nothing()
            raise
        except Exception as error:
            raise OutcomeUnknown(
                f"publishing batch {self.batch.batch_id} to table {self.snapshot.name} broke off "
                f"({type(error).__name__}: {error}); nothing was deleted. Start the query again: it will find out"
            ) from error
        return True

    def give_back(self) -> None:
        """There is no row to publish and no file: end the reservation as if it had never been."""
        mark = Ended(self.snapshot.snapshot_id, self.snapshot.commit_uuid, now_ms())
        release(CatalogTable(self.table), mark, self.snapshot.table_uuid, leave_mark=False)

    def leave_nothing(self) -> None:
        """Remove every file of this batch. It must be known that it was not, and will not be, published."""
        sweep(self.table, self.snapshot.commit_uuid, force=True)

    def sweep_leftovers(self, *, of_losers: bool) -> None:
        """After it has landed: remove what earlier runs left, and what spare attempts of this batch's tasks did."""
        spare = set(commits_of_query(self.table.metadata, self.batch.query_id))
        if of_losers:
            spare.add(self.snapshot.commit_uuid)
        for commit_uuid in sorted(spare):
            sweep(self.table, commit_uuid, force=True)
