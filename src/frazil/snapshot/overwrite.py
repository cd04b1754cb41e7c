"""Taking files of the parent out of a snapshot: in manifests that say which they were, and only if nothing else came in.

What an overwrite replaces is settled by the state it was begun on. It may follow a newer one as long as the files it has
to do with are the same there: then nobody has added, removed or deleted rows among those it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from frazil.errors import CommitConflict
from frazil.snapshot.commit import Contribution, Removal, live_manifests
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.descriptor import DistributedSnapshot
from frazil.snapshot.kept_rows import keep_rows
from frazil.snapshot.manifest import ManifestContent, ManifestEntry, ManifestFile, ManifestWriter
from frazil.snapshot.manifest import read_manifest_entries as read_entries
from frazil.snapshot.overwrite_scope import Fate, MatchingRows, Overwrite, Scope, scope_of
from frazil.snapshot.report import Report
from frazil.snapshot.row_filter import RowFilter
from frazil.snapshot.summary import Counts, counts_of_removed, merge_counts

OVERWRITE_SHARD = "overwrite"

_FileKey = tuple[str, int | None]


@dataclass(slots=True)
class Sorted:
    """The live entries of one manifest, by what becomes of them."""

    gone: list[ManifestEntry] = field(default_factory=list)
    partly: list[ManifestEntry] = field(default_factory=list)
    kept: list[ManifestEntry] = field(default_factory=list)
    known: set[_FileKey] = field(default_factory=set)

    @property
    def removed(self) -> list[ManifestEntry]:
        """Entries that the new snapshot will not have."""
        return self.gone + self.partly


@dataclass(slots=True)
class Replacement:
    """One publisher's overwrite. `attempt` is its own number: it keeps two coordinators from writing the same file.

    `written` are the manifests that it wrote. `kept` reports the rows it kept of files that are replaced in part, and
    `kept_files` are the files these are in.
    """

    table: Table
    snapshot: DistributedSnapshot
    overwrite: Overwrite
    scope: Scope
    attempt: int
    kept: Report | None = None
    kept_files: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    _sorted: dict[str, Sorted] = field(default_factory=dict)
    _rewritten: dict[str, tuple[ManifestFile, Counts]] = field(default_factory=dict)
    _known: set[_FileKey] = field(default_factory=set)
    _replaced: set[str] = field(default_factory=set)

    @classmethod
    def begin(
        cls,
        table: Table,
        snapshot: DistributedSnapshot,
        overwrite: Overwrite,
        contribution: Contribution,
        attempt: int,
    ) -> Replacement:
        """Settle what is replaced, by the state that the snapshot was begun on, and keep the other rows of its files."""
        scope = scope_of(overwrite, table.io, table.metadata, contribution)
        replacement = cls(table, snapshot, overwrite, scope, attempt)
        replacement._settle()
        return replacement

    def removal(self, metadata: TableMetadata, carried: Sequence[ManifestFile]) -> Removal:
        """The manifests to carry over from this head of the branch. CommitConflict if others were at work in the scope."""
        manifests: list[ManifestFile] = []
        counts: list[Counts] = []
        known = set().union(*(self._sort(manifest).known for manifest in carried))
        if known != self._known:
            raise self._conflict(known)
        for manifest in carried:
            rewritten = self._rewrite(metadata, manifest)
            manifests.append(manifest if rewritten is None else rewritten[0])
            counts.append({} if rewritten is None else rewritten[1])
        return Removal(tuple(manifests), merge_counts(counts))

    def _settle(self) -> None:
        metadata = self.table.metadata
        parent = self.snapshot.parent_snapshot_id
        if parent is not None and metadata.snapshot_by_id(parent) is None:
            raise CommitConflict(
                f"snapshot {self.snapshot.snapshot_id} of table {self.snapshot.name} was not published: the state it was "
                f"begun on (snapshot {parent}) has been expired; begin again on the new state"
            )
        carried = live_manifests(self.table.io, metadata, parent)
        # Data first: which deletes go is known when it is known which data goes.
        for manifest in sorted(carried, key=lambda each: each.content):
            found = self._sort(manifest)
            self._known |= found.known
            if manifest.content is ManifestContent.DATA:
                self._replaced |= {entry.data_file.file_path for entry in found.removed}
        partly = [entry.data_file for found in self._sorted.values() for entry in found.partly]
        if partly and isinstance(self.overwrite, MatchingRows):
            rows = RowFilter(self.overwrite.filter, metadata.schema())
            self.kept = keep_rows(self.table, self.snapshot, rows, partly)
            made = (entry for manifest in self.kept.manifests for entry in read_entries(self.table.io, manifest))
            self.kept_files = [entry.data_file.file_path for entry in made]

    def _sort(self, manifest: ManifestFile) -> Sorted:
        path = manifest.manifest_path
        if path not in self._sorted:
            found = Sorted()
            if self.scope.may_hold(manifest):
                for entry in read_entries(self.table.io, manifest, live_only=True):
                    self._put(found, entry)
            if not found.removed:
                found.kept.clear()  # the manifest stays as it is, so nobody asks for them
            self._sorted[path] = found
        return self._sorted[path]

    def _put(self, found: Sorted, entry: ManifestEntry) -> None:
        fate = self._fate(entry.data_file)
        {Fate.GOES: found.gone, Fate.PARTLY: found.partly}.get(fate, found.kept).append(entry)
        if fate is not Fate.OUTSIDE:
            found.known.add((entry.data_file.file_path, entry.data_file.content_offset))

    def _fate(self, file: DataFile) -> Fate:
        """Deletes of one data file go with it."""
        if file.content is not FileContent.DATA and file.referenced_data_file in self._replaced:
            return Fate.GOES
        return self.scope.fate(file)

    def _rewrite(self, metadata: TableMetadata, manifest: ManifestFile) -> tuple[ManifestFile, Counts] | None:
        """The manifest without the files that are replaced; None where it may stay as it is."""
        path = manifest.manifest_path
        found = self._sorted[path]
        if not found.removed:
            return None
        if path not in self._rewritten:
            self._rewritten[path] = self._write(metadata, manifest, found)
        return self._rewritten[path]

    def _write(self, metadata: TableMetadata, manifest: ManifestFile, found: Sorted) -> tuple[ManifestFile, Counts]:
        path = self.snapshot.manifest_path(OVERWRITE_SHARD, self.attempt, len(self.written))
        self.written.append(path)
        with ManifestWriter(
            self.table.io,
            path,
            schema=metadata.schema(),
            spec=metadata.specs()[manifest.partition_spec_id],
            format_version=metadata.format_version,
            snapshot_id=self.snapshot.snapshot_id,
            content=manifest.content,
        ) as writer:
            for entry in found.removed:
                writer.delete(
                    entry.data_file,
                    sequence_number=entry.sequence_number,
                    file_sequence_number=entry.file_sequence_number,
                )
            for entry in found.kept:
                writer.existing(
                    entry.data_file,
                    snapshot_id=entry.snapshot_id,
                    sequence_number=entry.sequence_number,
                    file_sequence_number=entry.file_sequence_number,
                )
            return writer.close(), counts_of_removed(entry.data_file for entry in found.removed)

    def _conflict(self, known: set[_FileKey]) -> CommitConflict:
        examples = sorted(path for path, _ in known ^ self._known)
        return CommitConflict(
            f"snapshot {self.snapshot.snapshot_id} of table {self.snapshot.name} was not published: an overwrite must not "
            f"remove rows that it has not seen, and {len(examples)} files among those it replaces came or went since it "
            f"was begun, such as {examples[0]}; begin again on the new state"
        )
