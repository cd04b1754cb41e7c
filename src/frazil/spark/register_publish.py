"""Publishing registered files: on whatever other writers have published, but never a file that is there already."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pyiceberg.table import Table

from frazil.errors import BadInput, CommitConflict
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.listed_files import already_listed
from frazil.snapshot.outcome import Landed
from frazil.snapshot.publish_snapshot import ConflictPolicy, publish_snapshot
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import head_of
from frazil.snapshot.retry import RetryPolicy
from frazil.snapshot.table import CatalogTable
from frazil.sources.register import KIND


def publish_registered(
    table: Table,
    snapshot: DistributedSnapshot,
    reports: Iterable[Report],
    paths: Collection[str],
    *,
    summary: Mapping[str, str],
    conflict: ConflictPolicy,
) -> Landed:
    """As `publish_snapshot`, with the files `paths` held against all that others have published since the reservation.

    Each try asserts the very head that was looked at, so that nobody can slip a file in between. BadInput, and nothing
    is published, if another writer has put one of them into the table.
    """
    if conflict == "abort":
        return publish_snapshot(table, snapshot, reports, summary=summary, conflict="abort")
    reports = list(reports)
    target = CatalogTable(table)
    waits = RetryPolicy.from_properties(table.metadata.properties).waits(time.monotonic, random.random)
    checked = snapshot.parent_snapshot_id
    while True:
        metadata = target.look(snapshot.table_uuid, f"publishing {len(paths)} registered files")
        head = head_of(metadata, snapshot.ref)
        if head != checked and metadata.snapshot_by_id(snapshot.snapshot_id) is None:
            refuse_listed(target.name, already_listed(target.io, metadata, head, paths, after=checked))
        checked = head
        try:
            return publish_snapshot(
                table, replace(snapshot, parent_snapshot_id=head), reports, summary=summary, conflict="abort"
            )
        except CommitConflict:
            wait = next(waits, None)
            if wait is None:
                raise
            time.sleep(wait)


def registered_paths(shards: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files of those shards that register files."""
    return [file[0] for shard in shards if shard["kind"] == KIND for file in shard["files"]]


def refuse_listed(table: str, listed: Collection[str]) -> None:
    """BadInput if there are any files in the table already."""
    if listed:
        first = min(listed)
        others = f" and {len(listed) - 1:,} more of these files are" if len(listed) > 1 else " is"
        raise BadInput(
            f"{first}{others} in table {table} already ({len(listed):,} in all); leave them out, or say --skip-existing"
        )
