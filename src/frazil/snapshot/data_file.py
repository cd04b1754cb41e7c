"""A file of rows, or of deletes, as the value that a manifest entry holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class FileContent(IntEnum):
    """What the rows of a file are (the format's field 134)."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


_NONE: Mapping[int, Any] = {}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data or delete file with all that the format keeps about it.

    `partition` holds one value per field of the spec, in the spec's order, in the transform's own result type
    (an int for `day`, `month`, `bucket`; the column's Python value for `identity` and `truncate`), None for null.
    """

    file_path: str
    record_count: int
    file_size_in_bytes: int
    partition: tuple[Any, ...] = ()
    spec_id: int = 0
    content: FileContent = FileContent.DATA
    file_format: str = "PARQUET"
    column_sizes: Mapping[int, int] = field(default_factory=lambda: _NONE)
    value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE)
    null_value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE)
    nan_value_counts: Mapping[int, int] = field(default_factory=lambda: _NONE)
    lower_bounds: Mapping[int, bytes] = field(default_factory=lambda: _NONE)
    upper_bounds: Mapping[int, bytes] = field(default_factory=lambda: _NONE)
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] = ()
    equality_ids: tuple[int, ...] = ()
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
