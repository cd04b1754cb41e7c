"""Fewer, larger manifests, where the table's `commit.manifest.*` properties ask for it.

`commit.manifest-merge.enabled` turns it on (off by default, as merging rewrites entries at publish),
`commit.manifest.min-count-to-merge` says from how many manifests on, `commit.manifest.target-size-bytes` up to which
size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import BadInput
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.manifest import ManifestFile, ManifestWriter, Status, read_manifest_entries

MERGE_SHARD = "merge"
_DEFAULT_MIN_COUNT = 100
_DEFAULT_TARGET_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class ManifestMerger:
    """Merges manifests for one publisher. A bin merged once is reused at every retry that holds the same manifests."""

    io: FileIO
    snapshot: DistributedSnapshot
    attempt: int
    enabled: bool
    min_count: int
    target_bytes: int
    merged: dict[tuple[str, ...], ManifestFile] = field(default_factory=dict)

    @classmethod
    def for_table(
        cls, io: FileIO, metadata: TableMetadata, snapshot: DistributedSnapshot, attempt: int
    ) -> ManifestMerger:
        """A merger by the table's properties. `attempt` keeps two coordinators from writing the same file."""
        properties = metadata.properties
        return cls(
            io=io,
            snapshot=snapshot,
            attempt=attempt,
            enabled=properties.get("commit.manifest-merge.enabled", "false").lower() == "true",
            min_count=_integer(properties, "commit.manifest.min-count-to-merge", _DEFAULT_MIN_COUNT),
            target_bytes=_integer(properties, "commit.manifest.target-size-bytes", _DEFAULT_TARGET_BYTES),
        )

    @property
    def written(self) -> list[str]:
        """Every manifest that merging has written."""
        return [manifest.manifest_path for manifest in self.merged.values()]

    def merge(
        self, metadata: TableMetadata, added: Sequence[ManifestFile], carried: Sequence[ManifestFile]
    ) -> list[ManifestFile]:
        """The manifests to list: the same ones, or fewer that hold the same entries.

        What is added is merged by itself, and what is carried from the oldest on, so that after a conflict only the bin
        that another writer's manifests come into is written again.
        """
        result = [*added, *carried]
        if self.enabled and len(result) >= self.min_count:
            bins = [*self._bins(added), *reversed(self._bins(carried[::-1]))]
            result = [self._merge_bin(metadata, members) for members in bins]
        return result

    def _bins(self, manifests: Sequence[ManifestFile]) -> list[list[ManifestFile]]:
        """Manifests of one spec and content, in their order, filled up to the target size."""
        bins: list[list[ManifestFile]] = []
        opened: dict[tuple[int, int], tuple[list[ManifestFile], int]] = {}
        for manifest in manifests:
            key = (manifest.partition_spec_id, int(manifest.content))
            members, size = opened.get(key, ([], self.target_bytes))
            if size + manifest.manifest_length > self.target_bytes:
                members, size = [], 0
                bins.append(members)
            members.append(manifest)
            opened[key] = (members, size + manifest.manifest_length)
        return bins

    def _merge_bin(self, metadata: TableMetadata, members: list[ManifestFile]) -> ManifestFile:
        if len(members) == 1:
            return members[0]
        key = tuple(member.manifest_path for member in members)
        if key not in self.merged:
            self.merged[key] = self._write(metadata, members, len(self.merged))
        return self.merged[key]

    def _write(self, metadata: TableMetadata, members: list[ManifestFile], number: int) -> ManifestFile:
        with ManifestWriter(
            self.io,
            self.snapshot.manifest_path(MERGE_SHARD, self.attempt, number),
            schema=metadata.schema(),
            spec=metadata.specs()[members[0].partition_spec_id],
            format_version=metadata.format_version,
            snapshot_id=self.snapshot.snapshot_id,
            content=members[0].content,
        ) as writer:
            for entry in (entry for member in members for entry in read_manifest_entries(self.io, member)):
                ours = entry.snapshot_id == self.snapshot.snapshot_id
                numbers = {
                    "sequence_number": entry.sequence_number,
                    "file_sequence_number": entry.file_sequence_number,
                }
                if ours and entry.status == Status.ADDED:
                    writer.add(entry.data_file)
                elif ours and entry.status == Status.DELETED:
                    writer.delete(entry.data_file, **numbers)
                elif entry.status != Status.DELETED:
                    writer.existing(entry.data_file, snapshot_id=entry.snapshot_id, **numbers)
            return writer.close()


def _integer(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default))
    if not text.isdigit() or int(text) == 0:
        raise BadInput(f"table property {key} is {text!r}, but it must be a whole number above 0")
    return int(text)
