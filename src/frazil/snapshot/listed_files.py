"""Which files a branch of a table lists, as names alone: what it takes to tell whether a file is there already."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import ListType, MapType, NestedField, StructType

from frazil.snapshot.avro_reader import read_records
from frazil.snapshot.manifest import ManifestContent, ManifestFile, Status
from frazil.snapshot.manifest_list import read_manifest_list
from frazil.snapshot.manifest_schema import ENTRY_READ_SCHEMA
from frazil.snapshot.storage import same_file

_AT_ONCE = 8


def _names_alone() -> Schema:
    """What to read of a manifest's entries: names, and the maps, lists and structs that PyIceberg cannot pass over."""
    file = ENTRY_READ_SCHEMA.find_field("data_file")
    kept = [
        field
        for field in cast("StructType", file.field_type).fields
        if field.name == "file_path" or isinstance(field.field_type, MapType | ListType | StructType)
    ]
    kept.sort(key=lambda field: field.name != "file_path")
    only = NestedField(file.field_id, file.name, StructType(*kept), required=True)
    return Schema(ENTRY_READ_SCHEMA.find_field("status"), only)


_NAMES = _names_alone()


def already_listed(
    io: FileIO, metadata: TableMetadata, head: int | None, paths: Iterable[str], *, after: int | None = None
) -> set[str]:
    """Those of `paths` that are live data files of the snapshot `head`. Each of its manifests is read once.

    With `after`, manifests that this earlier snapshot has too are left out.
    """
    wanted = {same_file(path): path for path in paths}
    snapshot = metadata.snapshot_by_id(head) if head is not None else None
    if snapshot is None or not wanted:
        return set()
    manifests = _data_manifests(io, snapshot.manifest_list)
    earlier = metadata.snapshot_by_id(after) if after is not None else None
    if earlier is not None:
        known = {manifest.manifest_path for manifest in _data_manifests(io, earlier.manifest_list)}
        manifests = [manifest for manifest in manifests if manifest.manifest_path not in known]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        listed = pool.map(lambda manifest: _live_names(io, manifest), manifests)
        return {wanted[name] for names in listed for name in names if name in wanted}


def _data_manifests(io: FileIO, manifest_list: str) -> list[ManifestFile]:
    return [manifest for manifest in read_manifest_list(io, manifest_list) if manifest.content is ManifestContent.DATA]


def _live_names(io: FileIO, manifest: ManifestFile) -> list[str]:
    records = read_records(io, manifest.manifest_path, _NAMES)
    return [same_file(record[1][0]) for record in records if record[0] != Status.DELETED]
