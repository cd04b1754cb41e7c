"""The rows that a job rejects, beside its own: reserved with them, published just before them, undone with them.

Where the catalog commits several tables at one instant, both land so. Elsewhere the rejected rows land first, that none is
ever missing beside rows that are visible; if it is then proven that the others did not land, they are taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.errors import AlreadyConsumed, CommitRefused, TooManyRejected
from frazil.jobs.job import Job
from frazil.settings import RejectLimit
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.publish_snapshot import Publisher, publisher_of
from frazil.snapshot.rejected_rows import RejectTo
from frazil.snapshot.rejected_table import open_rejected, publish_rejected, take_back
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import begin_snapshot, renew
from frazil.snapshot.warehouse import drop_unused, find_table
from frazil.spark.target import taken_back


@dataclass(slots=True)
class Rejects:
    """The table of rejected rows of one run, with the job's reservation on it. `created`: this job made the table."""

    catalog: Catalog
    table: Table
    snapshot: DistributedSnapshot
    limit: RejectLimit
    created: bool

    @classmethod
    def begin(cls, catalog: Catalog, table: Table, limit: RejectLimit, reserved_for: timedelta) -> Rejects:
        """Find or make the table for what `table` rejects, and reserve a snapshot of it."""
        rejected, created = open_rejected(catalog, tuple(table.name()))
        with taken_back(catalog, rejected, created):
            return cls(catalog, rejected, begin_snapshot(rejected, ttl=reserved_for), limit, created)

    @classmethod
    def again(cls, catalog: Catalog, job: Job, limit: RejectLimit) -> Rejects | None:
        """As the job has them in its log; None for a job that rejects nothing."""
        snapshot = job.declared.rejected
        if snapshot is None:
            return None
        table = find_table(catalog, snapshot.table)
        if table is None and not job.missing and not any(report.rejected for report in job.accepted.values()):
            return None  # nothing was rejected, so its table went again
        if table is None:
            raise CommitRefused(f"table {snapshot.name} of job {job.id} is not there any more; start the job anew")
        return cls(catalog, table, snapshot, limit, bool(job.declared.request.get("rejected-table-created")))

    def renew(self, reserved_for: timedelta) -> None:
        """Prolong the reservation. The rejected rows may have landed already, and the others not yet."""
        with suppress(AlreadyConsumed):
            renew(self.table, self.snapshot, reserved_for)

    @property
    def name(self) -> str:
        """The table's."""
        return self.snapshot.name

    def to(self, snapshot: DistributedSnapshot, job_id: str) -> RejectTo:
        """What the writers of `snapshot` need."""
        # The table's own storage properties may hold credentials that the catalog lent for this table alone.
        reserved = self.snapshot.with_storage(self.table.io.properties)
        return RejectTo(reserved, snapshot.snapshot_id, job_id, self.limit.rows)

    def check(self, reports: Mapping[str, Report], *, finished: bool) -> None:
        """TooManyRejected if these reports are beyond the limit; a share is told when all have come."""
        rejected = sum(report.rejected_rows for report in reports.values())
        rows = rejected + sum(report.rows for report in reports.values())
        if self.limit.is_passed(rejected, rows if finished else None):
            raise TooManyRejected(
                f"{rejected:,} of {rows:,} rows do not fit, which is more than --max-rejected {self.limit}; nothing "
                "was published"
            )

    def publish(self, job: Job) -> None:
        """Publish what was rejected, if anything was."""
        publish_rejected(self.table, self.snapshot, job.accepted.values(), _summary(job))

    def publisher(self, job: Job) -> Publisher | None:
        """What publishes the rejected rows together with others; None where nothing was rejected."""
        rejected = [report.rejected for report in job.accepted.values() if report.rejected is not None]
        return publisher_of(self.table, self.snapshot, rejected, summary=_summary(job)) if rejected else None

    def close(self, job: Job, *, leftovers: bool) -> None:
        """When the job is done: give back what was not needed, and remove the files of attempts that were not accepted."""
        unneeded = not any(report.rejected_rows for report in job.accepted.values())
        if (unneeded or leftovers) and find_table(self.catalog, self.snapshot.table) is not None:
            sweep(self.table, self.snapshot.commit_uuid, force=True)
            if unneeded:
                self._drop_if_made()

    def undo(self) -> None:
        """Leave no rejected row, file, reservation or table of a job whose other rows are proven not to be published."""
        take_back(self.table, self.snapshot)
        sweep(self.table, self.snapshot.commit_uuid, force=True)
        self._drop_if_made()

    def _drop_if_made(self) -> None:
        if self.created:
            drop_unused(self.catalog, self.table)


def _summary(job: Job) -> dict[str, str]:
    return {"frazil.job": job.id, "frazil.beside-snapshot": str(job.declared.snapshot.snapshot_id)}
