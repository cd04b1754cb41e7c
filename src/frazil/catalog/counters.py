"""Counters that all processes of a catalog share, kept in its database."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select, update

from frazil.catalog.database_tables import counters

STAGED: Final = "staged_creates"
FINALISED: Final = "staged_creates_finalised"
FAILED: Final = "staged_creates_failed"
CLEANED: Final = "staged_creates_cleaned"
CLEANUP_FAILURES: Final = "staged_creates_cleanup_failures"

NAMES: Final = (STAGED, FINALISED, FAILED, CLEANED, CLEANUP_FAILURES)


def count(connection: Connection, name: str, by: int = 1) -> None:
    """Add to a counter, in the caller's transaction."""
    connection.execute(update(counters).where(counters.c.name == name).values(value=counters.c.value + by))


def read_all(connection: Connection) -> dict[str, int]:
    """Every counter."""
    return dict(connection.execute(select(counters.c.name, counters.c.value)).all())
