"""The rows that a DataFrame write rejects: reserved with its own, published just before them, undone with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from frazil.settings import CatalogSettings
from frazil.snapshot.cleanup import sweep
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.rejected_rows import RejectTo
from frazil.snapshot.rejected_table import open_rejected, publish_rejected, take_back
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import begin_snapshot
from frazil.snapshot.warehouse import drop_unused, find_table, open_catalog
from frazil.spark.target import taken_back


@dataclass(frozen=True, slots=True)
class FrameRejects:
    """A reservation on `<table>__rejected` that travels with the writer. `created`: this write made that table."""

    catalog: CatalogSettings
    snapshot: DistributedSnapshot
    created: bool

    @classmethod
    def begin(
        cls, settings: CatalogSettings, catalog: Catalog, table: tuple[str, ...], reserved_for: timedelta
    ) -> FrameRejects:
        """Find or make the table for what `table` rejects, and reserve a snapshot of it."""
        rejected, created = open_rejected(catalog, table)
        with taken_back(catalog, rejected, created):
            snapshot = begin_snapshot(rejected, ttl=reserved_for)
        return cls(settings, snapshot.with_storage(rejected.io.properties), created)

    def beside(self, snapshot: DistributedSnapshot) -> RejectTo:
        """What the writers of `snapshot` need."""
        return RejectTo(self.snapshot, snapshot.snapshot_id)

    def publish(self, reports: Sequence[Report], beside: DistributedSnapshot) -> None:
        """Publish what was rejected, if anything was."""
        table = self._table()
        if table is not None:
            summary = {"frazil.beside-snapshot": str(beside.snapshot_id)}
            publish_rejected(table, self.snapshot, reports, summary)

    def close(self, reports: Sequence[Report]) -> None:
        """When the write has landed: leave only what was published, and no table for nothing."""
        table = self._table()
        if table is not None:
            sweep(table, self.snapshot.commit_uuid, force=True)
            if self.created and not any(report.rejected_rows for report in reports):
                drop_unused(open_catalog(self.catalog), table)

    def undo(self) -> None:
        """Leave no rejected row, file, reservation or table of a write that is proven not to have landed."""
        table = self._table()
        if table is not None:
            take_back(table, self.snapshot)
            sweep(table, self.snapshot.commit_uuid, force=True)
            if self.created:
                drop_unused(open_catalog(self.catalog), table)

    def _table(self) -> Table | None:
        return find_table(open_catalog(self.catalog), self.snapshot.table)
