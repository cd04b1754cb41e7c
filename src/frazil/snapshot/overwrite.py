"""Taking the parent's files out of a snapshot, in manifests that say which files they were."""

from __future__ import annotations

from collections.abc import Sequence

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from frazil.snapshot.commit import Removal
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestFile, ManifestWriter, Status, read_manifest_entries
from frazil.snapshot.storage import delete_files
from frazil.snapshot.summary import Counts, counts_of_removed, merge_counts

OVERWRITE_SHARD = "overwrite"


def remove_all(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: DistributedSnapshot,
    carried: Sequence[ManifestFile],
    attempt: int,
) -> Removal:
    """Write, for each manifest of the parent, one that marks its live files deleted.

    `attempt` is the publisher's own number: it keeps two coordinators from writing the same file. On an error no
    manifest is left.
    """
    written: list[ManifestFile] = []
    counts: list[Counts] = []
    try:
        for manifest in carried:
            path = snapshot.manifest_path(OVERWRITE_SHARD, attempt, len(written))
            deleted = _delete_entries(io, metadata, snapshot, manifest, path)
            if deleted is not None:
                written.append(deleted[0])
                counts.append(deleted[1])
    except BaseException:
        delete_files(io, [manifest.manifest_path for manifest in written])
        raise
    return Removal(tuple(written), merge_counts(counts))


def _delete_entries(
    io: FileIO, metadata: TableMetadata, snapshot: DistributedSnapshot, manifest: ManifestFile, path: str
) -> tuple[ManifestFile, Counts] | None:
    live = [entry for entry in read_manifest_entries(io, manifest) if entry.status != Status.DELETED]
    if not live:
        return None
    with ManifestWriter(
        io,
        path,
        schema=metadata.schema(),
        spec=metadata.specs()[manifest.partition_spec_id],
        format_version=metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        content=manifest.content,
    ) as writer:
        for entry in live:
            writer.delete(
                entry.data_file,
                sequence_number=entry.sequence_number,
                file_sequence_number=entry.file_sequence_number,
            )
        return writer.close(), counts_of_removed(entry.data_file for entry in live)
