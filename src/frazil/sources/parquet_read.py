"""Row groups of a Parquet file as Arrow batches, decoded a piece at a time and no further than the writer needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from frazil.errors import SourceNotFound, SourceUnreadable

_BATCH_ROWS = 131_072
_BATCH_BYTES = 32 * 1024 * 1024
_READ_AHEAD = 1024 * 1024
_SMALL_DICTIONARY = 64 * 1024
_INDEX_BYTES = 2.5


def read_row_groups(
    filesystem: FileSystem, path: str, row_groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of these row groups (all, if not told), in the file's order.

    Memory is bounded by the batches, not by the row groups. Strings that the file holds as a small dictionary come as
    Arrow dictionaries. SourceNotFound or SourceUnreadable name the file.
    """
    try:
        footer = _footer(filesystem, path)
        with filesystem.open_input_file(path) as stream:
            file = pq.ParquetFile(
                stream,
                metadata=footer,
                read_dictionary=dictionary_strings(footer),
                pre_buffer=False,
                buffer_size=_READ_AHEAD,
            )
            groups = list(range(footer.num_row_groups) if row_groups is None else row_groups)
            yield from file.iter_batches(_batch_rows(footer, groups), groups, columns, use_threads=False)
    except FileNotFoundError as error:
        raise SourceNotFound(f"Parquet file {path} is not there") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise SourceUnreadable(f"Parquet file {path} cannot be read: {error}") from error


def dictionary_strings(footer: pq.FileMetaData) -> list[str]:
    """The columns of strings whose every value, as far as the footer shows, is in a small dictionary.

    A writer gives a dictionary up when it grows past its limit and goes on in plain; decoding such a column to a
    dictionary costs more than it saves. The footer does not say so outright: the size of the column does.
    """
    if not footer.num_row_groups:
        return []
    return [
        footer.schema.column(at).path
        for at in range(footer.num_columns)
        if _is_string(footer.schema.column(at)) and _all_small(footer, at)
    ]


def _footer(filesystem: FileSystem, path: str) -> pq.FileMetaData:
    with filesystem.open_input_file(path) as stream:
        return pq.read_metadata(stream)


def _is_string(column: pq.ColumnSchema) -> bool:
    repeated_or_nested = column.max_repetition_level > 0 or "." in column.path
    return bool(
        column.physical_type == "BYTE_ARRAY" and not repeated_or_nested and column.logical_type.type == "STRING"
    )


def _all_small(footer: pq.FileMetaData, at: int) -> bool:
    return all(_small_dictionary(footer.row_group(group).column(at)) for group in range(footer.num_row_groups))


def _small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    if not chunk.has_dictionary_page:
        return False
    dictionary = chunk.data_page_offset - chunk.dictionary_page_offset
    indices = chunk.total_uncompressed_size - dictionary
    return bool(dictionary <= _SMALL_DICTIONARY and indices <= _INDEX_BYTES * chunk.num_values + _SMALL_DICTIONARY)


def _batch_rows(footer: pq.FileMetaData, groups: list[int]) -> int:
    rows = sum(int(footer.row_group(group).num_rows) for group in groups)
    size = sum(int(footer.row_group(group).total_byte_size) for group in groups)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * rows // max(size, 1)))
