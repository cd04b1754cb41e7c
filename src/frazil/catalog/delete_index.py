"""Which delete files apply to a data file, by the rules of the format.

A position delete applies to data of its sequence number and older, in its partition or in the one file it names; a deletion
vector to its one file, and then no other position deletes do; an equality delete to data older than itself, in its
partition or, if its spec has none, everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.partitioning import PartitionSpec

from frazil.catalog.content_file import of_v3

_PATH_COLUMN: Final = 2147483546
"""The reserved id of the column in a position delete file that names data files."""


class DeleteIndex:
    """The deletes of one snapshot."""

    def __init__(self, specs: dict[int, PartitionSpec]) -> None:
        self._specs = specs
        self._of_path: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._vectors: dict[str, list[ManifestEntry]] = defaultdict(list)
        self._of_partition: dict[Any, list[ManifestEntry]] = defaultdict(list)
        self._everywhere: list[ManifestEntry] = []

    def add(self, entry: ManifestEntry) -> None:
        """Add a live delete file."""
        file = entry.data_file
        if file.content is DataFileContent.EQUALITY_DELETES and self._specs[file.spec_id].is_unpartitioned():
            self._everywhere.append(entry)
        elif of_v3(file, "content_offset") is not None:
            self._vectors[of_v3(file, "referenced_data_file")].append(entry)
        elif (path := _named_file(file)) is not None:
            self._of_path[path].append(entry)
        else:
            self._of_partition[_partition_of(file)].append(entry)

    def for_entry(self, data: ManifestEntry) -> list[DataFile]:
        """The delete files that a reader of this data file must apply."""
        file = data.data_file
        vectors = [entry for entry in self._vectors.get(file.file_path, ()) if _applies(entry, data)]
        by_path = [] if vectors else self._of_path.get(file.file_path, [])
        candidates = [*by_path, *self._of_partition.get(_partition_of(file), ()), *self._everywhere]
        found = [
            entry.data_file
            for entry in candidates
            if _applies(entry, data) and not (vectors and entry.data_file.content is DataFileContent.POSITION_DELETES)
        ]
        return [entry.data_file for entry in vectors] + found


def _partition_of(file: DataFile) -> tuple[int, tuple[Any, ...]]:
    return file.spec_id, tuple(file.partition[place] for place in range(len(file.partition)))


def _named_file(file: DataFile) -> str | None:
    """The one data file that a position delete file is about, if it is about one."""
    if file.content is not DataFileContent.POSITION_DELETES:
        return None
    if named := of_v3(file, "referenced_data_file"):
        return str(named)
    lower, upper = (file.lower_bounds or {}).get(_PATH_COLUMN), (file.upper_bounds or {}).get(_PATH_COLUMN)
    return lower.decode() if lower is not None and lower == upper else None


def _applies(delete: ManifestEntry, data: ManifestEntry) -> bool:
    """Whether the data is old enough; and, of position deletes, whether its path can be among those deleted from."""
    older, newer = data.sequence_number or 0, delete.sequence_number or 0
    if delete.data_file.content is DataFileContent.EQUALITY_DELETES:
        return older < newer
    return older <= newer and _may_name(delete.data_file, data.data_file.file_path.encode())


def _may_name(file: DataFile, path: bytes) -> bool:
    lower, upper = (file.lower_bounds or {}).get(_PATH_COLUMN), (file.upper_bounds or {}).get(_PATH_COLUMN)
    # An upper bound may be cut short, so a path that begins with it lies within.
    return (lower is None or lower <= path) and (upper is None or path <= upper or path.startswith(upper))
