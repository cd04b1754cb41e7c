"""Exactly once for writers that number their batches: the last one of each query stands in a table property.

The property is set by the same update that adds the batch's snapshot, so it is there if and only if the rows are. It
outlives the snapshot, which may be expired, and every publisher looks at it anew before each attempt: of two that
publish the same batch, one moves the branch, and the other's next look finds the batch there.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata

from frazil.errors import BadInput, BatchAlreadyLanded
from frazil.snapshot.reservation import ended, reservations

BATCH_PROPERTY_PREFIX = "frazil.batch."
QUERY_SUMMARY = "frazil.query-id"
BATCH_SUMMARY = "frazil.batch-id"

_PREFIX_BYTES = 8


@dataclass(frozen=True, slots=True)
class NumberedBatch:
    """Batch `batch_id` of a query. A query's batches are numbered in the order in which they are written."""

    query_id: str
    batch_id: int

    @property
    def key(self) -> str:
        """The table property that holds the query's last batch."""
        return f"{BATCH_PROPERTY_PREFIX}{self.query_id}"

    @property
    def properties(self) -> dict[str, str]:
        """What the table keeps."""
        return {self.key: str(self.batch_id)}

    @property
    def summary(self) -> dict[str, str]:
        """What the snapshot says of itself."""
        return {QUERY_SUMMARY: self.query_id, BATCH_SUMMARY: str(self.batch_id)}


def last_batch(metadata: TableMetadata, query_id: str) -> int | None:
    """The number of the query's last batch that is in the table; None if none is."""
    key = NumberedBatch(query_id, 0).key
    value = metadata.properties.get(key)
    if value is not None and not value.isdigit():
        raise BadInput(
            f"the table property {key} is {value!r}, which no Frazil has written; set it to the number of the last "
            "batch of that query that is in the table"
        )
    return None if value is None else int(value)


def check_batch(metadata: TableMetadata, batch: NumberedBatch, table: str) -> None:
    """Raise BatchAlreadyLanded if this batch, or a later one, is in the table."""
    last = last_batch(metadata, batch.query_id)
    if last is not None and last >= batch.batch_id:
        raise BatchAlreadyLanded(
            f"batch {batch.batch_id} of query {batch.query_id} is in table {table} already (its last one there is "
            f"{last}); it is not written again"
        )


def uuids_of_query(query_id: str) -> Callable[[], uuid.UUID]:
    """A maker of random uuids that begin alike for a query, so that its reservations are found again after a crash."""
    prefix = hashlib.sha256(query_id.encode()).digest()[:_PREFIX_BYTES]
    return lambda: uuid.UUID(bytes=prefix + uuid.uuid4().bytes[_PREFIX_BYTES:], version=4)


def commits_of_query(metadata: TableMetadata, query_id: str) -> list[str]:
    """The commits of a query that are reserved, or were ended and not swept yet."""
    made = uuids_of_query(query_id)().bytes[:_PREFIX_BYTES]
    found = [each.commit_uuid for each in reservations(metadata)] + [each.commit_uuid for each in ended(metadata)]
    return [each for each in found if uuid.UUID(each).bytes[:_PREFIX_BYTES] == made]
