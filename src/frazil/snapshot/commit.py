"""From reports to the one update that a catalog is asked for.

`assemble` reads the parent's manifest list, writes the new one and returns the requirements and updates as values;
it asks the catalog for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, RemovePropertiesUpdate, SetPropertiesUpdate, SetSnapshotRefUpdate

from frazil.errors import BadInput
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestFile
from frazil.snapshot.manifest_list import read_manifest_list, write_manifest_list
from frazil.snapshot.report import Report
from frazil.snapshot.reservation import asserted_head, head_of
from frazil.snapshot.summary import merge_counts, totals_after
from frazil.snapshot.table import assert_ref, assert_table

COMMIT_UUID_PROPERTY = "frazil.commit-uuid"
REJECTED_ROWS_PROPERTY = "frazil.rejected-rows"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What all the reports together bring, whatever the table's head is."""

    manifests: tuple[ManifestFile, ...]
    counts: Mapping[str, int]
    partitions: frozenset[str]
    rejected_rows: int = 0

    @property
    def adds_deletes(self) -> bool:
        """Whether rows of earlier snapshots are deleted."""
        return "added-delete-files" in self.counts

    def joined_by(self, other: Contribution) -> Contribution:
        """Both together."""
        return Contribution(
            manifests=self.manifests + other.manifests,
            counts=merge_counts([self.counts, other.counts]),
            partitions=self.partitions | other.partitions,
        )


