from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FieldSummary(_message.Message):
    __slots__ = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
    CONTAINS_NULL_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_NAN_FIELD_NUMBER: _ClassVar[int]
    LOWER_BOUND_FIELD_NUMBER: _ClassVar[int]
    UPPER_BOUND_FIELD_NUMBER: _ClassVar[int]
    contains_null: bool
    contains_nan: bool
    lower_bound: bytes
    upper_bound: bytes
    def __init__(self, contains_null: _Optional[bool] = ..., contains_nan: _Optional[bool] = ..., lower_bound: _Optional[bytes] = ..., upper_bound: _Optional[bytes] = ...) -> None: ...

class ManifestFile(_message.Message):
    __slots__ = ("manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number", "added_snapshot_id", "added_files_count", "existing_files_count", "deleted_files_count", "added_rows_count", "existing_rows_count", "deleted_rows_count", "partitions", "key_metadata", "first_row_id")
    MANIFEST_PATH_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_LENGTH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_SPEC_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    MIN_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    ADDED_SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    ADDED_FILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELETED_FILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    ADDED_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    EXISTING_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    DELETED_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    KEY_METADATA_FIELD_NUMBER: _ClassVar[int]
    FIRST_ROW_ID_FIELD_NUMBER: _ClassVar[int]
    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int
    existing_files_count: int
    deleted_files_count: int
    added_rows_count: int
    existing_rows_count: int
    deleted_rows_count: int
    partitions: _containers.RepeatedCompositeFieldContainer[FieldSummary]
    key_metadata: bytes
    first_row_id: int
    def __init__(self, manifest_path: _Optional[str] = ..., manifest_length: _Optional[int] = ..., partition_spec_id: _Optional[int] = ..., content: _Optional[int] = ..., sequence_number: _Optional[int] = ..., min_sequence_number: _Optional[int] = ..., added_snapshot_id: _Optional[int] = ..., added_files_count: _Optional[int] = ..., existing_files_count: _Optional[int] = ..., deleted_files_count: _Optional[int] = ..., added_rows_count: _Optional[int] = ..., existing_rows_count: _Optional[int] = ..., deleted_rows_count: _Optional[int] = ..., partitions: _Optional[_Iterable[_Union[FieldSummary, _Mapping]]] = ..., key_metadata: _Optional[bytes] = ..., first_row_id: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("version", "commit_uuid", "snapshot_id", "shard", "attempt", "manifests", "counts", "partitions", "rejected_rows", "rejected")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_UUID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MANIFESTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_ROWS_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    version: int
    commit_uuid: str
    snapshot_id: int
    shard: str
    attempt: int
    manifests: _containers.RepeatedCompositeFieldContainer[ManifestFile]
    counts: _containers.ScalarMap[str, int]
    partitions: _containers.RepeatedScalarFieldContainer[str]
    rejected_rows: int
    rejected: Report
    def __init__(self, version: _Optional[int] = ..., commit_uuid: _Optional[str] = ..., snapshot_id: _Optional[int] = ..., shard: _Optional[str] = ..., attempt: _Optional[int] = ..., manifests: _Optional[_Iterable[_Union[ManifestFile, _Mapping]]] = ..., counts: _Optional[_Mapping[str, int]] = ..., partitions: _Optional[_Iterable[str]] = ..., rejected_rows: _Optional[int] = ..., rejected: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...
