"""One instant of a PostgreSQL database, held open by the driver and shared by every shard of every table.

The transaction that exports the snapshot locks the tables *before* its snapshot is taken, in the mode that a plain
SELECT takes. So nobody can drop, truncate, rewrite or alter one of them between the instant and the last row read, and
vacuum keeps every row version that the snapshot sees, at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from frazil.sources.postgres_address import PostgresAddress, driver
from frazil.sources.postgres_error import connection_refused, reading_failed
from frazil.sources.postgres_tables import TableName, find_tables

_LOCKABLE = "rpv"
# The session waits, idle and in a transaction, for as long as the shards take.
_PATIENT = ("idle_in_transaction_session_timeout", "transaction_timeout", "statement_timeout")


@dataclass(frozen=True, slots=True)
class HeldSnapshot:
    """The snapshot while it is held. `instant` is the server's time; `address` the very server that has it."""

    name: str
    instant: str
    address: PostgresAddress
    connection: Any
    tables: tuple[TableName, ...]

    def read(self, subject: str, look: Callable[[Any], Any]) -> Any:
        """What `look` finds through the holding connection; an error of the server becomes one of ours."""
        try:
            return look(self.connection)
        except driver().Error as error:
            raise reading_failed(subject, self.address, error) from None


@contextmanager
def connected(address: PostgresAddress) -> Iterator[Any]:
    """A connection in which each statement is a transaction until one is begun. SourceNotFound if none comes about."""
    psycopg = driver()
    try:
        connection = psycopg.connect(address.connection_string(), autocommit=True)
    except psycopg.Error as error:
        # Not chained: the driver's error may carry the parameters of the connection, secrets too.
        raise connection_refused(address, error) from None
    try:
        yield connection
    finally:
        connection.close()  # nothing is to be committed, and whether the server is still there does not matter here


@contextmanager
def held_snapshot(address: PostgresAddress, patterns: str | None) -> Iterator[HeldSnapshot]:
    """Hold a snapshot in which the tables that the patterns name (none for a query) are locked against change."""
    with connected(address) as connection:
        address = PostgresAddress.of_connection(connection)
        try:
            tables = tuple(find_tables(connection, patterns)) if patterns is not None else ()
            _make_patient(connection)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            _lock(connection, tables)
            name, instant = connection.execute("SELECT pg_export_snapshot(), clock_timestamp()::text").fetchone()
            _touch(connection, tables)
        except driver().Error as error:
            raise reading_failed(
                f"what --tables {patterns} names" if patterns else "the query", address, error
            ) from None
        yield HeldSnapshot(name, instant, address, connection, tables)


def _make_patient(connection: Any) -> None:
    rows = connection.execute("SELECT name FROM pg_settings WHERE name = ANY(%s)", [list(_PATIENT)])
    for (name,) in rows.fetchall():
        connection.execute(f"SET {name} = 0")


def _lock(connection: Any, tables: Sequence[TableName]) -> None:
    """Lock by name, which does not take the transaction's snapshot yet, as any SELECT would."""
    lockable = [table.sql for table in tables if table.kind in _LOCKABLE]
    if lockable:
        connection.execute(f"LOCK TABLE {', '.join(lockable)} IN ACCESS SHARE MODE")


def _touch(connection: Any, tables: Sequence[TableName]) -> None:
    """What cannot be locked by name is locked by looking at it."""
    for table in tables:
        if table.kind not in _LOCKABLE:
            connection.execute(f"SELECT FROM {table.sql} LIMIT 0")
