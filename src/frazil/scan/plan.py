"""From a snapshot to the files to read, each with the deletes that apply to it. Runs once, on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import ManifestFile as IcebergManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from frazil.errors import BadInput
from frazil.scan.choice import ChosenSnapshots
from frazil.scan.delete_index import DeleteFile, DeleteIndex
from frazil.snapshot.data_file import DataFile
from frazil.snapshot.manifest import Status, read_manifest_entries
from frazil.snapshot.manifest_entry import ManifestEntry
from frazil.snapshot.manifest_file import ManifestContent, ManifestFile
from frazil.snapshot.manifest_list import read_manifest_list


@dataclass(frozen=True, slots=True)
class FileTask:
    """A data file to read. `constants` are the values of identity partition columns, by field id."""

    path: str
    size: int
    record_count: int
    split_offsets: tuple[int, ...]
    constants: tuple[tuple[int, Any], ...] = ()
    deletes: tuple[DeleteFile, ...] = ()


def plan_files(
    io: FileIO, metadata: TableMetadata, chosen: ChosenSnapshots, row_filter: BooleanExpression | None = None
) -> list[FileTask]:
    """The files that may hold a row for which `row_filter` is true, in the order of the manifests.

    Manifests are passed over by their partition summaries, files by their partition and their columns' bounds.
    StorageFailed if a manifest cannot be read, BadInput if a file is of a format that cannot be.
    """
    pruning = _Pruning(metadata, chosen.schema, row_filter if row_filter is not None else AlwaysTrue())
    if chosen.appended is not None:
        entries = [entry for snapshot in chosen.appended for entry in _appended_by(io, pruning, snapshot)]
        return _tasks(entries, DeleteIndex([], metadata.specs()), metadata)
    if chosen.snapshot is None:
        return []
    manifests = [m for m in read_manifest_list(io, chosen.snapshot.manifest_list) if pruning.may_list(m)]
    data = [entry for m in manifests if m.content is ManifestContent.DATA for entry in _live(io, m)]
    files = [entry for entry in data if pruning.may_hold(entry.data_file)]
    if not files:
        return []
    deletes = [entry for m in manifests if m.content is ManifestContent.DELETES for entry in _live(io, m)]
    return _tasks(files, DeleteIndex(deletes, metadata.specs()), metadata)


def _live(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    return read_manifest_entries(io, manifest, live_only=True)


def _appended_by(io: FileIO, pruning: _Pruning, snapshot: Any) -> Iterator[ManifestEntry]:
    """What one append added, by its own manifests: later ones may have been merged or rewritten since."""
    for manifest in read_manifest_list(io, snapshot.manifest_list):
        ours = manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is ManifestContent.DATA
        if ours and pruning.may_list(manifest):
            for entry in _live(io, manifest):
                new = entry.status is Status.ADDED and entry.snapshot_id == snapshot.snapshot_id
                if new and pruning.may_hold(entry.data_file):
                    yield entry


class _Pruning:
    """What a filter rules out, spec by spec.

    PyIceberg's evaluators ask of manifests and files nothing but attributes that ours have under the same names.
    """

    def __init__(self, metadata: TableMetadata, schema: Schema, row_filter: BooleanExpression) -> None:
        self._schema = schema
        self._specs = metadata.specs()
        self._filter = row_filter
        self._all = isinstance(row_filter, AlwaysTrue)
        self._metrics = _InclusiveMetricsEvaluator(schema, row_filter)
        self._manifests: Callable[[int], Callable[[Any], bool]] = cache(self._manifest_evaluator)
        self._partitions: Callable[[int], Callable[[Any], bool]] = cache(self._partition_evaluator)

    def may_list(self, manifest: ManifestFile) -> bool:
        """Whether a file in the manifest may matter."""
        return self._all or self._manifests(manifest.partition_spec_id)(cast("IcebergManifestFile", manifest))

    def may_hold(self, file: DataFile) -> bool:
        """Whether a row in the data file may fulfil the filter."""
        if self._all:
            return True
        in_partition = self._partitions(file.spec_id)(Record(*file.partition))
        return in_partition and self._metrics.eval(cast("IcebergDataFile", file))

    def _manifest_evaluator(self, spec_id: int) -> Callable[[Any], bool]:
        if not self._knows_sources(spec_id):
            return lambda _: True
        spec = self._specs[spec_id]
        projected = inclusive_projection(self._schema, spec)(self._filter)
        return manifest_evaluator(spec, self._schema, projected)

    def _partition_evaluator(self, spec_id: int) -> Callable[[Any], bool]:
        if not self._knows_sources(spec_id):
            return lambda _: True
        spec = self._specs[spec_id]
        projected = inclusive_projection(self._schema, spec)(self._filter)
        return expression_evaluator(Schema(*spec.partition_type(self._schema).fields), projected, True)

    def _knows_sources(self, spec_id: int) -> bool:
        """A snapshot's own schema may lack columns of a newer spec, and the newest one those of an old spec."""
        return all(field.source_id in self._schema.field_ids for field in self._specs[spec_id].fields)


def _tasks(entries: Sequence[ManifestEntry], index: DeleteIndex, metadata: TableMetadata) -> list[FileTask]:
    identities = {
        spec_id: [(at, f.source_id) for at, f in enumerate(spec.fields) if isinstance(f.transform, IdentityTransform)]
        for spec_id, spec in metadata.specs().items()
    }
    tasks = []
    for entry in entries:
        file = entry.data_file
        if file.file_format != "PARQUET":
            raise BadInput(f"{file.file_path} is of format {file.file_format}, and only Parquet can be read")
        tasks.append(
            FileTask(
                path=file.file_path,
                size=file.file_size_in_bytes,
                record_count=file.record_count,
                split_offsets=file.split_offsets,
                constants=tuple((source, file.partition[at]) for at, source in identities[file.spec_id]),
                deletes=index.deletes_of(file, entry.sequence_number or 0),
            )
        )
    return tasks
