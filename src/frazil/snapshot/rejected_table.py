"""The table for rejected rows, `<table>__rejected`: found or made, and taken back from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import RemoveSnapshotRefUpdate, RemoveSnapshotsUpdate, SetSnapshotRefUpdate

from frazil.errors import AlreadyConsumed, NotLanded
from frazil.snapshot.alignment import check_fits
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.publish_snapshot import publish_snapshot
from frazil.snapshot.rejected_rows import REJECTED_ROWS
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import asserted_head
from frazil.snapshot.schema import table_schema
from frazil.snapshot.table import CatalogTable, assert_ref
from frazil.snapshot.table_change import Asked, TableChange, change_table
from frazil.snapshot.warehouse import create_table, find_table
from frazil.steps import step

SUFFIX = "__rejected"

_BRANCH = "main"
_CHANGE = TableChange(
    "taking rejected rows back", begun=lambda: step("reject:taking-back"), committed=lambda: step("reject:taken-back")
)


def open_rejected(catalog: Catalog, table: tuple[str, ...]) -> tuple[Table, bool]:
    """The table for rows that `table` rejects, and whether it was made now.

    SchemaMismatch if a table of that name is there and has no place for them.
    """
    identifier = (*table[:-1], table[-1] + SUFFIX)
    found = find_table(catalog, identifier)
    if found is None:
        schema = table_schema(REJECTED_ROWS, 2, "rejected rows")
        return create_table(catalog, identifier, schema, None, {"format-version": "2"})
    check_fits(REJECTED_ROWS, found.schema(), f"rejected rows do not fit table {'.'.join(identifier)}")
    return found, False


def publish_rejected(
    table: Table, snapshot: DistributedSnapshot, reports: Iterable[Report], summary: Mapping[str, str]
) -> bool:
    """Publish what the shards rejected; False if that is nothing.

    An earlier call that landed is recognised: nobody else publishes this reservation.
    """
    rejected = [report.rejected for report in reports if report.rejected is not None]
    if not rejected:
        return False
    with suppress(AlreadyConsumed):
        publish_snapshot(table, snapshot, rejected, summary=summary)
    step("reject:committed")
    return True


def take_back(table: Table, snapshot: DistributedSnapshot) -> bool:
    """Take a published snapshot of rejected rows out of its table; False if it is not there.

    Done as long as it is the newest one: NotLanded otherwise, as later snapshots have its rows too.
    """

    def attempt(metadata: TableMetadata) -> Asked | None:
        if metadata.snapshot_by_id(snapshot.snapshot_id) is None:
            return None
        head = asserted_head(metadata, _BRANCH)
        if head != snapshot.snapshot_id:
            raise NotLanded(
                f"rows that were rejected stay in table {snapshot.name}, because others came after them; they are those "
                f"of its snapshot {snapshot.snapshot_id}, and belong to rows that were not published"
            )
        return Asked(_without(metadata, snapshot.snapshot_id), (assert_ref(_BRANCH, head),))

    return change_table(CatalogTable(table), _CHANGE, attempt, table_uuid=snapshot.table_uuid)


def _without(metadata: TableMetadata, snapshot_id: int) -> tuple[Any, ...]:
    """The newest snapshot out of the branch and out of the table."""
    taken = metadata.snapshot_by_id(snapshot_id)
    parent = taken.parent_snapshot_id if taken else None
    if parent is None:
        back: Any = RemoveSnapshotRefUpdate(ref_name=_BRANCH)
    else:
        kept = metadata.refs[_BRANCH]
        back = SetSnapshotRefUpdate(
            ref_name=_BRANCH,
            type=SnapshotRefType.BRANCH,
            snapshot_id=parent,
            max_ref_age_ms=kept.max_ref_age_ms,
            max_snapshot_age_ms=kept.max_snapshot_age_ms,
            min_snapshots_to_keep=kept.min_snapshots_to_keep,
        )
    return (back, RemoveSnapshotsUpdate(snapshot_ids=[snapshot_id]))