@dataclass(frozen=True, slots=True)
class Removal:
    """What an overwrite carries over of the parent, with manifests that say which files it takes out, and their counts."""

    manifests: tuple[ManifestFile, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """One attempt at publishing, ready to be asked for."""

    snapshot: Snapshot
    asserted_head: int | None
    planned_on: tuple[int, int]  # when the metadata was last updated, and how many snapshots it had
    requirements: tuple[Any, ...]
    updates: tuple[Any, ...] = field(repr=False)


def gather(snapshot: DistributedSnapshot, reports: Iterable[Report]) -> Contribution:
    """Put the reports together. One that is of another commit, or a second one for a shard, is refused."""
    accepted: dict[str, Report] = {}
    for report in reports:
        if report.commit_uuid != snapshot.commit_uuid:
            raise BadInput(
                f"the report of shard {report.shard!r} is for commit {report.commit_uuid}, not for commit "
                f"{snapshot.commit_uuid} of table {snapshot.name}; publish it with its own descriptor"
            )
        if report.shard in accepted:
            raise BadInput(
                f"shard {report.shard!r} of table {snapshot.name} was reported twice (attempts "
                f"{accepted[report.shard].attempt} and {report.attempt}); publish exactly one attempt of each shard"
            )
        accepted[report.shard] = report
    return Contribution(
        manifests=tuple(manifest for report in accepted.values() for manifest in report.manifests),
        counts=merge_counts(report.counts for report in accepted.values()),
        partitions=frozenset(path for report in accepted.values() for path in report.partitions),
        rejected_rows=sum(report.rejected_rows for report in accepted.values()),
    )


def live_manifests(io: FileIO, metadata: TableMetadata, snapshot_id: int | None) -> list[ManifestFile]:
    """The manifests of a snapshot that still hold a live file; those with unknown counts are kept."""
    if snapshot_id is None:
        return []
    parent = metadata.snapshot_by_id(snapshot_id)
    if parent is None:
        raise BadInput(f"snapshot {snapshot_id} is not in the table")
    return [
        manifest
        for manifest in read_manifest_list(io, parent.manifest_list)
        if manifest.added_files_count != 0 or manifest.existing_files_count != 0
    ]


def assemble(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: DistributedSnapshot,
    contribution: Contribution,
    manifests: Sequence[ManifestFile],
    removal: Removal | None,
    *,
    attempt: int,
    now_ms: int,
    properties: Mapping[str, str],
    table_properties: Mapping[str, str] | None = None,
) -> Plan:
    """Write the manifest list for this head of the table and say what to ask the catalog for.

    `properties` go into the snapshot's summary, `table_properties` into the table by the same update.
    """
    parent_id = head_of(metadata, snapshot.ref)
    sequence_number = metadata.next_sequence_number()
    first_row_id = (metadata.next_row_id or 0) if isinstance(metadata, TableMetadataV3) else None
    path = snapshot.manifest_list_path(attempt)
    written = write_manifest_list(
        io,
        path,
        format_version=metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=sequence_number,
        manifests=manifests,
        first_row_id=first_row_id,
    )
    added = Snapshot(
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=sequence_number,
        timestamp_ms=_timestamp(metadata, now_ms),
        manifest_list=path,
        summary=_summary(metadata, snapshot, parent_id, contribution, removal, properties),
        schema_id=metadata.current_schema_id,
        first_row_id=first_row_id,
        added_rows=written.added_rows,
    )
    head = asserted_head(metadata, snapshot.ref)
    return Plan(
        snapshot=added,
        asserted_head=head,
        planned_on=(metadata.last_updated_ms, len(metadata.snapshots)),
        requirements=(assert_table(metadata), assert_ref(snapshot.ref, head)),
        updates=(
            AddSnapshotUpdate(snapshot=added),
            _point_ref(metadata, snapshot),
            RemovePropertiesUpdate(removals=[snapshot.reservation_key]),
            *([SetPropertiesUpdate(updates=dict(table_properties))] if table_properties else []),
        ),
    )


def _point_ref(metadata: TableMetadata, snapshot: DistributedSnapshot) -> SetSnapshotRefUpdate:
    """Move the branch and keep whatever retention it was given."""
    known = metadata.refs.get(snapshot.ref)
    return SetSnapshotRefUpdate(
        ref_name=snapshot.ref,
        type=SnapshotRefType.BRANCH,
        snapshot_id=snapshot.snapshot_id,
        max_ref_age_ms=known.max_ref_age_ms if known else None,
        max_snapshot_age_ms=known.max_snapshot_age_ms if known else None,
        min_snapshots_to_keep=known.min_snapshots_to_keep if known else None,
    )


def _timestamp(metadata: TableMetadata, now_ms: int) -> int:
    """The format wants time to go forward, also where another writer's clock runs ahead of ours."""
    newest = max((entry.timestamp_ms for entry in metadata.snapshots), default=-1)
    return max(now_ms, metadata.last_updated_ms, newest + 1)


def _summary(
    metadata: TableMetadata,
    snapshot: DistributedSnapshot,
    parent_id: int | None,
    contribution: Contribution,
    removal: Removal | None,
    properties: Mapping[str, str],
) -> Summary:
    counts = merge_counts([contribution.counts, removal.counts if removal else {}])
    parent = metadata.snapshot_by_id(parent_id) if parent_id is not None else None
    before: Mapping[str, str] | None = None
    if parent is not None:
        before = parent.summary.additional_properties if parent.summary else {}
    numbers: dict[str, int] = {**counts, **totals_after(counts, before)}
    if contribution.partitions:
        numbers["changed-partition-count"] = len(contribution.partitions)
    if contribution.rejected_rows:
        numbers[REJECTED_ROWS_PROPERTY] = contribution.rejected_rows
    return Summary(
        _operation(contribution, removal),
        **{
            **snapshot.properties,
            **properties,
            **{key: str(value) for key, value in numbers.items()},
            COMMIT_UUID_PROPERTY: snapshot.commit_uuid,
        },
    )


def _operation(contribution: Contribution, removal: Removal | None) -> Operation:
    if removal is not None:
        return Operation.OVERWRITE
    if contribution.adds_deletes:
        return Operation.OVERWRITE if "added-data-files" in contribution.counts else Operation.DELETE
    return Operation.APPEND
