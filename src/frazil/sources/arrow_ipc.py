"""Arrow IPC: files (Feather among them), cut into shards by record batch, and streams, each read whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs, ipc

from frazil.sources.file_parts import Contents, PartsShard, PartsSource, parts_of
from frazil.sources.open import SourceRequest

_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ArrowFormat:
    """Arrow IPC in either form, told by its first bytes. A batch on an object store is held whole while it is read."""

    kind: str = "arrow"
    part: str = "batch"

    def contents(self, system: Any, path: str) -> Contents:
        """Of a file what its footer says; a stream is one part, however many batches are in it."""
        with _opened(system, path) as stream:
            if _is_file(stream):
                file = ipc.open_file(stream)
                return Contents(file.schema, file.num_record_batches, 0)
            return Contents(ipc.open_stream(stream).schema, 1, 0)

    def read(self, system: Any, path: str, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batch by batch; each is checked, since the bytes of a damaged file would be used as they are."""
        with _opened(system, path) as stream:
            for number, batch in _batches(stream, first, last):
                batch.validate()
                yield number, batch


def open_source(request: SourceRequest) -> PartsSource:
    """The kind's way in; see `frazil.sources.open`."""
    return PartsSource(request, ArrowFormat())


def shard_from_document(name: str, document: Mapping[str, Any]) -> PartsShard:
    """The kind's way back from a job's log."""
    return PartsShard(name, parts_of(document), ArrowFormat())


def _opened(system: Any, path: str) -> Any:
    """Mapped into memory where that is possible: then a batch that is not compressed takes none of its own."""
    if isinstance(system, fs.LocalFileSystem) and system.get_file_info(path).size:
        return pa.memory_map(path)
    return system.open_input_file(path)


def _batches(stream: Any, first: int, last: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not _is_file(stream):
        yield from enumerate(ipc.open_stream(stream))
        return
    file = ipc.open_file(stream)
    for number in range(first, last):
        yield number, file.get_batch(number)


def _is_file(stream: Any) -> bool:
    magic = stream.read(len(_FILE_MAGIC))
    stream.seek(0)
    return bool(magic == _FILE_MAGIC)
