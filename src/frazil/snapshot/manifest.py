"""Manifests: the files that list data files or delete files, written by writers, read back to validate and merge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self

from pyiceberg.io import FileIO, OutputStream
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from frazil.errors import BadInput, StorageFailed, WriteFailed
from frazil.snapshot.avro import Codec, ContainerWriter
from frazil.snapshot.avro_reader import read_records
from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.manifest_entry import ManifestEntry, Status, decode_entry, encode_head, file_encoder
from frazil.snapshot.manifest_file import FieldSummary, ManifestContent, ManifestFile
from frazil.snapshot.manifest_schema import ENTRY_READ_SCHEMA, avro_json, manifest_entry_schema, partition_type
from frazil.snapshot.partition_value import PartitionEncoder

__all__ = [
    "FieldSummary",
    "ManifestContent",
    "ManifestEntry",
    "ManifestFile",
    "ManifestWriter",
    "Status",
    "read_manifest_entries",
]


class ManifestWriter:
    """Writes one manifest, in bounded memory. `close` gives the entry that goes into a report and a manifest list.

    Added files leave their sequence numbers null, and so inherit them at publish. Used as a context manager it closes
    on success, and on an exception leaves no file. A file that cannot be listed here (deletes in a data manifest,
    values that do not fit the spec) is a BadInput, and the writer goes on without it. After a StorageFailed it is
    of no more use.
    """

    def __init__(
        self,
        io: FileIO,
        path: str,
        *,
        schema: Schema,
        spec: PartitionSpec,
        format_version: int,
        snapshot_id: int,
        content: ManifestContent = ManifestContent.DATA,
        codec: Codec = "deflate",
    ) -> None:
        _require_known(path, format_version, content)
        self._io, self._path = io, path
        self._spec_id, self._format_version, self._snapshot_id = spec.spec_id, format_version, snapshot_id
        self._content = content
        partition = partition_type(spec, schema)
        self._partitions = PartitionEncoder(partition)
        self._encode_file = file_encoder(format_version, self._partitions)
        self._added_head = encode_head(format_version, Status.ADDED, snapshot_id, None, None)
        self._stream: OutputStream | None = None
        self._container = ContainerWriter(
            self._open_stream,
            schema=avro_json(manifest_entry_schema(format_version, partition), "manifest_entry"),
            metadata=_metadata(schema, spec, format_version, content),
            codec=codec,
        )
        self._files, self._rows = [0, 0, 0], [0, 0, 0]
        self._lowest_sequence_number: int | None = None
        self._ended = False
        self._manifest: ManifestFile | None = None

    def add(self, file: DataFile) -> None:
        """List a file that this snapshot adds. Its row ids, like its sequence numbers, are assigned at publish."""
        if file.first_row_id is not None:
            file = replace(file, first_row_id=None)
        self._append(Status.ADDED, self._added_head, file)

    def existing(
        self, file: DataFile, snapshot_id: int, sequence_number: int | None, file_sequence_number: int | None
    ) -> None:
        """List a live file of an earlier snapshot, which keeps the numbers it has. (None: only in a v1 table.)"""
        self._append_numbered(Status.EXISTING, file, snapshot_id, sequence_number, file_sequence_number)
        if sequence_number is not None:
            lowest = self._lowest_sequence_number
            self._lowest_sequence_number = sequence_number if lowest is None else min(lowest, sequence_number)

    def delete(
        self,
        file: DataFile,
        sequence_number: int | None,
        file_sequence_number: int | None,
        *,
        snapshot_id: int | None = None,
    ) -> None:
        """List a file that this snapshot (or the one given) removes, with the numbers the file had."""
        removed_by = self._snapshot_id if snapshot_id is None else snapshot_id
        self._append_numbered(Status.DELETED, file, removed_by, sequence_number, file_sequence_number)

    def close(self) -> ManifestFile:
        """Finish the file. WriteFailed, and no file, if nothing was listed. A second call returns the same value."""
        if self._manifest is not None:
            return self._manifest
        self._require_open()
        if not any(self._files):
            raise WriteFailed(f"manifest {self._path} is empty and was not written: list a file before closing it")
        try:
            length = self._container.finish()
            if self._stream is not None:
                self._stream.close()
        except OSError as error:
            raise self._storage_failed(error) from error
        self._ended = True
        self._manifest = self._describe(length)
        return self._manifest

    def abandon(self) -> None:
        """End without a manifest and leave no file behind. Does nothing after `close`."""
        if self._manifest is not None:
            return
        self._ended = True
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.close()
            self._io.delete(self._path)
        except OSError as error:
            raise StorageFailed(f"cannot remove the unfinished manifest {self._path}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def _append_numbered(
        self,
        status: Status,
        file: DataFile,
        snapshot_id: int,
        sequence_number: int | None,
        file_sequence_number: int | None,
    ) -> None:
        if sequence_number is None and self._format_version > 1:
            raise self._refusal(file, f"only added files inherit their sequence number, and it is {status.name}")
        head = encode_head(self._format_version, status, snapshot_id, sequence_number, file_sequence_number)
        self._append(status, head, file)

    def _append(self, status: Status, head: bytes, file: DataFile) -> None:
        self._require_open()
        self._require_listable(file)
        try:
            record = head + self._encode_file(file)
        except (BadInput, TypeError, ValueError, OverflowError) as error:
            raise self._refusal(file, str(error)) from error
        try:
            self._container.append(record)
        except OSError as error:
            raise self._storage_failed(error) from error
        self._files[status] += 1
        self._rows[status] += file.record_count

    def _require_open(self) -> None:
        if self._ended:
            raise WriteFailed(f"manifest {self._path} has been closed, abandoned or has failed; start another")

    def _require_listable(self, file: DataFile) -> None:
        if (file.content is FileContent.DATA) != (self._content is ManifestContent.DATA):
            raise self._refusal(file, f"it holds {file.content.name}, and the manifest lists {self._content.name}")
        if file.spec_id != self._spec_id:
            raise self._refusal(file, f"it is of partition spec {file.spec_id}, and the manifest of {self._spec_id}")
        if file.content_offset is not None:
            if self._format_version < 3:
                raise self._refusal(file, f"deletion vectors need format version 3, not {self._format_version}")
            if file.referenced_data_file is None or file.content_size_in_bytes is None:
                raise self._refusal(file, "a deletion vector names its data file and its size")

    def _refusal(self, file: DataFile, reason: str) -> BadInput:
        return BadInput(f"{file.file_path} cannot be listed in manifest {self._path}: {reason}")

    def _storage_failed(self, error: OSError) -> StorageFailed:
        self._ended = True
        return StorageFailed(f"cannot write manifest {self._path}: {error}")

    def _open_stream(self) -> OutputStream:
        self._stream = self._io.new_output(self._path).create(overwrite=True)
        return self._stream

    def _describe(self, length: int) -> ManifestFile:
        return ManifestFile(
            manifest_path=self._path,
            manifest_length=length,
            partition_spec_id=self._spec_id,
            content=self._content,
            added_snapshot_id=self._snapshot_id,
            min_sequence_number=self._lowest_sequence_number,
            added_files_count=self._files[Status.ADDED],
            existing_files_count=self._files[Status.EXISTING],
            deleted_files_count=self._files[Status.DELETED],
            added_rows_count=self._rows[Status.ADDED],
            existing_rows_count=self._rows[Status.EXISTING],
            deleted_rows_count=self._rows[Status.DELETED],
            partitions=self._partitions.summaries(),
        )


def _require_known(path: str, format_version: int, content: ManifestContent) -> None:
    if format_version not in (1, 2, 3):
        raise BadInput(f"manifest {path}: format version {format_version} is not known; 1, 2 and 3 are")
    if format_version == 1 and content is ManifestContent.DELETES:
        raise BadInput(f"manifest {path}: a v1 table has no delete files; upgrade it to v2 first")


def _metadata(schema: Schema, spec: PartitionSpec, format_version: int, content: ManifestContent) -> dict[str, str]:
    metadata = {
        "schema": schema.model_dump_json(),
        "partition-spec": "[" + ",".join(field.model_dump_json() for field in spec.fields) + "]",
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    return metadata if format_version == 1 else {**metadata, "content": content.name.lower()}


def read_manifest_entries(io: FileIO, manifest: ManifestFile, *, live_only: bool = False) -> Iterator[ManifestEntry]:
    """The entries of a manifest of any version, in order, with everything inherited; deleted ones too unless refused.

    The manifest is read whole at the first step. StorageFailed if it cannot be read, is damaged, or does not hold as
    many entries as its description says.
    """
    next_row_id = manifest.first_row_id
    count = 0
    for record in read_records(io, manifest.manifest_path, ENTRY_READ_SCHEMA):
        count += 1
        entry = decode_entry(record, manifest)
        if next_row_id is not None and _lacks_row_ids(entry):
            entry = entry._replace(data_file=replace(entry.data_file, first_row_id=next_row_id))
            next_row_id += entry.data_file.record_count
        if not live_only or entry.status is not Status.DELETED:
            yield entry
    _require_count(manifest, count)


def _lacks_row_ids(entry: ManifestEntry) -> bool:
    file = entry.data_file
    return entry.status is not Status.DELETED and file.content is FileContent.DATA and file.first_row_id is None


def _require_count(manifest: ManifestFile, count: int) -> None:
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    expected = sum(known for known in counts if known is not None)
    if None not in counts and count != expected:
        raise StorageFailed(f"{manifest.manifest_path} holds {count} entries where its manifest list says {expected}")
