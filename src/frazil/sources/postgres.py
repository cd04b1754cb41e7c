"""PostgreSQL tables, cut into shards by block, all read within one exported snapshot."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema

from frazil.errors import BadInput
from frazil.snapshot.schema import IDENTIFIER_KEY
from frazil.sources.open import SourceRequest
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_batches import read_select
from frazil.sources.postgres_snapshot import HeldSnapshot
from frazil.sources.postgres_tables import Description, TableName, describe_query, describe_table
from frazil.sources.postgres_types import TypeOptions
from frazil.sources.source import Source


@dataclass(frozen=True, slots=True)
class PostgresShard:
    """A SELECT over a range of blocks, and the snapshot that it is read in.

    The snapshot lives as long as the process that exported it, and so does the shard. Secrets are not in it: they
    travel among the storage properties.
    """

    name: str
    address: PostgresAddress
    snapshot: str
    title: str
    select: str
    schema: pa.Schema
    null_not_finite: bool
    bytes: int
    instant: str
    rows: int = 0

    def batches(self, storage: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        """The rows. SourceUnreadable once the snapshot has ended, SourceInterrupted when the connection broke."""
        address = self.address.with_credentials(storage)
        return read_select(
            address, self.snapshot, self.select, self.title, self.schema, null_not_finite=self.null_not_finite
        )

    def to_document(self) -> Mapping[str, Any]:
        """As JSON values."""
        return {
            "kind": "postgres",
            "address": str(self.address),
            "snapshot": self.snapshot,
            "title": self.title,
            "select": self.select,
            "schema": base64.b64encode(self.schema.serialize()).decode(),
            "null-not-finite": self.null_not_finite,
            "bytes": self.bytes,
            "instant": self.instant,
        }

    @classmethod
    def from_document(cls, name: str, document: Mapping[str, Any]) -> PostgresShard:
        """The value that `to_document` gave."""
        return cls(
            name,
            PostgresAddress.parse(document["address"]),
            document["snapshot"],
            document["title"],
            document["select"],
            pa.ipc.read_schema(pa.py_buffer(base64.b64decode(document["schema"]))),
            document["null-not-finite"],
            document["bytes"],
            document["instant"],
        )


def open_source(request: SourceRequest) -> Source:
    """A database has tables, which are ingested together: see `frazil.spark.ingest_tables`."""
    raise BadInput(f"{request.description} is a database: say which of its tables with --tables, or give a --query")


def shard_from_document(name: str, document: Mapping[str, Any]) -> PostgresShard:
    """The shard that `to_document` described."""
    return PostgresShard.from_document(name, document)


class PostgresSource:
    """A table, or a query, as it is in a held snapshot."""

    def __init__(self, held: HeldSnapshot, described: Description, options: TypeOptions) -> None:
        self._held = held
        self._described = described
        self._options = options
        self.description = described.title
        self.rows = 0  # an estimate is all that the database has
        self.bytes = described.storage.bytes

    @classmethod
    def table(cls, held: HeldSnapshot, table: TableName, options: TypeOptions) -> PostgresSource:
        """One of the tables that the snapshot's transaction has locked."""
        described = held.read(f"table {table}", lambda connection: describe_table(connection, table, options))
        return cls(held, described, options)

    @classmethod
    def query(cls, held: HeldSnapshot, query: str, options: TypeOptions) -> PostgresSource:
        """What a SELECT gives."""
        described = held.read("the query", lambda connection: describe_query(connection, query, options))
        return cls(held, described, options)

    def for_table(self, schema: Schema) -> PostgresSource:  # noqa: ARG002  the database knows its own types
        """Itself: the database says what its types are."""
        return self

    def schema(self) -> pa.Schema:
        """The columns, NOT NULL ones required, with their comments; the primary key named in the schema's metadata."""
        fields = [column.field for column in self._described.columns]
        return pa.schema(fields, metadata={IDENTIFIER_KEY: json.dumps(self._described.key)})

    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """Its one schema."""
        return [(self.description, self.schema())]

    def shards(self, count: int) -> list[PostgresShard]:
        """Ranges of blocks of like weight, the last one open: it has whatever the table has grown by meanwhile."""
        ranges = block_ranges(self._described.storage.blocks, count)
        columns = ", ".join(column.expression for column in self._described.columns)
        select = f"SELECT {columns} FROM {self._described.relation}"
        return [
            PostgresShard(
                f"{number:05d}",
                self._held.address.without_any_secret(),
                self._held.name,
                self.description,
                f"{select}{_where(first, end)}",
                self.schema(),
                self._options.null_not_finite,
                self.bytes // len(ranges),
                self._held.instant,
            )
            for number, (first, end) in enumerate(ranges)
        ]


def block_ranges(blocks: Sequence[int], count: int) -> list[tuple[int, int | None]]:
    """About `count` ranges of block numbers that together hold every block once, each with about as many blocks.

    `blocks` are the sizes of the parts that share the numbers from 0 on: a partitioned table's partitions. The last
    range has no end.
    """
    total, longest = sum(blocks), max(blocks, default=0)
    count, cuts = min(count, longest), list[int]()
    for place in range(1, count):
        cut = _block_with(blocks, total * place // count, longest)
        if 0 < cut < longest and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    return list(zip([0, *cuts], [*cuts, None], strict=True))


def _block_with(blocks: Sequence[int], wanted: int, longest: int) -> int:
    """The lowest number below which the parts together have `wanted` blocks."""
    low, high = 0, longest
    while low < high:
        middle = (low + high) // 2
        if sum(min(size, middle) for size in blocks) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


def _where(first: int, end: int | None) -> str:
    conditions = [f"ctid >= '({first},0)'::tid"] if first else []
    conditions += [f"ctid < '({end},0)'::tid"] if end is not None else []
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
