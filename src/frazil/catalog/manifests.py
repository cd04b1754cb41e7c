"""Manifest lists and manifests as a scan reads them: with the fields of format version 3, which PyIceberg leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)

_FIRST_ROW_OF_MANIFEST: Final = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[3].fields].index("first_row_id")
_FIRST_ROW_OF_FILE: Final = [field.name for field in DATA_FILE_TYPE[3].fields].index("first_row_id")


def read_manifests(io: FileIO, manifest_list: str) -> list[ManifestFile]:
    """The manifests of a snapshot, in the order of its manifest list."""
    with AvroFile[ManifestFile](
        io.new_input(manifest_list),
        MANIFEST_LIST_FILE_SCHEMAS[3],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        return list(reader)


def live_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """The entries of a manifest that are not deleted, with what they inherit from it."""
    next_row_id = manifest._data[_FIRST_ROW_OF_MANIFEST]
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[3],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        for entry in reader:
            if entry.status == ManifestEntryStatus.DELETED:
                continue
            _inherit(entry, manifest)
            if next_row_id is not None and entry.data_file._data[_FIRST_ROW_OF_FILE] is None:
                entry.data_file._data[_FIRST_ROW_OF_FILE] = next_row_id
                next_row_id += entry.data_file.record_count
            yield entry


def _inherit(entry: ManifestEntry, manifest: ManifestFile) -> None:
    """Fill in what an entry leaves to its manifest: the snapshot that added it, the sequence number, the spec."""
    if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
        entry.snapshot_id = manifest.added_snapshot_id
    if entry.sequence_number is None:
        entry.sequence_number = manifest.sequence_number or 0
    entry.data_file.spec_id = manifest.partition_spec_id
