"""One entry of a manifest: a file and what happened to it. To Avro and back."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from pyiceberg.typedef import Record

from frazil.snapshot.avro import (
    NULL,
    PRESENT,
    encode_bytes,
    encode_long,
    encode_longs,
    encode_string,
    optional,
    optional_bytes_map,
    optional_long_map,
)
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.manifest_file import ManifestFile
from frazil.snapshot.manifest_schema import BLOCK_SIZE_IN_BYTES
from frazil.snapshot.partition_value import PartitionEncoder

_optional_long = optional(encode_long)
_optional_bytes = optional(encode_bytes)
_optional_string = optional(encode_string)


class Status(IntEnum):
    """What happened to a file in the snapshot that wrote the entry (the format's field 0)."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class ManifestEntry(NamedTuple):
    """An entry as read, with all that it inherits from its manifest. Numbers are None before publish."""

    status: Status
    snapshot_id: int
    sequence_number: int | None
    file_sequence_number: int | None
    data_file: DataFile


def encode_head(
    format_version: int,
    status: Status,
    snapshot_id: int,
    sequence_number: int | None,
    file_sequence_number: int | None,
) -> bytes:
    """The fields of an entry that come before its file."""
    if format_version == 1:
        return encode_long(status) + encode_long(snapshot_id)
    numbers = (snapshot_id, sequence_number, file_sequence_number)
    return encode_long(status) + b"".join(map(_optional_long, numbers))


def file_encoder(format_version: int, partitions: PartitionEncoder) -> Callable[[DataFile], bytes]:
    """The encoder of an entry's file, made once per manifest: nothing in it asks again for version, spec or types."""
    long_maps = [optional_long_map() for _ in range(4)]
    column_sizes, value_counts, null_value_counts, nan_value_counts = long_maps
    lower_bounds, upper_bounds = optional_bytes_map(), optional_bytes_map()
    encode_partition = partitions.encode
    encode_tail = _TAILS[format_version]
    block_size = encode_long(BLOCK_SIZE_IN_BYTES) if format_version == 1 else b""
    contents = {content: b"" if format_version == 1 else encode_long(content) for content in FileContent}

    def encode(file: DataFile) -> bytes:
        return b"".join(
            (
                contents[file.content],
                encode_string(file.file_path),
                encode_string(file.file_format),
                encode_partition(file.partition),
                encode_long(file.record_count),
                encode_long(file.file_size_in_bytes),
                block_size,
                column_sizes(file.column_sizes),
                value_counts(file.value_counts),
                null_value_counts(file.null_value_counts),
                nan_value_counts(file.nan_value_counts),
                lower_bounds(file.lower_bounds),
                upper_bounds(file.upper_bounds),
                _optional_bytes(file.key_metadata),
                PRESENT + encode_longs(file.split_offsets) if file.split_offsets else NULL,
                encode_tail(file),
            )
        )

    return encode


def _v1_tail(file: DataFile) -> bytes:
    return _optional_long(file.sort_order_id)


def _v2_tail(file: DataFile) -> bytes:
    equality_ids = PRESENT + encode_longs(file.equality_ids) if file.equality_ids else NULL
    return equality_ids + _optional_long(file.sort_order_id) + _optional_string(file.referenced_data_file)


def _v3_tail(file: DataFile) -> bytes:
    equality_ids = PRESENT + encode_longs(file.equality_ids) if file.equality_ids else NULL
    return (
        equality_ids
        + _optional_long(file.sort_order_id)
        + _optional_long(file.first_row_id)
        + _optional_string(file.referenced_data_file)
        + _optional_long(file.content_offset)
        + _optional_long(file.content_size_in_bytes)
    )


_TAILS = {1: _v1_tail, 2: _v2_tail, 3: _v3_tail}


def decode_entry(record: Record, manifest: ManifestFile) -> ManifestEntry:
    """An entry read by `ENTRY_READ_SCHEMA`, with the snapshot and the sequence numbers it inherits."""
    status, snapshot_id, sequence_number, file_sequence_number, file = record._data
    # Manifests of v1 keep no numbers: all their files count as of sequence number 0, whatever their status.
    inherits = status == Status.ADDED or manifest.sequence_number == 0
    inherited = manifest.sequence_number if inherits else None
    return ManifestEntry(
        Status(status),
        manifest.added_snapshot_id if snapshot_id is None else snapshot_id,
        inherited if sequence_number is None else sequence_number,
        inherited if file_sequence_number is None else file_sequence_number,
        _decode_file(file, manifest.partition_spec_id),
    )


def _decode_file(record: Record, spec_id: int) -> DataFile:
    content, path, file_format, partition, record_count, size = record._data[:6]
    sizes, values, nulls, nans, lower, upper = (dict(statistic or ()) for statistic in record._data[6:12])
    key_metadata, split_offsets, equality_ids, sort_order_id = record._data[12:16]
    first_row_id, referenced, content_offset, content_size = record._data[16:]
    return DataFile(
        file_path=path,
        record_count=record_count,
        file_size_in_bytes=size,
        partition=tuple(partition._data),
        spec_id=spec_id,
        content=FileContent(content),
        file_format=file_format.upper(),
        column_sizes=sizes,
        value_counts=values,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lower,
        upper_bounds=upper,
        key_metadata=key_metadata,
        split_offsets=tuple(split_offsets or ()),
        equality_ids=tuple(equality_ids or ()),
        sort_order_id=sort_order_id,
        first_row_id=first_row_id,
        referenced_data_file=referenced,
        content_offset=content_offset,
        content_size_in_bytes=content_size,
    )
