"""What a source gives: shards that any host can read, and read again with the same result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class Shard(Protocol):
    """One picklable, self-describing piece of a source.

    `batches` is called on a writer, perhaps several times and on several hosts, and gives the same rows in the same
    order each time; it raises SourceUnreadable if the piece is damaged or has changed since it was planned.
    """

    @property
    def name(self) -> str:
        """Unique within the job; part of the names of the files made from it."""

    @property
    def rows(self) -> int:
        """Rows in it, or 0 where that is not known before reading."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows. `storage` are FileIO properties for object stores."""

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values, for the job's log."""
