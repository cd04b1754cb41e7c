"""Which delete files apply to which data file, by the format's rules of sequence numbers, partitions and paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.partitioning import PartitionSpec

from frazil.snapshot.data_file import DataFile, FileContent
from frazil.snapshot.delete_file import FILE_PATH_ID
from frazil.snapshot.manifest_entry import ManifestEntry


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """What a reader needs of a delete file. `equality_ids` only for equality deletes, `offset` for vectors."""

    path: str
    format: str
    size: int
    equality_ids: tuple[int, ...] = ()
    offset: int | None = None
    length: int = 0

    @classmethod
    def of(cls, file: DataFile) -> DeleteFile:
        """The reader's view of a listed delete file."""
        return cls(
            file.file_path,
            file.file_format,
            file.file_size_in_bytes,
            file.equality_ids if file.content is FileContent.EQUALITY_DELETES else (),
            file.content_offset,
            file.content_size_in_bytes or 0,
        )

    @property
    def bytes_to_read(self) -> int:
        """What of the file must be read: of a vector's file the vector alone."""
        return self.size if self.offset is None else self.length


_Key = tuple[int, tuple[Any, ...]]
_Listed = list[tuple[int, DataFile]]


class DeleteIndex:
    """All live delete files of a snapshot, found again by data file."""

    def __init__(self, entries: Iterable[ManifestEntry], specs: Mapping[int, PartitionSpec]) -> None:
        self._vectors: dict[str, tuple[int, DataFile]] = {}
        self._by_path: dict[str, _Listed] = defaultdict(list)
        self._by_partition: dict[_Key, _Listed] = defaultdict(list)
        self._equality: dict[_Key, _Listed] = defaultdict(list)
        self._everywhere: _Listed = []
        for entry in entries:
            self._add(entry.sequence_number or 0, entry.data_file, specs)

    def deletes_of(self, data: DataFile, sequence_number: int) -> tuple[DeleteFile, ...]:
        """Those that may delete rows of this file. A vector stands for every position delete there is."""
        key = (data.spec_id, data.partition)
        vector = self._vectors.get(data.file_path)
        if vector is not None and vector[0] >= sequence_number:
            found = [vector[1]]
        else:
            listed = (*self._by_path.get(data.file_path, ()), *self._by_partition.get(key, ()))
            found = [file for sequence, file in listed if sequence >= sequence_number]
        listed = (*self._equality.get(key, ()), *self._everywhere)
        found += [file for sequence, file in listed if sequence > sequence_number]
        return tuple(map(DeleteFile.of, found))

    def _add(self, sequence: int, file: DataFile, specs: Mapping[int, PartitionSpec]) -> None:
        key = (file.spec_id, file.partition)
        if file.content is FileContent.EQUALITY_DELETES:
            anywhere = specs[file.spec_id].is_unpartitioned()
            (self._everywhere if anywhere else self._equality[key]).append((sequence, file))
        elif file.content_offset is not None and file.referenced_data_file is not None:
            known = self._vectors.get(file.referenced_data_file)
            if known is None or known[0] < sequence:
                self._vectors[file.referenced_data_file] = (sequence, file)
        elif (path := _only_path(file)) is not None:
            self._by_path[path].append((sequence, file))
        else:
            self._by_partition[key].append((sequence, file))


def _only_path(file: DataFile) -> str | None:
    """The one data file whose rows a file of positions deletes, where its description says so."""
    if file.referenced_data_file is not None:
        return file.referenced_data_file
    lower, upper = file.lower_bounds.get(FILE_PATH_ID), file.upper_bounds.get(FILE_PATH_ID)
    # A bound that was cut short is raised at the upper end, so equal bounds are whole paths.
    return lower.decode() if lower is not None and lower == upper else None
