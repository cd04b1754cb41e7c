"""Manifest lists and manifests as a scan reads them: with the fields of format version 3, which PyIceberg leaves out."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import ResolveError
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

from frazil.catalog.errors import InvalidRequest, Missing

# What PyIceberg's decoder raises for bytes that are no Avro; a length that is negative, or huge, is the last two.
_NOT_AVRO: Final = (
    OSError,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    ResolveError,
    zlib.error,
    SystemError,
    MemoryError,
)

_FIRST_ROW_OF_MANIFEST: Final = [field.name for field in MANIFEST_LIST_FILE_SCHEMAS[3].fields].index("first_row_id")
_FIRST_ROW_OF_FILE: Final = [field.name for field in DATA_FILE_TYPE[3].fields].index("first_row_id")


def read_manifests(io: FileIO, manifest_list: str) -> list[ManifestFile]:
    """The manifests of a snapshot, in the order of its manifest list. `Missing` if the file is gone."""
    with (
        _reading(manifest_list),
        AvroFile[ManifestFile](
            io.new_input(manifest_list),
            MANIFEST_LIST_FILE_SCHEMAS[3],
            read_types={-1: ManifestFile, 508: PartitionFieldSummary},
            read_enums={517: ManifestContent},
        ) as reader,
    ):
        return list(reader)


def live_entries(io: FileIO, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """The entries of a manifest that are not deleted, with what they inherit from it. `Missing` if the file is gone."""
    next_row_id = manifest._data[_FIRST_ROW_OF_MANIFEST]
    with (
        _reading(manifest.manifest_path),
        AvroFile[ManifestEntry](
            io.new_input(manifest.manifest_path),
            MANIFEST_ENTRY_SCHEMAS[3],
            read_types={-1: ManifestEntry, 2: DataFile},
            read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
        ) as reader,
    ):
        for entry in reader:
            if entry.status == ManifestEntryStatus.DELETED:
                continue
            _inherit(entry, manifest)
            if next_row_id is not None and entry.data_file._data[_FIRST_ROW_OF_FILE] is None:
                entry.data_file._data[_FIRST_ROW_OF_FILE] = next_row_id
                next_row_id += entry.data_file.record_count
            yield entry


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Tell of a file that metadata names and that is gone, or is something else, as a load tells of a metadata file."""
    try:
        yield
    except FileNotFoundError as error:
        raise Missing(f"Failed to open input stream for file: {path}") from error
    except _NOT_AVRO as error:
        raise InvalidRequest(f"Cannot read manifest file {path}: it cannot be opened, or is no manifest") from error


def _inherit(entry: ManifestEntry, manifest: ManifestFile) -> None:
    """Fill in what an entry leaves to its manifest: the snapshot that added it, the sequence number, the spec."""
    if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
        entry.snapshot_id = manifest.added_snapshot_id
    if entry.sequence_number is None:
        entry.sequence_number = manifest.sequence_number or 0
    entry.data_file.spec_id = manifest.partition_spec_id
