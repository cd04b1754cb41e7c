"""What a source gives: shards that any host can read, and read again with the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from pyiceberg.schema import Schema


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that the source holds and nobody can read: where it is, why it is bad, and its text as far as it has one."""

    position: str
    reason: str
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class LocatedBatch:
    """Rows, and `position`, which tells where in the source the row of that number in the batch comes from."""

    batch: pa.RecordBatch
    position: Callable[[int], str]


OnBadRow = Callable[[BadRow], None]


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
        """As JSON values, for the job's log; the value of "kind" is the source's kind."""


@runtime_checkable
class LocatedShard(Shard, Protocol):
    """A shard that knows where each row comes from, and can go on after one that it cannot read."""

    def located(self, storage: Mapping[str, str], on_bad_row: OnBadRow | None = None) -> Iterator[LocatedBatch]:
        """The rows of `batches`. A row that cannot be read goes to `on_bad_row`; without it, it is SourceUnreadable."""


class Source(Protocol):
    """Something that can be cut into shards. What can be wrong with it shows when it is opened, before any write."""

    @property
    def description(self) -> str:
        """As the user named it."""

    @property
    def rows(self) -> int:
        """Rows in all of it, or 0 where that is not known before reading."""

    @property
    def bytes(self) -> int:
        """Bytes to read."""

    def for_table(self, schema: Schema) -> Source:
        """The source as it reads for a table that is there: one without types of its own takes the table's."""

    def schema(self) -> pa.Schema:
        """One schema that all of it fits."""

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Each distinct schema with the place (a file, say) that has it first."""

    def shards(self, count: int) -> Sequence[Shard]:
        """About `count` shards of like size."""


def located_batches(
    shard: Shard, storage: Mapping[str, str], on_bad_row: OnBadRow | None = None
) -> Iterator[LocatedBatch]:
    """The rows of any shard with their positions; of one that does not know them, the row's number in the shard."""
    if isinstance(shard, LocatedShard):
        yield from shard.located(storage, on_bad_row)
    else:
        yield from numbered(shard.batches(storage), f"shard {shard.name}")


def numbered(batches: Iterator[pa.RecordBatch], place: str) -> Iterator[LocatedBatch]:
    """Batches whose rows are counted from 1 on within `place`."""
    before = 0
    for batch in batches:
        yield LocatedBatch(batch, _counted(place, before))
        before += batch.num_rows


def _counted(place: str, before: int) -> Callable[[int], str]:
    return lambda row: f"{place}, row {before + row + 1}"
