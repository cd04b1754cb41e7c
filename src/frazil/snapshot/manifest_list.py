"""The manifest list: all the manifests of one snapshot. Here sequence numbers and row ids are assigned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from pyiceberg.io import FileIO
from pyiceberg.typedef import Record

from frazil.errors import BadInput, StorageFailed
from frazil.snapshot.avro import (
    NULL,
    PRESENT,
    Codec,
    ContainerWriter,
    encode_array,
    encode_boolean,
    encode_bytes,
    encode_long,
    encode_string,
    optional,
)
from frazil.snapshot.avro_reader import read_records
from frazil.snapshot.manifest_file import FieldSummary, ManifestContent, ManifestFile
from frazil.snapshot.manifest_schema import LIST_READ_SCHEMA, avro_json, manifest_list_schema

_COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
"""In the order in which the format lists them."""

_optional_long = optional(encode_long)
_optional_bytes = optional(encode_bytes)
_optional_boolean = optional(encode_boolean)


class WrittenList(NamedTuple):
    """A manifest list as it was written."""

    path: str
    length: int
    manifests: tuple[ManifestFile, ...]
    """The entries with all that was assigned to them."""
    next_row_id: int | None
    """v3: the first row id that is still free."""
    added_rows: int | None
    """v3: how many row ids were assigned, which is what the snapshot says as `added-rows`."""


def write_manifest_list(
    io: FileIO,
    path: str,
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    manifests: Iterable[ManifestFile],
    first_row_id: int | None = None,
    codec: Codec = "deflate",
) -> WrittenList:
    """Write one snapshot's list, assigning what its manifests lack. In v3 `first_row_id` is the table's next row id.

    BadInput if a manifest lacks a sequence number but another snapshot wrote it, if it lists deletes and the table is
    v1, or if the version needs what is missing. StorageFailed if the list cannot be written. All checks come before
    the first byte.
    """
    if format_version not in (1, 2, 3):
        raise BadInput(f"manifest list {path}: format version {format_version} is not known; 1, 2 and 3 are")
    if (first_row_id is None) == (format_version == 3):
        raise BadInput(f"manifest list {path}: a first row id is needed in format version 3, and only there")
    numbered = [_numbered(manifest, format_version, snapshot_id, sequence_number) for manifest in manifests]
    assigned, next_row_id = _with_row_ids(numbered, first_row_id)
    metadata = _metadata(format_version, snapshot_id, parent_snapshot_id, sequence_number, first_row_id)
    encode = _encode_v1 if format_version == 1 else _encode_v2 if format_version == 2 else _encode_v3
    length = _store(io, path, format_version, metadata, [encode(manifest) for manifest in assigned], codec)
    added_rows = None if next_row_id is None or first_row_id is None else next_row_id - first_row_id
    return WrittenList(path, length, tuple(assigned), next_row_id, added_rows)


def read_manifest_list(io: FileIO, path: str) -> list[ManifestFile]:
    """The manifests of a list of any version, with all it says of them. StorageFailed if it cannot be read."""
    return [_decode(record) for record in read_records(io, path, LIST_READ_SCHEMA)]


def _numbered(manifest: ManifestFile, format_version: int, snapshot_id: int, sequence_number: int) -> ManifestFile:
    if format_version == 1:
        if manifest.content is not ManifestContent.DATA:
            raise BadInput(f"manifest {manifest.manifest_path} lists deletes, and a v1 table has none")
        return manifest
    _require_counts(manifest)
    if manifest.sequence_number is not None and manifest.min_sequence_number is not None:
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise BadInput(
            f"manifest {manifest.manifest_path} has no sequence number and was written by snapshot"
            f" {manifest.added_snapshot_id}, so snapshot {snapshot_id} cannot give it one"
        )
    own, lowest = manifest.sequence_number, manifest.min_sequence_number
    return replace(
        manifest,
        sequence_number=sequence_number if own is None else own,
        min_sequence_number=sequence_number if lowest is None else lowest,
    )


def _counts(manifest: ManifestFile) -> tuple[int | None, ...]:
    return tuple(getattr(manifest, name) for name in _COUNTS)


def _require_counts(manifest: ManifestFile) -> None:
    if None in _counts(manifest):
        raise BadInput(
            f"manifest {manifest.manifest_path} comes from a v1 list without file and row counts, which later versions"
            " require: rewrite the table's manifests before upgrading it"
        )


def _with_row_ids(manifests: list[ManifestFile], first_row_id: int | None) -> tuple[list[ManifestFile], int | None]:
    if first_row_id is None:
        return manifests, None
    assigned, next_row_id = [], first_row_id
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES:
            manifest = replace(manifest, first_row_id=None)
        elif manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += (manifest.existing_rows_count or 0) + (manifest.added_rows_count or 0)
        assigned.append(manifest)
    return assigned, next_row_id


def _metadata(
    format_version: int, snapshot_id: int, parent: int | None, sequence_number: int, first_row_id: int | None
) -> dict[str, str]:
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
    if first_row_id is not None:
        metadata["first-row-id"] = str(first_row_id)
    return metadata


def _store(
    io: FileIO, path: str, format_version: int, metadata: dict[str, str], records: list[bytes], codec: Codec
) -> int:
    schema = avro_json(manifest_list_schema(format_version), "manifest_file")
    try:
        with io.new_output(path).create(overwrite=True) as stream:
            container = ContainerWriter(lambda: stream, schema=schema, metadata=metadata, codec=codec)
            for record in records:
                container.append(record)
            return container.finish()
    except OSError as error:
        raise StorageFailed(f"cannot write manifest list {path}: {error}") from error


def _encode_v1(manifest: ManifestFile) -> bytes:
    counts = b"".join(map(_optional_long, _counts(manifest)))
    return _identity(manifest) + encode_long(manifest.added_snapshot_id) + counts + _tail(manifest)


def _encode_v2(manifest: ManifestFile) -> bytes:
    numbers = (manifest.sequence_number, manifest.min_sequence_number, manifest.added_snapshot_id, *_counts(manifest))
    present = [encode_long(number) for number in numbers if number is not None]  # all of them: `_numbered` saw to it
    return _identity(manifest) + encode_long(manifest.content) + b"".join(present) + _tail(manifest)


def _encode_v3(manifest: ManifestFile) -> bytes:
    return _encode_v2(manifest) + _optional_long(manifest.first_row_id)


def _identity(manifest: ManifestFile) -> bytes:
    path = encode_string(manifest.manifest_path)
    return path + encode_long(manifest.manifest_length) + encode_long(manifest.partition_spec_id)


def _tail(manifest: ManifestFile) -> bytes:
    summaries = [_encode_summary(summary) for summary in manifest.partitions]
    partitions = PRESENT + encode_array(summaries) if summaries else NULL
    return partitions + _optional_bytes(manifest.key_metadata)


def _encode_summary(summary: FieldSummary) -> bytes:
    return (
        encode_boolean(summary.contains_null)
        + _optional_boolean(summary.contains_nan)
        + _optional_bytes(summary.lower_bound)
        + _optional_bytes(summary.upper_bound)
    )


def _decode(record: Record) -> ManifestFile:
    path, length, spec_id, content, sequence_number, min_sequence_number, snapshot_id = record._data[:7]
    partitions, key_metadata, first_row_id = record._data[13:]
    return ManifestFile(
        manifest_path=path,
        manifest_length=length,
        partition_spec_id=spec_id,
        content=ManifestContent(content),
        added_snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        min_sequence_number=min_sequence_number,
        **dict(zip(_COUNTS, record._data[7:13], strict=True)),
        partitions=tuple(FieldSummary(*summary._data) for summary in partitions or ()),
        key_metadata=key_metadata,
        first_row_id=first_row_id,
    )
